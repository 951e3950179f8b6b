"""Requests as TypeScript: one constant each, with the type from the official client."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.support.opensearch_traffic import ClusterRequest

API_PATH = "./node_modules/@opensearch-project/opensearch/api"

REQUEST_TYPES = {
    "PUT": ("indices/create", "Indices_Create_Request"),
    "GET": ("indices/get", "Indices_Get_Request"),
    "DELETE": ("indices/delete", "Indices_Delete_Request"),
    "PUT _mapping": ("indices/putMapping", "Indices_PutMapping_Request"),
    "GET _mapping": ("indices/getMapping", "Indices_GetMapping_Request"),
    "POST _refresh": ("indices/refresh", "Indices_Refresh_Request"),
    "POST _aliases": ("indices/updateAliases", "Indices_UpdateAliases_Request"),
    "GET _count": ("_core/count", "Count_Request"),
    "POST _mget": ("_core/mget", "Mget_Request"),
    "POST _bulk": ("_core/bulk", "Bulk_Request"),
    "POST _msearch": ("_core/msearch", "Msearch_Request"),
}
LINE_TYPES: dict[str, list[tuple[str, str] | None]] = {
    "POST _bulk": [("_types/_core.bulk", "OperationContainer"), None],
    "POST _msearch": [
        ("_types/_core.msearch", "MultisearchHeader"),
        ("_types/_core.msearch", "MultisearchBody"),
    ],
}
"""The types of each pair of lines in requests that consist of lines; documents may be anything."""


def render_typescript(requests: Iterable[ClusterRequest]) -> list[str]:
    """Return the lines of a module that compiles only if every request fits."""
    typed_values = dict.fromkeys(typed_value for request in requests for typed_value in _iterate_constants(request))
    constants = [f"export const r{number}: {kind} = {value}" for number, (kind, value) in enumerate(typed_values)]
    return [*constants, "export {}"]


def _iterate_constants(request: ClusterRequest) -> Iterator[tuple[str, str]]:
    target, _, action = request.path.strip("/").partition("/")
    if target.startswith("_"):
        target, action = "", target
    key = f"{request.method} {action}".strip()
    target_parameters = {"index": target} if target else {}
    options = {name: value == "true" or value for name, value in request.query.items()}
    if key in LINE_TYPES:
        yield _format_typed_value(REQUEST_TYPES[key], {**target_parameters, **options}, omitted="body")
        for line_number, line in enumerate(request.lines):
            if (kind := LINE_TYPES[key][line_number % 2]) is not None:
                yield _format_typed_value(kind, line)
        return
    body = {"body": request.json} if request.body else {}
    yield _format_typed_value(REQUEST_TYPES[key], {**target_parameters, **options, **body})


def _format_typed_value(kind: tuple[str, str], value: Any, omitted: str = "") -> tuple[str, str]:
    module, name = kind
    full_type = f"import('{API_PATH}/{module}.js').{name}"
    return f"Omit<{full_type}, '{omitted}'>" if omitted else full_type, json.dumps(value, sort_keys=True)

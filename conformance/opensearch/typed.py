"""Requests as TypeScript: one constant each, of the type that the official client has for it."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.opensearch import Request

API = "./node_modules/@opensearch-project/opensearch/api"

TYPES = {
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
LINES: dict[str, list[tuple[str, str] | None]] = {
    "POST _bulk": [("_types/_core.bulk", "OperationContainer"), None],
    "POST _msearch": [
        ("_types/_core.msearch", "MultisearchHeader"),
        ("_types/_core.msearch", "MultisearchBody"),
    ],
}
"""Of requests in lines: what each of two lines is; documents may be anything."""


def typed(requests: Iterable[Request]) -> list[str]:
    """The lines of a module that compiles when every request fits."""
    made = dict.fromkeys(each for request in requests for each in _constants(request))
    constants = [f"export const r{n}: {kind} = {value}" for n, (kind, value) in enumerate(made)]
    return [*constants, "export {}"]


def _constants(request: Request) -> Iterator[tuple[str, str]]:
    target, _, action = request.path.strip("/").partition("/")
    if target.startswith("_"):
        target, action = "", target
    key = f"{request.method} {action}".strip()
    named = {"index": target} if target else {}
    options = {name: value == "true" or value for name, value in request.query.items()}
    if key in LINES:
        yield _typed(TYPES[key], {**named, **options}, but="body")
        for at, line in enumerate(request.lines):
            if (kind := LINES[key][at % 2]) is not None:
                yield _typed(kind, line)
        return
    body = {"body": request.json} if request.body else {}
    yield _typed(TYPES[key], {**named, **options, **body})


def _typed(kind: tuple[str, str], value: Any, but: str = "") -> tuple[str, str]:
    module, name = kind
    whole = f"import('{API}/{module}.js').{name}"
    return f"Omit<{whole}, '{but}'>" if but else whole, json.dumps(value, sort_keys=True)

"""Routes that toolsets bring: from a request to plain values, and from plain values to a response.

`contract.routes` says what such a route may expect.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from cleats.contract.errors import ToolError
from cleats.contract.routes import BODILESS, Route, RouteRequest
from cleats.contract.tools import Toolset
from cleats.transports.http.replies import Refusal, invalid
from cleats.transports.http.requests import json_value
from cleats.transports.http.rows import MCP_PATH, ROUTES

_encode = msgspec.json.Encoder().encode

SECRETS = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that are for the door alone."""

_NAME = re.compile(r"\{([a-z_]+)\}")
_PATH = re.compile(r"(?:/(?:[\w.-]+|\{[a-z_]+\}))+")

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def brought(toolsets: Iterable[Toolset]) -> list[Route]:
    """Every route of the toolsets.

    Raises:
        ValueError: a path cannot be read, or a route would stand where another one does.
    """
    taken = {(method, _shape(row.path)) for row in ROUTES for method in row.methods}
    found: list[Route] = []
    for toolset in toolsets:
        for route in toolset.routes:
            shape = _shape(route.path)
            if not _PATH.fullmatch(route.path) or shape.split("/")[1] in {"tools", MCP_PATH[1:]}:
                raise ValueError(f"{toolset.name} cannot have a route at {route.path!r}")
            if (route.method, shape) in taken:
                raise ValueError(f"two routes are {route.method} {route.path}")
            taken.add((route.method, shape))
            found.append(route)
    return found


def _shape(path: str) -> str:
    """A path without the names in it, which do not tell two of them apart."""
    return _NAME.sub("{}", path)


def endpoint(route: Route, *, limit: int, caller: str = "") -> Endpoint:
    """The route as the application serves it; a body may have `limit` bytes."""

    async def answer(request: Request) -> Response:
        body = None if route.method in BODILESS else await json_value(request, limit)
        asked = RouteRequest(
            path=dict(request.path_params),
            query=_once(request),
            headers={k: v for k, v in request.headers.items() if k not in SECRETS},
            body=body,
            caller=caller,
        )
        try:
            told = await route.run(asked)
        except ToolError as error:
            raise Refusal(error) from None
        return Response(_encode(told.body), told.status, dict(told.headers), "application/json")

    return answer


def _once(request: Request) -> dict[str, str]:
    pairs = request.query_params.multi_items()
    given = dict(pairs)
    if len(given) < len(pairs):
        raise invalid("A name in the query is given more than once.")
    return given


class Addresses:
    """Which route a path belongs to, for metrics, logs and preflights; foreign paths are one."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._methods: dict[str, set[str]] = {}
        for route in routes:
            self._methods.setdefault(route.path, set()).add(route.method)
        self._patterns = [(_pattern(path), path) for path in self._methods]

    def label(self, path: str) -> str | None:
        """The path of the route as the toolset wrote it; None when it is not one of theirs."""
        return next((label for pattern, label in self._patterns if pattern.fullmatch(path)), None)

    def methods(self, path: str) -> Sequence[str] | None:
        """The methods that a path has; None when it is not one of theirs."""
        label = self.label(path)
        return None if label is None else sorted(self._methods[label])


def _pattern(path: str) -> "re.Pattern[str]":
    words = _NAME.split(path)  # every second one is a name
    return re.compile("".join("[^/]+" if n % 2 else re.escape(w) for n, w in enumerate(words)))


def operations(toolsets: Iterable[Toolset], failures: Mapping[str, Any]) -> dict[str, Any]:
    """The paths of these routes for `/openapi.json`."""
    paths: dict[str, Any] = {}
    for toolset in toolsets:
        for route in toolset.routes:
            shown = paths.setdefault(route.path, {})
            shown[route.method.lower()] = _operation(toolset.name, route, failures)
    return paths


def _operation(home: str, route: Route, failures: Mapping[str, Any]) -> dict[str, Any]:
    answers = {
        str(status): {
            "description": "Done." if status < 400 else "Refused.",
            "content": {"application/json": {"schema": schema}},
        }
        for status, schema in (route.answers or {200: {}}).items()
    }
    words = [word.strip("{}") for word in route.path.split("/")[1:]]
    made: dict[str, Any] = {
        "operationId": "_".join([home, route.method.lower(), *words]),
        "summary": route.about,
        "tags": [home],
        "responses": {**failures, **answers},
    }
    schema = {"type": "string"}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name in _NAME.findall(route.path)
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in route.query.items()
    ]
    if parameters:
        made["parameters"] = parameters
    if route.method not in BODILESS:
        content = {"application/json": {"schema": route.takes}}
        made["requestBody"] = {"required": True, "content": content}
    return made

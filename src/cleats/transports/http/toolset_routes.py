"""Routes of toolsets: from a request to plain values, and from plain values to a response.

`contract.routes` documents what such a route may expect.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from cleats.contract.errors import ToolError
from cleats.contract.routes import BODILESS_METHODS, Route, RouteRequest
from cleats.contract.tools import Toolset
from cleats.transports.http.requests import read_json_value
from cleats.transports.http.responses import ApiError, invalid_request
from cleats.transports.http.routes import API_ROUTES, MCP_PATH

_encode = msgspec.json.Encoder().encode

SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that only the guard may read."""

_PARAMETER_PATTERN = re.compile(r"\{([a-z_]+)\}")
_ROUTE_PATH_PATTERN = re.compile(r"(?:/(?:[\w.-]+|\{[a-z_]+\}))+")

RouteEndpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def collect_routes(toolsets: Iterable[Toolset]) -> list[Route]:
    """Return every route of the toolsets.

    Raises:
        ValueError: A path is invalid, or a route conflicts with another one.
    """
    used_keys = {(method, _normalize_path(row.path)) for row in API_ROUTES for method in row.methods}
    routes: list[Route] = []
    for toolset in toolsets:
        for route in toolset.routes:
            shape = _normalize_path(route.path)
            if not _ROUTE_PATH_PATTERN.fullmatch(route.path) or shape.split("/")[1] in {"tools", MCP_PATH[1:]}:
                raise ValueError(f"{toolset.name} cannot have a route at {route.path!r}")
            if (route.method, shape) in used_keys:
                raise ValueError(f"two routes are {route.method} {route.path}")
            used_keys.add((route.method, shape))
            routes.append(route)
    return routes


def _normalize_path(path: str) -> str:
    """Return a path without its parameter names, which do not distinguish two routes."""
    return _PARAMETER_PATTERN.sub("{}", path)


def build_endpoint(route: Route, *, limit: int, caller: str = "") -> RouteEndpoint:
    """Return the route as an endpoint of the application; a body may have `limit` bytes."""

    async def serve_route(request: Request) -> Response:
        body = None if route.method in BODILESS_METHODS else await read_json_value(request, limit)
        route_request = RouteRequest(
            path=dict(request.path_params),
            query=_read_query(request),
            headers={name: value for name, value in request.headers.items() if name not in SECRET_HEADERS},
            body=body,
            caller=caller,
        )
        try:
            route_answer = await route.run(route_request)
        except ToolError as error:
            raise ApiError(error) from None
        return Response(_encode(route_answer.body), route_answer.status, dict(route_answer.headers), "application/json")

    return serve_route


def _read_query(request: Request) -> dict[str, str]:
    pairs = request.query_params.multi_items()
    values = dict(pairs)
    if len(values) < len(pairs):
        raise invalid_request("A name in the query is given more than once.")
    return values


class ToolsetRouteIndex:
    """An index from paths to toolset routes, for metrics, logs and preflights."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._methods: dict[str, set[str]] = {}
        for route in routes:
            self._methods.setdefault(route.path, set()).add(route.method)
        self._patterns = [(_compile_pattern(path), path) for path in self._methods]

    def find_label(self, path: str) -> str | None:
        """Return the path of the route as the toolset wrote it, or None if no route matches."""
        return next((label for pattern, label in self._patterns if pattern.fullmatch(path)), None)

    def list_methods(self, path: str) -> Sequence[str] | None:
        """Return the methods of a path, or None if no route matches."""
        label = self.find_label(path)
        return None if label is None else sorted(self._methods[label])


def _compile_pattern(path: str) -> "re.Pattern[str]":
    words = _PARAMETER_PATTERN.split(path)  # every second one is a name
    return re.compile("".join("[^/]+" if index % 2 else re.escape(word) for index, word in enumerate(words)))


def build_operations(toolsets: Iterable[Toolset], failures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paths of these routes for `/openapi.json`."""
    paths: dict[str, Any] = {}
    for toolset in toolsets:
        for route in toolset.routes:
            path_item = paths.setdefault(route.path, {})
            path_item[route.method.lower()] = _build_operation(toolset.name, route, failures)
    return paths


def _build_operation(toolset_name: str, route: Route, failures: Mapping[str, Any]) -> dict[str, Any]:
    responses = {
        str(status): {
            "description": "Done." if status < 400 else "Refused.",
            "content": {"application/json": {"schema": schema}},
        }
        for status, schema in (route.answers or {200: {}}).items()
    }
    words = [word.strip("{}") for word in route.path.split("/")[1:]]
    operation: dict[str, Any] = {
        "operationId": "_".join([toolset_name, route.method.lower(), *words]),
        "summary": route.about,
        "tags": [toolset_name],
        "responses": {**failures, **responses},
    }
    schema = {"type": "string"}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name in _PARAMETER_PATTERN.findall(route.path)
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in route.query.items()
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.method not in BODILESS_METHODS:
        content = {"application/json": {"schema": route.takes}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation

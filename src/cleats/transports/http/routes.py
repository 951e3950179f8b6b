"""The table of API routes, and the routes of toolsets: from a request to plain values and back to a response.

The application, `/docs`, `/openapi.json` and the metrics read the table. `contract.routes` documents what the route of
a toolset may expect.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from cleats.contract.errors import ToolError
from cleats.contract.routes import BODILESS_METHODS, Route, RouteRequest
from cleats.contract.tools import Toolset
from cleats.transports.http.requests import read_json_value
from cleats.transports.http.responses import ApiError, invalid_request

SEARCH_TOOLS = ("search",)
"""The tool behind `/search`."""

STATUS_TOOLS = ("report_artifacts", "index_status")
"""The tools that can answer `/status`; the first one that is served does."""


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One route of the API."""

    path: str
    methods: tuple[str, ...]
    endpoint: str
    """The method of `api.HttpApi` that answers it."""

    about: str
    response_kind: Literal["envelope", "stream", "other"] = "envelope"
    tools: tuple[str, ...] = ()
    """The tools that it calls."""


API_ROUTES: Sequence[ApiRoute] = (
    ApiRoute("/health", ("GET",), "health", "Health and uptime of the server."),
    ApiRoute("/ready", ("GET",), "ready", "Readiness: 503 if the server should get no requests."),
    ApiRoute("/tools/{name}", ("POST",), "call", "Call a tool; the body is its arguments."),
    ApiRoute("/tools/{name}/stream", ("POST",), "call_stream", "The same as events.", "stream"),
    ApiRoute("/tools", ("GET",), "tools", "Every tool with its schemas and versions."),
    ApiRoute("/search", ("GET", "POST"), "search", "Search a repository.", tools=SEARCH_TOOLS),
    ApiRoute("/search/stream", ("POST",), "search_stream", "The same as events.", "stream", SEARCH_TOOLS),
    ApiRoute("/status", ("GET",), "status", "Index and freshness of a repository.", tools=STATUS_TOOLS),
    ApiRoute("/status/stream", ("GET",), "status_stream", "The same as events.", "stream", STATUS_TOOLS),
    ApiRoute("/capabilities", ("GET",), "capabilities", "Versions, tools and optional capabilities of this machine."),
    ApiRoute("/metrics", ("GET",), "metrics", "Metrics in the Prometheus text format.", "other"),
    ApiRoute("/openapi.json", ("GET",), "openapi", "This API as OpenAPI 3.1.", "other"),
    ApiRoute("/docs", ("GET",), "docs", "This API as a web page.", "other"),
)
"""Routes in matching order, so the most requested ones come first."""

MCP_PATH = "/mcp"

CONSOLE_PATH = "/console"
"""The prefix of every page of the console but the first, which is `/`."""

OTHER_ROUTE_LABEL = "other"
"""The label of every path outside the API."""

_RESERVED_WORDS = {"tools", MCP_PATH[1:], CONSOLE_PATH[1:]}
"""First words of paths that no toolset may use."""

_FIXED_PATHS = {row.path for row in API_ROUTES if "{" not in row.path} | {MCP_PATH}


def label_route(path: str) -> str:
    """Return the route of a path for the metrics; an unknown path must not become a new series."""
    if path in _FIXED_PATHS:
        return path
    parts = path.split("/")
    if parts[:2] == ["", "tools"] and len(parts) == 3:
        return "/tools/{name}"
    if parts[:2] == ["", "tools"] and len(parts) == 4 and parts[3] == "stream":
        return "/tools/{name}/stream"
    if path == "/" or parts[:2] == ["", CONSOLE_PATH[1:]]:
        return CONSOLE_PATH
    return OTHER_ROUTE_LABEL


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
            if not _ROUTE_PATH_PATTERN.fullmatch(route.path) or shape.split("/")[1] in _RESERVED_WORDS:
                raise ValueError(f"{toolset.name} cannot have a route at {route.path!r}")
            if (route.method, shape) in used_keys:
                raise ValueError(f"two routes are {route.method} {route.path}")
            used_keys.add((route.method, shape))
            routes.append(route)
    return routes


def _normalize_path(path: str) -> str:
    return _PARAMETER_PATTERN.sub("{}", path)


def build_endpoint(route: Route, *, limit: int, caller: str = "") -> RouteEndpoint:
    """Return the route as an endpoint of the application; a body may have `limit` bytes."""

    async def serve_route(request: Request) -> Response:
        body = None if route.method in BODILESS_METHODS else await read_json_value(request, limit)
        pairs = request.query_params.multi_items()
        if len(query := dict(pairs)) < len(pairs):
            raise invalid_request("A name in the query is given more than once.")
        path = dict(request.path_params)
        headers = {name: value for name, value in request.headers.items() if name not in SECRET_HEADERS}
        try:
            route_answer = await route.run(
                RouteRequest(path=path, query=query, headers=headers, body=body, caller=caller)
            )
        except ToolError as error:
            raise ApiError(error) from None
        return Response(_encode(route_answer.body), route_answer.status, dict(route_answer.headers), "application/json")

    return serve_route


class ToolsetRouteIndex:
    """An index from paths to toolset routes, for metrics, logs and preflights."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._methods: dict[str, set[str]] = {}
        for route in routes:
            self._methods.setdefault(route.path, set()).add(route.method)
        self._patterns = [(compile_path(path)[0], path) for path in self._methods]

    def find_label(self, path: str) -> str | None:
        """Return the path of the route as the toolset wrote it, or None if no route matches."""
        return next((label for pattern, label in self._patterns if pattern.fullmatch(path)), None)

    def list_methods(self, path: str) -> Sequence[str] | None:
        """Return the methods of a path, or None if no route matches."""
        label = self.find_label(path)
        return None if label is None else sorted(self._methods[label])


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
        str(status): {"description": "Done." if status < 400 else "Refused.", "content": _json_content(schema)}
        for status, schema in (route.answers or {200: {}}).items()
    }
    words = [word.strip("{}") for word in route.path.split("/")[1:]]
    operation: dict[str, Any] = {
        "operationId": "_".join([toolset_name, route.method.lower(), *words]),
        "summary": route.about,
        "tags": [toolset_name],
        "responses": {**failures, **responses},
    }
    path_schemas = {name: {"type": "string"} for name in _PARAMETER_PATTERN.findall(route.path)}
    if parameters := [
        {"name": name, "in": place, "required": place == "path", "schema": schema}
        for place, schemas in (("path", path_schemas), ("query", route.query))
        for name, schema in schemas.items()
    ]:
        operation["parameters"] = parameters
    if route.method not in BODILESS_METHODS:
        operation["requestBody"] = {"required": True, "content": _json_content(route.takes)}
    return operation


def _json_content(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}

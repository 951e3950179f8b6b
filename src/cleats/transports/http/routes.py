"""The table of API routes, read by the application, `/docs`, `/openapi.json` and the metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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
    ApiRoute("/health", ("GET",), "health", "Whether the server is up, and for how long."),
    ApiRoute("/ready", ("GET",), "ready", "Whether it should be sent requests; 503 when it should not."),
    ApiRoute("/tools/{name}", ("POST",), "call", "Call a tool; the body is its arguments."),
    ApiRoute("/tools/{name}/stream", ("POST",), "call_stream", "The same as events.", "stream"),
    ApiRoute("/tools", ("GET",), "tools", "Every tool with its schemas and versions."),
    ApiRoute("/search", ("GET", "POST"), "search", "Search a repository.", tools=SEARCH_TOOLS),
    ApiRoute("/search/stream", ("POST",), "search_stream", "The same as events.", "stream", SEARCH_TOOLS),
    ApiRoute("/status", ("GET",), "status", "What is known about a repository.", tools=STATUS_TOOLS),
    ApiRoute("/status/stream", ("GET",), "status_stream", "The same as events.", "stream", STATUS_TOOLS),
    ApiRoute("/capabilities", ("GET",), "capabilities", "Versions, tools and what this machine can do."),
    ApiRoute("/metrics", ("GET",), "metrics", "Figures in Prometheus' text format.", "other"),
    ApiRoute("/openapi.json", ("GET",), "openapi", "This API as OpenAPI 3.1.", "other"),
    ApiRoute("/docs", ("GET",), "docs", "This API as a page to read.", "other"),
)
"""Routes in matching order, so the most requested ones come first."""

MCP_PATH = "/mcp"

OTHER_ROUTE_LABEL = "other"
"""The label of every path outside the API."""

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
    return OTHER_ROUTE_LABEL

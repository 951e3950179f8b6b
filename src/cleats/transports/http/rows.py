"""The table of routes. The application, `/docs`, `/openapi.json` and the metrics read it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SEARCH = ("search",)
"""The tool behind `/search`."""

STATUS = ("report_artifacts", "index_status")
"""The tools that can stand behind `/status`; the first that is served does."""


@dataclass(frozen=True, slots=True)
class Row:
    """One route."""

    path: str
    methods: tuple[str, ...]
    endpoint: str
    """The method of `api.Api` that answers it."""

    about: str
    gives: Literal["envelope", "stream", "other"] = "envelope"
    tools: tuple[str, ...] = ()
    """The tools that it stands for."""


ROUTES: Sequence[Row] = (
    Row("/health", ("GET",), "health", "Whether the server is up, and for how long."),
    Row("/ready", ("GET",), "ready", "Whether it should be sent requests; 503 when it should not."),
    Row("/tools/{name}", ("POST",), "call", "Call a tool; the body is its arguments."),
    Row("/tools/{name}/stream", ("POST",), "call_stream", "The same as events.", "stream"),
    Row("/tools", ("GET",), "tools", "Every tool with its schemas and versions."),
    Row("/search", ("GET", "POST"), "search", "Search a repository.", tools=SEARCH),
    Row("/search/stream", ("POST",), "search_stream", "The same as events.", "stream", SEARCH),
    Row("/status", ("GET",), "status", "What is known about a repository.", tools=STATUS),
    Row("/status/stream", ("GET",), "status_stream", "The same as events.", "stream", STATUS),
    Row("/capabilities", ("GET",), "capabilities", "Versions, tools and what this machine can do."),
    Row("/metrics", ("GET",), "metrics", "Figures in Prometheus' text format.", "other"),
    Row("/openapi.json", ("GET",), "openapi", "This API as OpenAPI 3.1.", "other"),
    Row("/docs", ("GET",), "docs", "This API as a page to read.", "other"),
)
"""In the order in which they are tried, so those asked for most come first."""

MCP_PATH = "/mcp"

OTHER = "other"
"""Stands for every path that is none of ours."""

_FIXED = {row.path for row in ROUTES if "{" not in row.path} | {MCP_PATH}


def label(path: str) -> str:
    """The route of a path, for the metrics; a foreign path must not become a new series."""
    if path in _FIXED:
        return path
    parts = path.split("/")
    if parts[:2] == ["", "tools"] and len(parts) == 3:
        return "/tools/{name}"
    if parts[:2] == ["", "tools"] and len(parts) == 4 and parts[3] == "stream":
        return "/tools/{name}/stream"
    return OTHER

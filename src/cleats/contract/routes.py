"""HTTP routes that a toolset defines, for an API whose paths and bodies are dictated from outside.

A toolset puts `Route` values into `Toolset.routes`; only the HTTP surface serves them. They are
guarded like every other route: origin, token, host, rate and body limit are checked before a
handler is called, and a caller whose token has no access to the toolset gets "not found".
A path consists of fixed words and `{names}`, and no two routes share a method and a path.

    async def one(request: RouteRequest) -> RouteAnswer:
        run = store.find(request.path["event_id"])
        return RouteAnswer({"run": run}) if run else RouteAnswer({"detail": "none"}, status=404)

    Toolset(..., routes=[Route("GET", "/api/v1/runs/{event_id}", one, "One run.")])

A handler checks the content of its requests itself, raises `ToolError` for what it refuses (sent as the envelope, with
the HTTP status from the error table), and returns quickly: routes have neither the queue nor the deadlines of tools.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

RouteMethod: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

BODILESS_METHODS: frozenset[str] = frozenset({"GET", "DELETE"})
"""The methods whose requests have no body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRequest:
    """A request to a route, as plain values."""

    path: Mapping[str, str] = field(default_factory=dict)
    """The value of each `{name}` in the route's path."""

    query: Mapping[str, str] = field(default_factory=dict)
    """Each name once: a request that repeats a name is refused."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers by lower-case name, without the caller's secrets."""

    body: Any = None
    """The JSON body of the request; None for a method without a body."""

    caller: str = ""
    """The name of the token that was used; empty when no token was needed."""


@dataclass(frozen=True, slots=True)
class RouteAnswer:
    """The response of a route. `body` is a JSON value, sent unchanged and without an envelope."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


RouteHandler: TypeAlias = Callable[[RouteRequest], Awaitable[RouteAnswer]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path, and its handler."""

    method: RouteMethod
    path: str
    run: RouteHandler
    about: str
    """The purpose of the route, in one line for the documentation."""

    answers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """The JSON Schema for each response status, for `/openapi.json`."""

    takes: Mapping[str, Any] = field(default_factory=dict)
    """The JSON Schema of the request body, for `/openapi.json`; empty if anything is accepted."""

    query: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The allowed query parameters, each with its JSON Schema, for `/openapi.json`."""

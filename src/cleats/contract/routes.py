"""HTTP routes of a toolset's own, for an API whose paths and bodies something else binds.

A toolset puts `Route` values into `Toolset.routes`; only the HTTP surface serves them. They stand
behind the same door as every other route: origin, token, host, rate and body limit are checked
before a handler is asked, and a caller whose token does not have the toolset finds nothing there.
A path is fixed words and `{names}`, and no two routes share a method and a path.

    async def one(request: RouteRequest) -> RouteAnswer:
        run = store.find(request.path["event_id"])
        return RouteAnswer({"run": run}) if run else RouteAnswer({"detail": "none"}, status=404)

    Toolset(..., routes=[Route("GET", "/api/v1/runs/{event_id}", one, "One run.")])

A handler does its own checks of what is in a request, raises `ToolError` for what it refuses (it
leaves as the envelope, with the status of the table), and returns soon: routes have neither the
queue nor the deadlines of tools.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

RouteMethod: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

BODILESS: frozenset[str] = frozenset({"GET", "DELETE"})
"""The methods whose requests bring nothing but their address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRequest:
    """What was asked, as plain values."""

    path: Mapping[str, str] = field(default_factory=dict)
    """What stands for each `{name}` of the route's path."""

    query: Mapping[str, str] = field(default_factory=dict)
    """Each name once: a request that repeats one is refused."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """By name in lower case, without the caller's secrets."""

    body: Any = None
    """The JSON that was sent; None for a method that brings no body."""

    caller: str = ""
    """The name of the token that was used; empty when none was needed."""


@dataclass(frozen=True, slots=True)
class RouteAnswer:
    """What goes back. `body` is a JSON value, sent as it is and without an envelope."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


RouteHandler: TypeAlias = Callable[[RouteRequest], Awaitable[RouteAnswer]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path, and what answers it."""

    method: RouteMethod
    path: str
    run: RouteHandler
    about: str
    """What it is for, in a line of the documentation."""

    answers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """The JSON Schema of each status that it answers with, for `/openapi.json`."""

    takes: Mapping[str, Any] = field(default_factory=dict)
    """The JSON Schema of the body, for `/openapi.json`; empty for any."""

    query: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The names that a query may have, each with its JSON Schema, for `/openapi.json`."""

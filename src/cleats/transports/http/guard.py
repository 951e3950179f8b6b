"""The guard of the API: every request passes through it, whatever its route.

The order of the checks is part of the contract: origin, preflight, token, host, rate, and only then a route of the
application that belongs to the token. Exceptions of routes end here too, so that no traceback leaks.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from time import monotonic
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cleats.contract.errors import ErrorCode, ToolError
from cleats.transports.http.monitoring import MAX_TEXT_CHARS, HttpTraffic, WriteRecord
from cleats.transports.http.requests import accept_request_id
from cleats.transports.http.responses import ApiError, error_response, invalid_request
from cleats.transports.http.routes import MCP_PATH, OTHER_ROUTE_LABEL, ToolsetRouteIndex, label_route
from cleats.transports.http.tokens import AccessPolicy, RateLimiter

log = logging.getLogger(__name__)

ALLOWED_METHODS = b"GET, POST, OPTIONS"
ALLOWED_HEADERS = b"Content-Type, Authorization"
MCP_METHODS = ALLOWED_METHODS + b", DELETE"
MCP_HEADERS = ALLOWED_HEADERS + b", Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name"
PREFLIGHT_SECONDS = b"600"


@dataclass(frozen=True, kw_only=True)
class ConsoleEntry:
    """The web pages as the guard sees them; `cleats.console` provides them."""

    owns_request: Callable[[str, str], bool]
    """Returns whether the pages answer a path, given the Accept header."""

    find_session: Callable[[str], str | None]
    """Returns the token name of the session in a Cookie header."""

    apps: Mapping[str, ASGIApp]
    """One application per token name."""

    public_app: ASGIApp
    """The application for requests without a session: signing in, and files that hold nothing of a caller."""

    is_public: Callable[[str], bool]
    """Returns whether `public_app` answers a path for everybody."""

    stop: Callable[[], None]
    """Cancels the calls of the pages, and ends their streams."""


class RequestGuard:
    """The outermost ASGI application; it dispatches to one application per token name."""

    def __init__(
        self,
        apps: Mapping[str, ASGIApp],
        policy: AccessPolicy,
        traffic: HttpTraffic,
        toolset_routes: ToolsetRouteIndex,
        write_access: WriteRecord | None = None,
        *,
        limiters: Mapping[str, RateLimiter],
        console: ConsoleEntry | None = None,
    ) -> None:
        self._console, self._limiters = console, limiters
        self._apps, self._default_app = apps, next(iter(apps.values()))
        self._policy, self._traffic, self._toolset_routes = policy, traffic, toolset_routes
        self._write_access = write_access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        context = RequestContext(scope, send)
        traffic = self._traffic
        traffic.open_requests += 1
        started_at = monotonic()
        try:
            app = self._check_request(context) or self._apps.get(context.caller, self._default_app)
            await app(scope, receive, context.send)
        except asyncio.CancelledError:
            # Only the end of the server cancels a request: its body never came, or its work did not stop in time.
            if not context.status:
                error = ToolError(ErrorCode.UNAVAILABLE, "The server is stopping.")
                refusal = error_response(ApiError(error, headers={"connection": "close"}))
                await refusal(scope, receive, context.send)
        except Exception:
            log.exception("request.crash method=%s path=%r", scope["method"], scope["path"])
            if not context.status:
                error = ToolError(ErrorCode.INTERNAL, "The request failed unexpectedly.")
                await error_response(ApiError(error))(scope, receive, context.send)
        finally:
            traffic.open_requests -= 1
            route = label_route(context.path)
            if route == OTHER_ROUTE_LABEL:
                route = self._toolset_routes.find_label(context.path) or OTHER_ROUTE_LABEL
            # Without a status, the client left before there was an answer.
            status, seconds = context.status or 499, monotonic() - started_at
            traffic.record_request(scope["method"], route, status, seconds)
            if self._write_access is not None:
                self._write_access(context.build_access_record(scope, route, status, seconds))

    def _check_request(self, context: "RequestContext") -> ASGIApp | None:
        try:
            self._check_origin(context)
            if context.method == "OPTIONS":
                return self._answer_preflight(context.path)
            if self._console is not None and self._console.owns_request(context.path, context.accept):
                return self._select_console_app(context, self._console)
            if self._policy.allows_anonymous(context.method, context.path):
                return None
            self._check_token(context)
            self._check_host(context)
            self._check_rate(context)
        except ApiError as api_error:
            return error_response(api_error)
        return None

    def _select_console_app(self, context: "RequestContext", console: ConsoleEntry) -> ASGIApp:
        """Return the pages of the caller, whose token comes from its session or its header."""
        if context.origin is not None and not self._policy.is_own_origin(context.origin, context.host):
            # Origins that may call the API may not use the pages: they act for the person who is signed in.
            raise ApiError(ToolError(ErrorCode.FORBIDDEN, "Pages of other origins may not use the console."))
        context.origin_allowed = False
        self._check_host(context)
        if console.is_public(context.path):
            return console.public_app
        if context.authorization or not self._policy.tokens:
            self._check_token(context)
        elif (name := console.find_session(context.cookie)) is not None:
            context.caller = name
        else:
            return console.public_app
        self._check_rate(context)
        return console.apps[context.caller]

    def _answer_preflight(self, path: str) -> Response:
        """Answer OPTIONS for any path: a browser asks before it has a token to send."""
        is_mcp = path == MCP_PATH
        methods = MCP_METHODS if is_mcp else ALLOWED_METHODS
        if (toolset_methods := self._toolset_routes.list_methods(path)) is not None:
            methods = ", ".join((*toolset_methods, "OPTIONS")).encode()
        response = Response(status_code=204)
        response.raw_headers = [
            (b"access-control-allow-methods", methods),
            (b"access-control-allow-headers", MCP_HEADERS if is_mcp else ALLOWED_HEADERS),
            (b"access-control-max-age", PREFLIGHT_SECONDS),
        ]
        return response

    def _check_origin(self, context: "RequestContext") -> None:
        origin = context.origin
        if origin is None:
            return
        if not self._policy.allows_origin(origin, context.host):
            message, hint = "Requests from this origin are not allowed.", _hint_setting("allow more", "ORIGINS")
            raise ApiError(ToolError(ErrorCode.FORBIDDEN, message, hint=hint), headers={"vary": "Origin"})
        context.origin_allowed = True

    def _check_token(self, context: "RequestContext") -> None:
        token = self._policy.find_caller(context.authorization)
        if token is None:
            message = "Invalid token." if context.authorization else "A token is required."
            error = ToolError(ErrorCode.UNAUTHORIZED, message, hint="Send it as Authorization: Bearer TOKEN.")
            raise ApiError(error, headers={"www-authenticate": "Bearer"})
        context.caller = token.name

    def _check_rate(self, context: "RequestContext") -> None:
        limiter = self._limiters.get(context.caller)
        if limiter is not None and (wait := limiter.take()):
            seconds = ceil(wait)
            message, hint = "Rate limit exceeded.", f"Try again in {seconds} s."
            error = ToolError(ErrorCode.RATE_LIMITED, message, hint=hint, details={"retryAfter": seconds})
            raise ApiError(error, headers={"retry-after": str(seconds)})

    def _check_host(self, context: "RequestContext") -> None:
        if context.host_count > 1:
            raise invalid_request("The request has more than one Host header.")
        if not self._policy.knows_host(context.host):
            message = "The name in the Host header is not allowed."
            raise ApiError(ToolError(ErrorCode.FORBIDDEN, message, hint=_hint_setting("add names", "HOSTS")))


def _hint_setting(action: str, setting: str) -> str:
    return f"The operator can {action} with CLEATS_HTTP_{setting}."


class RequestContext:
    """The state of one request in the guard, and of its response."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.caller, self.status, self.sent_bytes, self.origin_allowed = "", 0, 0, False
        self._send = send
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        self.host = headers.get(b"host", "")
        self.host_count = sum(name == b"host" for name, _ in scope["headers"])
        self.origin = headers.get(b"origin")
        self.accept = headers.get(b"accept", "")
        self.cookie = headers.get(b"cookie", "")
        self.authorization = headers.get(b"authorization", "")
        self.request_id = accept_request_id(headers.get(b"x-request-id", ""))

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-content-type-options", b"nosniff")]
            if self.origin_allowed and self.origin is not None:
                headers.append((b"access-control-allow-origin", self.origin.encode("latin-1")))
                headers.append((b"access-control-expose-headers", b"Mcp-Session-Id, Retry-After"))
                headers.append((b"vary", b"Origin"))
            message = {**message, "headers": headers}
        else:
            self.sent_bytes += len(message.get("body", b""))
        await self._send(message)

    def build_access_record(self, scope: Scope, route: str, status: int, seconds: float) -> dict[str, Any]:
        """Build the access log record. It omits the URL and the body, which may hold secrets."""
        request = {"method": self.method[:MAX_TEXT_CHARS], "route": route}
        response = {"status": status, "ms": round(seconds * 1000, 1), "bytes": self.sent_bytes}
        client = scope["client"][0] if scope.get("client") else None
        return {**request, **response, "token": self.caller, "client": client, "requestId": self.request_id}

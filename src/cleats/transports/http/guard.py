"""The guard of the API: every request passes through it, whatever its route.

The order of the checks is part of the contract: origin, preflight, token, host, rate, and only then
a route of the application that belongs to the token. Exceptions of routes end here too, so that no
traceback leaks.
"""

import logging
from collections.abc import Mapping
from math import ceil
from time import monotonic
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cleats.contract.errors import ErrorCode, ToolError
from cleats.transports.http.access_log import MAX_TEXT_CHARS, WriteRecord
from cleats.transports.http.monitoring import HttpTraffic
from cleats.transports.http.policy import AccessPolicy, create_limiter
from cleats.transports.http.requests import accept_request_id
from cleats.transports.http.responses import ApiError, error_response, invalid_request
from cleats.transports.http.routes import MCP_PATH, OTHER_ROUTE_LABEL, label_route
from cleats.transports.http.toolset_routes import ToolsetRouteIndex

log = logging.getLogger(__name__)

ALLOWED_METHODS = b"GET, POST, OPTIONS"
ALLOWED_HEADERS = b"Content-Type, Authorization"
MCP_METHODS = ALLOWED_METHODS + b", DELETE"
MCP_HEADERS = ALLOWED_HEADERS + b", Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name"
PREFLIGHT_SECONDS = b"600"


class RequestGuard:
    """The outermost ASGI application; it dispatches to one application per token name."""

    def __init__(
        self,
        apps: Mapping[str, ASGIApp],
        policy: AccessPolicy,
        traffic: HttpTraffic,
        toolset_routes: ToolsetRouteIndex,
        write_access: WriteRecord | None = None,
    ) -> None:
        self._apps = apps
        self._default_app = next(iter(apps.values()))
        self._policy = policy
        self._traffic = traffic
        self._toolset_routes = toolset_routes
        self._write_access = write_access
        self._limiters = {
            token.name: limiter for token in policy.tokens if (limiter := create_limiter(token)) is not None
        }

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

    def _check_request(self, context: "RequestContext") -> Response | None:
        """Return the guard's own answer, or None if the request may pass."""
        try:
            self._check_origin(context)
            if context.method == "OPTIONS":
                return self._answer_preflight(context.path)
            if self._policy.allows_anonymous(context.method, context.path):
                return None
            self._check_token(context)
            self._check_host(context)
            self._check_rate(context)
        except ApiError as api_error:
            return error_response(api_error)
        return None

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
            raise ApiError(
                ToolError(
                    ErrorCode.FORBIDDEN,
                    "Pages of this origin may not use this server.",
                    hint="The operator can allow more with CLEATS_HTTP_ORIGINS.",
                ),
                headers={"vary": "Origin"},
            )
        context.origin_allowed = True

    def _check_token(self, context: "RequestContext") -> None:
        token = self._policy.find_caller(context.authorization)
        if token is None:
            authorization = context.authorization
            raise ApiError(
                ToolError(
                    ErrorCode.UNAUTHORIZED,
                    "This is not the token." if authorization else "This server wants a token.",
                    hint="Send it as Authorization: Bearer TOKEN.",
                ),
                headers={"www-authenticate": "Bearer"},
            )
        context.caller = token.name

    def _check_rate(self, context: "RequestContext") -> None:
        limiter = self._limiters.get(context.caller)
        if limiter is not None and (wait := limiter.take()):
            seconds = ceil(wait)
            raise ApiError(
                ToolError(
                    ErrorCode.RATE_LIMITED,
                    "This token has had its requests for now.",
                    hint=f"Try again in {seconds} s.",
                    details={"retryAfter": seconds},
                ),
                headers={"retry-after": str(seconds)},
            )

    def _check_host(self, context: "RequestContext") -> None:
        if context.host_count > 1:
            raise invalid_request("The request has more than one Host.")
        if not self._policy.knows_host(context.host):
            raise ApiError(
                ToolError(
                    ErrorCode.FORBIDDEN,
                    "This server does not go by the name in the Host header.",
                    hint="The operator can add names with CLEATS_HTTP_HOSTS.",
                )
            )


class RequestContext:
    """The state of one request in the guard, and of its response."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.method: str = scope["method"]
        self.status = 0
        self.origin: str | None = None
        self.host = ""
        self.host_count = 0
        self.authorization = ""
        self.request_id: str | None = None
        self.caller = ""
        self.sent_bytes = 0
        self.origin_allowed = False
        self.path: str = scope["path"]
        self._send = send
        for name, value in scope["headers"]:
            if name == b"host":
                self.host = value.decode("latin-1")
                self.host_count += 1
            elif name == b"origin":
                self.origin = value.decode("latin-1")
            elif name == b"authorization":
                self.authorization = value.decode("latin-1")
            elif name == b"x-request-id":
                self.request_id = accept_request_id(value.decode("latin-1"))

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
        client = scope.get("client")
        return {
            "method": self.method[:MAX_TEXT_CHARS],
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "bytes": self.sent_bytes,
            "token": self.caller,
            "client": client[0] if client else None,
            "requestId": self.request_id,
        }

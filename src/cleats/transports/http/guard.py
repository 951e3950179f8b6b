"""The door of the API: every request passes here, whatever route it asks for.

The order is part of the contract: origin, preflight, token, host, rate, and only then a route of
the application that the token opens. What a route raises ends here too, so that no trace of it
leaves.
"""

import logging
from collections.abc import Mapping
from math import ceil
from time import monotonic
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cleats.contract.errors import ErrorCode, ToolError
from cleats.transports.http.lines import LONGEST, Write
from cleats.transports.http.metrics import Traffic
from cleats.transports.http.policy import Policy
from cleats.transports.http.rates import bucket
from cleats.transports.http.replies import Refusal, invalid, refused
from cleats.transports.http.requests import usable_id
from cleats.transports.http.rows import MCP_PATH, OTHER, label
from cleats.transports.http.toolset_routes import Addresses

log = logging.getLogger(__name__)

METHODS = b"GET, POST, OPTIONS"
HEADERS = b"Content-Type, Authorization"
MCP_METHODS = METHODS + b", DELETE"
MCP_HEADERS = (
    HEADERS + b", Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name"
)
PREFLIGHT_SECONDS = b"600"


class Guard:
    """The outermost ASGI application; behind it is one for every token, by its name."""

    def __init__(
        self,
        apps: Mapping[str, ASGIApp],
        policy: Policy,
        traffic: Traffic,
        addresses: Addresses,
        access: Write | None = None,
    ) -> None:
        self._apps = apps
        self._any = next(iter(apps.values()))
        self._policy = policy
        self._traffic = traffic
        self._addresses = addresses
        self._access = access
        self._buckets = {
            token.name: room for token in policy.tokens if (room := bucket(token)) is not None
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        passage = Passage(scope, send)
        traffic = self._traffic
        traffic.open += 1
        begun = monotonic()
        try:
            answer = self._answer(passage) or self._apps.get(passage.caller, self._any)
            await answer(scope, receive, passage.send)
        except Exception:
            log.exception("request.crash method=%s path=%r", scope["method"], scope["path"])
            if not passage.status:
                error = ToolError(ErrorCode.INTERNAL, "The request failed unexpectedly.")
                await refused(Refusal(error))(scope, receive, passage.send)
        finally:
            traffic.open -= 1
            route = label(passage.path)
            if route == OTHER:
                route = self._addresses.label(passage.path) or OTHER
            # No status: the client was gone before there was an answer.
            status, seconds = passage.status or 499, monotonic() - begun
            traffic.ended(scope["method"], route, status, seconds)
            if self._access is not None:
                self._access(passage.facts(scope, route, status, seconds))

    def _answer(self, passage: "Passage") -> Response | None:
        """What the door itself answers; None when the request may go in."""
        try:
            self._check_origin(passage)
            if passage.method == "OPTIONS":
                return self._preflight(passage.path)
            if self._policy.is_open(passage.method, passage.path):
                return None
            self._check_token(passage)
            self._check_host(passage)
            self._check_rate(passage)
        except Refusal as refusal:
            return refused(refusal)
        return None

    def _preflight(self, path: str) -> Response:
        """The answer to OPTIONS, for any path: a browser asks before it has a token to show."""
        mcp = path == MCP_PATH
        methods = MCP_METHODS if mcp else METHODS
        if (theirs := self._addresses.methods(path)) is not None:
            methods = ", ".join((*theirs, "OPTIONS")).encode()
        answer = Response(status_code=204)
        answer.raw_headers = [
            (b"access-control-allow-methods", methods),
            (b"access-control-allow-headers", MCP_HEADERS if mcp else HEADERS),
            (b"access-control-max-age", PREFLIGHT_SECONDS),
        ]
        return answer

    def _check_origin(self, passage: "Passage") -> None:
        origin = passage.origin
        if origin is None:
            return
        if not self._policy.allows_origin(origin, passage.host):
            raise Refusal(
                ToolError(
                    ErrorCode.FORBIDDEN,
                    "Pages of this origin may not use this server.",
                    hint="The operator can allow more with CLEATS_HTTP_ORIGINS.",
                ),
                headers={"vary": "Origin"},
            )
        passage.allowed = True

    def _check_token(self, passage: "Passage") -> None:
        token = self._policy.caller(passage.authorization)
        if token is None:
            given = passage.authorization
            raise Refusal(
                ToolError(
                    ErrorCode.UNAUTHORIZED,
                    "This is not the token." if given else "This server wants a token.",
                    hint="Send it as Authorization: Bearer TOKEN.",
                ),
                headers={"www-authenticate": "Bearer"},
            )
        passage.caller = token.name

    def _check_rate(self, passage: "Passage") -> None:
        room = self._buckets.get(passage.caller)
        if room is not None and (wait := room.take()):
            seconds = ceil(wait)
            raise Refusal(
                ToolError(
                    ErrorCode.RATE_LIMITED,
                    "This token has had its requests for now.",
                    hint=f"Try again in {seconds} s.",
                    details={"retryAfter": seconds},
                ),
                headers={"retry-after": str(seconds)},
            )

    def _check_host(self, passage: "Passage") -> None:
        if passage.hosts > 1:
            raise invalid("The request has more than one Host.")
        if not self._policy.knows_host(passage.host):
            raise Refusal(
                ToolError(
                    ErrorCode.FORBIDDEN,
                    "This server does not go by the name in the Host header.",
                    hint="The operator can add names with CLEATS_HTTP_HOSTS.",
                )
            )


class Passage:
    """One request on its way through the door, and its answer on the way back."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.method: str = scope["method"]
        self.status = 0
        self.origin: str | None = None
        self.host = ""
        self.hosts = 0
        self.authorization = ""
        self.request_id: str | None = None
        self.caller = ""
        self.sent = 0
        self.allowed = False
        self.path: str = scope["path"]
        self._send = send
        for name, value in scope["headers"]:
            if name == b"host":
                self.host = value.decode("latin-1")
                self.hosts += 1
            elif name == b"origin":
                self.origin = value.decode("latin-1")
            elif name == b"authorization":
                self.authorization = value.decode("latin-1")
            elif name == b"x-request-id":
                self.request_id = usable_id(value.decode("latin-1"))

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-content-type-options", b"nosniff")]
            if self.allowed and self.origin is not None:
                headers.append((b"access-control-allow-origin", self.origin.encode("latin-1")))
                headers.append((b"access-control-expose-headers", b"Mcp-Session-Id, Retry-After"))
                headers.append((b"vary", b"Origin"))
            message = {**message, "headers": headers}
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    def facts(self, scope: Scope, route: str, status: int, seconds: float) -> dict[str, Any]:
        """The request as the access log has it. Its address and body may hold secrets."""
        client = scope.get("client")
        return {
            "method": self.method[:LONGEST],
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "bytes": self.sent,
            "token": self.caller,
            "client": client[0] if client else None,
            "requestId": self.request_id,
        }

"""MCP over streamable HTTP, as one ASGI endpoint of a larger application.

Who may speak to it is decided before a request gets here, so the SDK's own checks of Host and
Origin are off.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from cleats.contract.versions import PROTOCOL_VERSION
from cleats.settings import Settings
from cleats.transports import jsonrpc
from cleats.transports.mcp.server import McpServer
from cleats.transports.nesting import too_deep

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class McpEndpoint:
    """What answers at `/mcp`."""

    def __init__(self, manager: StreamableHTTPSessionManager, *, pin: bool, limit: int) -> None:
        self._manager = manager
        self._pin = pin
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            body, more = await self._read(receive)
            if too_deep(body):  # the SDK would fail on it, and take the session along
                await _TOO_DEEP(scope, receive, send)
                return
            if self._pin and not more and _may_be_handshake(scope):
                scope, body = _pinned(scope, body)
            receive = _replayed(body, more=more, receive=receive)
        await self._manager.handle_request(scope, receive, send)

    async def _read(self, receive: Receive) -> tuple[bytes, bool]:
        """The body as far as it is looked at, and whether there is more of it."""
        body, more = b"", True
        while more and len(body) <= self._limit:
            message = await receive()
            if message["type"] != "http.request":
                break
            body += message.get("body", b"")
            more = message.get("more_body", False)
        return body, more


_TOO_DEEP: Final = Response(
    jsonrpc.error(None, jsonrpc.PARSE_ERROR, "Parse error: nested too deeply"),
    400,
    media_type="application/json",
)


def _may_be_handshake(scope: Scope) -> bool:
    return b"mcp-session-id" not in {name for name, _ in scope["headers"]}


def _pinned(scope: Scope, body: bytes) -> tuple[Scope, bytes]:
    """The same request, asking for the version that we answer every handshake with.

    The SDK has no setting for it, and an answer rewritten behind its back would leave the
    session in another version than the client.
    """
    if (asked := _handshake(body)) is None:
        return scope, body
    asked["params"]["protocolVersion"] = PROTOCOL_VERSION
    body = _encode(asked)
    headers = [each for each in scope["headers"] if each[0] != b"content-length"]
    headers.append((b"content-length", b"%d" % len(body)))
    return {**scope, "headers": headers}, body


def _handshake(body: bytes) -> dict[str, Any] | None:
    try:
        message = _decode(body)
    except ValueError:
        return None  # the SDK says what is wrong with it
    if not isinstance(message, dict) or message.get("method") != "initialize":
        return None
    params = message.get("params")
    return message if isinstance(params, dict) and "protocolVersion" in params else None


def _replayed(body: bytes, *, more: bool, receive: Receive) -> Receive:
    """A receive that gives what was read, and then goes on reading."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": more}

    async def again() -> Message:
        nonlocal first
        if first is not None:
            message, first = first, None
            return message
        return await receive()

    return again


@asynccontextmanager
async def streamable(server: McpServer, settings: Settings) -> AsyncIterator[McpEndpoint]:
    """The endpoint while its sessions live; when the block ends, so do they.

    Without `http_sessions` every request stands by itself: the next may go to another server.
    """
    # It logs the id of every session, which is all that a thief of the session would need.
    logging.getLogger("mcp.server").setLevel(logging.WARNING)
    manager = StreamableHTTPSessionManager(
        server,
        stateless=settings.http_sessions == "off",
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=settings.frame_limit,
    )
    async with manager.run():
        yield McpEndpoint(manager, pin=settings.protocol == "pin", limit=settings.frame_limit)

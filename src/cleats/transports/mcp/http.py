"""MCP over streamable HTTP, as one ASGI endpoint of a larger application.

Who may speak to it is decided before a request gets here, so the SDK's own checks of Host and
Origin are off.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from cleats.contract.versions import PROTOCOL_VERSION
from cleats.settings import Settings
from cleats.transports import jsonrpc
from cleats.transports.mcp import messages
from cleats.transports.mcp.refusals import coded
from cleats.transports.mcp.server import McpServer
from cleats.transports.parsing import NotJson, decode


class McpEndpoint:
    """What answers at `/mcp`."""

    def __init__(self, manager: StreamableHTTPSessionManager, *, pin: bool, limit: int) -> None:
        self._manager = manager
        self._pin = pin
        self._limit = limit
        self._open: set[tuple[bytes, str]] = set()
        """The requests that sessions wait for, by session and id."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._serve(scope, receive, send)
            return
        body, more = await self._read(receive)
        message = None if more else messages.read(body)  # too large, which the SDK says
        if isinstance(message, jsonrpc.Request):
            await self._request(scope, body, message, receive, send)
        elif isinstance(message, jsonrpc.Malformed):
            # The SDK takes NaN, takes a request with a bad id for a notification, and loses the
            # session over a body that is nested too deeply.
            await _refused(message)(scope, receive, send)
        else:
            await self._serve(scope, _replayed(body, more=more, receive=receive), send)

    async def _request(
        self,
        scope: Scope,
        body: bytes,
        request: jsonrpc.Request,
        receive: Receive,
        send: Send,
    ) -> None:
        if self._pin:
            scope, body = _pinned(scope, body, request)
        receive = _replayed(body, more=False, receive=receive)
        session = dict(scope["headers"]).get(b"mcp-session-id")
        if session is None:
            await self._serve(scope, receive, send)
            return
        key = (session, str(request.id))
        if key in self._open:  # the SDK would answer neither of the two, ever
            reason = f"the id {key[1]!r} belongs to a request that is still running"
            await _refused(messages.refusal(reason, request.id))(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body"):
                self._open.discard(key)  # who has the end of the answer may use the id again
            await send(message)

        self._open.add(key)
        try:
            await self._serve(scope, receive, answer)
        finally:
            self._open.discard(key)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, _coded(send))

    async def _read(self, receive: Receive) -> tuple[bytes, bool]:
        """The body as far as it is looked at, and whether there is more of it."""
        body, more = bytearray(), True
        while more and len(body) <= self._limit:
            message = await receive()
            if message["type"] != "http.request":
                break
            body += message.get("body", b"")
            more = message.get("more_body", False)
        return bytes(body), more


def _refused(message: jsonrpc.Malformed) -> Response:
    return Response(messages.refused(message), 400, None, "application/json")


def _pinned(scope: Scope, body: bytes, request: jsonrpc.Request) -> tuple[Scope, bytes]:
    """The same request; a handshake asks for the version that we answer every handshake with.

    The SDK has no setting for it, and an answer rewritten behind its back would leave the
    session in another version than the client.
    """
    params = request.params or {}
    if request.method != "initialize" or "protocolVersion" not in params:
        return scope, body
    params = {**params, "protocolVersion": PROTOCOL_VERSION}
    asked = {"jsonrpc": "2.0", "id": request.id, "method": request.method, "params": params}
    body = msgspec.json.encode(asked)
    return _resized(scope, body), body


def _resized(message: Scope | Message, body: bytes) -> Any:
    """A message whose headers are those of another body."""
    headers = [each for each in message["headers"] if each[0] != b"content-length"]
    return {**message, "headers": [*headers, (b"content-length", b"%d" % len(body))]}


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


def _coded(send: Send) -> Send:
    """A send that gives errors of the SDK's own, which no handler sees, their string code."""
    start: Message | None = None

    async def coding(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and message["status"] >= 400:
            start = message
            return
        if start is not None:
            if not message.get("more_body"):
                message = {**message, "body": _with_code(message.get("body", b""))}
                start = _resized(start, message["body"])
            await send(start)
            start = None
        await send(message)

    return coding


def _with_code(body: bytes) -> bytes:
    try:
        answer = decode(body)
        error = answer["error"]
        error["data"] = coded(error["code"], error.get("data"))
    except (NotJson, KeyError, TypeError):  # no JSON-RPC error, so there is no place for a code
        return body
    return msgspec.json.encode(answer)


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

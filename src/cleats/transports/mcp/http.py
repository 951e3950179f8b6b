"""MCP over streamable HTTP, as one ASGI endpoint of a larger application.

Access is checked before a request gets here, so the SDK's own checks of Host and Origin are off.
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
from cleats.transports.json_text import InvalidJsonError, decode_json
from cleats.transports.mcp import messages
from cleats.transports.mcp.messages import add_error_code
from cleats.transports.mcp.server import McpServer


class McpEndpoint:
    """The ASGI endpoint at `/mcp`."""

    def __init__(self, manager: StreamableHTTPSessionManager, *, pin: bool, limit: int) -> None:
        self._manager = manager
        self._pins_version = pin
        self._limit = limit
        self._open_requests: set[tuple[bytes, str]] = set()
        """The requests in flight, by session and id."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._forward_to_sdk(scope, receive, send)
            return
        body, has_more = await self._read_body(receive)
        message = None if has_more else messages.parse_message(body)  # too large, which the SDK reports
        if isinstance(message, jsonrpc.Request):
            await self._serve_request(scope, body, message, receive, send)
        elif isinstance(message, jsonrpc.MalformedMessage):
            # The SDK takes NaN, takes a request with a bad id for a notification, and loses the
            # session over a body that is nested too deeply.
            await _refusal_response(message)(scope, receive, send)
        else:
            await self._forward_to_sdk(scope, _replay_body(body, has_more=has_more, receive=receive), send)

    async def _serve_request(
        self,
        scope: Scope,
        body: bytes,
        request: jsonrpc.Request,
        receive: Receive,
        send: Send,
    ) -> None:
        if self._pins_version:
            scope, body = _pin_version(scope, body, request)
        receive = _replay_body(body, has_more=False, receive=receive)
        session = dict(scope["headers"]).get(b"mcp-session-id")
        if session is None:
            await self._forward_to_sdk(scope, receive, send)
            return
        key = (session, str(request.id))
        if key in self._open_requests:  # the SDK would never answer either of the two
            reason = f"the id {key[1]!r} belongs to a request that is still running"
            await _refusal_response(messages.malformed_request(reason, request.id))(scope, receive, send)
            return

        async def send_and_release(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body"):
                self._open_requests.discard(key)  # a client with the complete answer may reuse the id
            await send(message)

        self._open_requests.add(key)
        try:
            await self._forward_to_sdk(scope, receive, send_and_release)
        finally:
            self._open_requests.discard(key)

    async def _forward_to_sdk(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, _send_coded_errors(send))

    async def _read_body(self, receive: Receive) -> tuple[bytes, bool]:
        """Read the body up to the limit; return it, and whether more of it follows."""
        body, has_more = bytearray(), True
        while has_more and len(body) <= self._limit:
            message = await receive()
            if message["type"] != "http.request":
                break
            body += message.get("body", b"")
            has_more = message.get("more_body", False)
        return bytes(body), has_more


def _refusal_response(message: jsonrpc.MalformedMessage) -> Response:
    return Response(messages.encode_refusal(message), 400, None, "application/json")


def _pin_version(scope: Scope, body: bytes, request: jsonrpc.Request) -> tuple[Scope, bytes]:
    """Return the request; a handshake is changed to ask for the version that we always answer with.

    The SDK has no setting for it, and rewriting the answer instead would leave the session in
    another version than the client.
    """
    params = request.params or {}
    if request.method != "initialize" or "protocolVersion" not in params:
        return scope, body
    params = {**params, "protocolVersion": PROTOCOL_VERSION}
    message = {"jsonrpc": "2.0", "id": request.id, "method": request.method, "params": params}
    body = msgspec.json.encode(message)
    return _set_content_length(scope, body), body


def _set_content_length(message: Scope | Message, body: bytes) -> Any:
    """Return a message with the Content-Length of another body."""
    headers = [header for header in message["headers"] if header[0] != b"content-length"]
    return {**message, "headers": [*headers, (b"content-length", b"%d" % len(body))]}


def _replay_body(body: bytes, *, has_more: bool, receive: Receive) -> Receive:
    """Return a receive function that first returns the body already read, and then reads on."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": has_more}

    async def receive_replayed() -> Message:
        nonlocal first
        if first is not None:
            message, first = first, None
            return message
        return await receive()

    return receive_replayed


def _send_coded_errors(send: Send) -> Send:
    """Return a send function that adds the string code to errors that the SDK itself sends."""
    start: Message | None = None

    async def send_coded(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and message["status"] >= 400:
            start = message
            return
        if start is not None:
            if not message.get("more_body"):
                message = {**message, "body": _add_code_to_body(message.get("body", b""))}
                start = _set_content_length(start, message["body"])
            await send(start)
            start = None
        await send(message)

    return send_coded


def _add_code_to_body(body: bytes) -> bytes:
    try:
        answer = decode_json(body)
        error = answer["error"]
        error["data"] = add_error_code(error["code"], error.get("data"))
    except (InvalidJsonError, KeyError, TypeError):  # not a JSON-RPC error, so there is no field for a code
        return body
    return msgspec.json.encode(answer)


@asynccontextmanager
async def open_endpoint(server: McpServer, settings: Settings) -> AsyncIterator[McpEndpoint]:
    """Open the endpoint for the duration of the block; its sessions end with the block.

    Without `http_sessions` every request is independent: the next may go to another server.
    """
    # It logs the id of every session, which is enough to hijack the session.
    logging.getLogger("mcp.server").setLevel(logging.WARNING)
    manager = StreamableHTTPSessionManager(
        server,
        stateless=settings.http.sessions == "off",
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=settings.frame_limit,
    )
    async with manager.run():
        yield McpEndpoint(manager, pin=settings.protocol == "pin", limit=settings.frame_limit)

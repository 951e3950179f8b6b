"""MCP over streamable HTTP, as one ASGI endpoint of a larger application.

Access is checked before a request gets here, so the SDK's own checks of Host and Origin are off.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from cleats.contract.versions import PROTOCOL_VERSION
from cleats.settings import Settings
from cleats.transports import jsonrpc
from cleats.transports.http.requests import read_json_body, read_request_id
from cleats.transports.http.responses import ApiError, error_response
from cleats.transports.jsonrpc import InvalidJsonError, decode_json
from cleats.transports.mcp import dispatcher
from cleats.transports.mcp.dispatcher import add_error_code
from cleats.transports.mcp.server import McpServer

ANSWER_TIMEOUT_SECONDS = 5.0
"""The time that cancelled calls may take to clean up and be answered before their sessions end."""

ANSWER_CHECK_SECONDS = 0.02
"""The interval between two checks whether the last answer was sent."""


class McpEndpoint:
    """The ASGI endpoint at `/mcp`."""

    def __init__(self, manager: StreamableHTTPSessionManager, *, pin: bool, limit: int) -> None:
        self._manager = manager
        self._pins_version = pin
        self._limit = limit
        self._open_requests: set[tuple[bytes, str]] = set()
        """The requests in flight, by session and id."""
        self._unanswered_count = 0

    async def wait_until_answered(self) -> None:
        """Wait until the requests that were taken are answered, at most `ANSWER_TIMEOUT_SECONDS`."""
        with anyio.move_on_after(ANSWER_TIMEOUT_SECONDS):
            while self._unanswered_count:  # noqa: ASYNC110 - nothing signals that the SDK has sent an answer
                await anyio.sleep(ANSWER_CHECK_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._forward_to_sdk(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            body = await read_json_body(request, self._limit)
        except ApiError as api_error:  # as on every other route
            await error_response(api_error, read_request_id(request))(scope, receive, send)
            return
        message = dispatcher.parse_message(body)
        scope = _set_header(scope, b"content-type", b"application/json")  # the SDK takes no other spelling
        if isinstance(message, jsonrpc.Request):
            self._unanswered_count += 1
            try:
                await self._serve_request(scope, body, message, receive, send)
            finally:
                self._unanswered_count -= 1
        elif isinstance(message, jsonrpc.MalformedMessage):
            # The SDK takes NaN, takes a request with a bad id for a notification, and loses the session over a body
            # that is nested too deeply.
            await _refusal_response(message)(scope, receive, send)
        else:
            await self._forward_to_sdk(scope, _replay_body(body, receive), send)

    async def _serve_request(
        self, scope: Scope, body: bytes, request: jsonrpc.Request, receive: Receive, send: Send
    ) -> None:
        if self._pins_version:
            scope, body = _pin_version(scope, body, request)
        receive = _replay_body(body, receive)
        session = dict(scope["headers"]).get(b"mcp-session-id")
        if session is None:
            await self._forward_to_sdk(scope, receive, send)
            return
        key = (session, str(request.id))
        if key in self._open_requests:  # the SDK would never answer either of the two
            reason = f"the id {key[1]!r} belongs to a request that is still running"
            await _refusal_response(dispatcher.malformed_request(reason, request.id))(scope, receive, send)
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
        await self._manager.handle_request(scope, receive, _ErrorRewriter(send).send)


def _refusal_response(message: jsonrpc.MalformedMessage) -> Response:
    return Response(jsonrpc.encode_refusal(message), 400, None, "application/json")


def _pin_version(scope: Scope, body: bytes, request: jsonrpc.Request) -> tuple[Scope, bytes]:
    """Return the request; a handshake is changed to ask for the version that we always answer with.

    The SDK has no setting for it, and rewriting the answer instead would leave the session in another version than the
    client.
    """
    params = request.params or {}
    if request.method != "initialize" or "protocolVersion" not in params:
        return scope, body
    params = {**params, "protocolVersion": PROTOCOL_VERSION}
    message = {"jsonrpc": "2.0", "id": request.id, "method": request.method, "params": params}
    body = msgspec.json.encode(message)
    return _set_header(scope, b"content-length", b"%d" % len(body)), body


def _set_header(message: Scope | Message, name: bytes, value: bytes) -> Any:
    headers = [header for header in message["headers"] if header[0] != name]
    return {**message, "headers": [*headers, (name, value)]}


def _replay_body(body: bytes, receive: Receive) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_replayed() -> Message:
        return messages.pop() if messages else await receive()

    return receive_replayed


class _ErrorRewriter:
    """A filter of the SDK's responses: every JSON-RPC error gets its string code, a cancelled request no answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        """The start of a JSON response, which waits for the body, because that changes its length."""
        self._is_stream = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            media_type = dict(message["headers"]).get(b"content-type", b"")
            self._is_stream = media_type.startswith(b"text/event-stream")
            if not self._is_stream:
                self._start = message
                return
        elif self._is_stream:
            message = {**message, "body": _rewrite_event(message.get("body", b""))}
        elif self._start is not None:
            if not message.get("more_body"):
                message = {**message, "body": _rewrite_answer(message.get("body", b""))}
                self._start = _set_header(self._start, b"content-length", b"%d" % len(message["body"]))
            await self._send(self._start)
            self._start = None
        await self._send(message)


def _rewrite_event(event: bytes) -> bytes:
    """Return one event of a stream, or nothing if it answers a request that the client has cancelled."""
    head, mark, tail = event.partition(b"data: ")
    answer, newline, rest = tail.partition(b"\r\n")
    rewritten = _rewrite_answer(answer)
    return head + mark + rewritten + newline + rest if rewritten else b""


def _rewrite_answer(answer: bytes) -> bytes:
    """Return an answer, an error with its string code, or nothing for the error of a cancelled request."""
    if b'"error"' not in answer:
        return answer
    try:
        document = decode_json(answer)
        error = document["error"]
        if error["code"] == REQUEST_CANCELLED:
            return b""
        error["data"] = add_error_code(error["code"], error.get("data"))
    except (InvalidJsonError, KeyError, TypeError):  # not a JSON-RPC error, so there is no field for a code
        return answer
    return msgspec.json.encode(document)


@asynccontextmanager
async def open_endpoint(server: McpServer, settings: Settings) -> AsyncIterator[McpEndpoint]:
    """Open the endpoint until the block ends; without `http_sessions` every request is independent."""
    # It logs the id of every session, which is enough to hijack the session.
    logging.getLogger("mcp.server").setLevel(logging.WARNING)
    manager = StreamableHTTPSessionManager(
        server,
        stateless=settings.http.sessions == "off",
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=settings.http.body_limit,
    )
    async with manager.run():
        yield McpEndpoint(manager, pin=settings.protocol == "pin", limit=settings.http.body_limit)

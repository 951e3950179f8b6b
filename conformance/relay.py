"""Streamable HTTP in front of a stdio server, because the official suite only speaks HTTP.

`python -m conformance.relay COMMAND...` prints its address and serves until its stdin ends.

A handshake session has a child of its own, as a stdio client would start it. All stateless requests
go to one child, because a subscription and the call that triggers it are two POSTs; their ids are
made unique on the way in and restored on the way out. The relay adds only sessions and the status
that belongs to an error code: it checks no host, no header and no body, so the results of the suite
about those describe the relay and not the server.
"""

import asyncio
import itertools
import json
import sys
import uuid
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from conformance.listening import MCP_PATH, serve_app

Message: TypeAlias = dict[str, Any]

SPARE_CHILDREN = 2
"""The number of children started ahead of need, one for each core of a small machine, as a start
takes a second."""

MAX_SESSIONS = 4
"""The number of sessions kept open. The suite does not end its own, and its scenarios run in
sequence."""

EXIT_TIMEOUT_SECONDS = 5.0
"""Seconds for a child to exit by itself after its input is closed."""

MAX_LINE_BYTES = 64 << 20
"""The maximum length of one line of a child's output."""


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request on its way through a child."""

    wire_id: Any
    """The id on the pipe."""

    client_id: Any
    """The id in the POST."""

    progress_token: Any
    """The progress token."""

    frames: asyncio.Queue[Message] = field(default_factory=asyncio.Queue)


class RelayChild:
    """One stdio server and the requests that wait for its answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.unsolicited: asyncio.Queue[Message] = asyncio.Queue()
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._pending: dict[Any, PendingRequest] = {}
        self._pump = asyncio.create_task(self._read_output())

    @classmethod
    async def start(cls, command: Sequence[str]) -> "RelayChild":
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=MAX_LINE_BYTES)
        return cls(process)

    async def send(self, message: Message) -> None:
        # The end of a child is noticed by reading its output; here only the write fails.
        with suppress(ConnectionError):
            self._stdin.write(json.dumps(message).encode() + b"\n")
            await self._stdin.drain()

    async def send_request(self, message: Message, key: Any) -> PendingRequest:
        """Send a request under the id `key`; its frames arrive in the queue of the result."""
        meta = _get_meta(message)
        pending = PendingRequest(key, message["id"], meta.get("progressToken"))
        self._pending[key] = pending
        await self.send({**message, "id": key})
        return pending

    def forget_request(self, pending: PendingRequest) -> None:
        self._pending.pop(pending.wire_id, None)

    async def close(self) -> None:
        """Close the server's input, and kill the server if it does not exit."""
        self._stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), EXIT_TIMEOUT_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._pump

    async def _read_output(self) -> None:
        async for line in self._stdout:
            message = json.loads(line)
            self._choose_queue(message).put_nowait(message)
        for pending in self._pending.values():
            pending.frames.put_nowait(_build_error(pending.client_id, "The server has ended."))

    def _choose_queue(self, message: Message) -> asyncio.Queue[Message]:
        pending = self._find_request(message)
        return self.unsolicited if pending is None else pending.frames

    def _find_request(self, message: Message) -> PendingRequest | None:
        """Return the request that a frame belongs to, after restoring its id in the frame."""
        if _is_answer(message):
            pending = self._pending.get(message.get("id"))
            if pending is not None:
                message["id"] = pending.client_id
            return pending
        meta = _get_meta(message)
        if pending := self._pending.get(meta.get(SUBSCRIPTION_ID_META_KEY)):
            meta[SUBSCRIPTION_ID_META_KEY] = pending.client_id
            return pending
        token = (message.get("params") or {}).get("progressToken")
        for pending in self._pending.values():
            if token is not None and pending.progress_token == token:
                return pending
        # stdio does not tell which request a log message belongs to: assume the newest one.
        return next(reversed(self._pending.values()), None)


class StdioRelay:
    """Sessions of the handshake era, and one child for all stateless requests."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._ids = itertools.count(1)
        self._spares: deque[asyncio.Task[RelayChild]] = deque()
        self._sessions: dict[str, RelayChild] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._stateless: RelayChild

    @asynccontextmanager
    async def run_children(self) -> AsyncIterator[None]:
        """Keep children running while the block runs."""
        self._stateless = await RelayChild.start(self._command)
        # The first request decides the era of a stdio connection, so it is a stateless one.
        meta = {
            PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
            CLIENT_CAPABILITIES_META_KEY: {},
        }
        opening = {"jsonrpc": "2.0", "id": 0, "method": "server/discover"}
        pending = await self._stateless.send_request({**opening, "params": {"_meta": meta}}, 0)
        await pending.frames.get()
        self._stateless.forget_request(pending)
        self._start_spares()
        try:
            yield
        finally:
            spares = await asyncio.gather(*self._spares)
            children = [self._stateless, *self._sessions.values(), *spares]
            await asyncio.gather(*(child.close() for child in children), *self._closing)

    async def handle_request(self, request: Request) -> Response:
        """Answer one HTTP request."""
        session = request.headers.get("mcp-session-id", "")
        if request.method != "POST":
            return self._answer_without_body(request.method, session)
        message: Message = await request.json()
        version = request.headers.get("mcp-protocol-version")
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return await self._post_stateless(message)
        if message.get("method") == "initialize":
            session = uuid.uuid4().hex
            self._sessions[session] = await self._take_child()
        if session not in self._sessions:
            return JSONResponse(_build_error(None, "Session not found"), 404)
        return await self._post_to_session(self._sessions[session], session, message)

    def _answer_without_body(self, method: str, session: str) -> Response:
        if session not in self._sessions:
            return Response(status_code=404)
        if method == "GET":
            return _build_stream(_stream_unsolicited(self._sessions[session]))
        self._end_session(session)
        return Response(status_code=200)

    async def _post_to_session(self, child: RelayChild, session: str, message: Message) -> Response:
        if "id" not in message or _is_answer(message):
            await child.send(message)
            return Response(status_code=202)
        pending = await child.send_request(message, message["id"])
        return await _build_response(child, pending, {"mcp-session-id": session})

    async def _post_stateless(self, message: Message) -> Response:
        if "id" not in message or _is_answer(message):
            await self._stateless.send(message)
            return Response(status_code=202)
        pending = await self._stateless.send_request(message, f"relay-{next(self._ids)}")
        return await _build_response(self._stateless, pending, {}, stateless=True)

    async def _take_child(self) -> RelayChild:
        """Return a child that has not been used yet."""
        while len(self._sessions) >= MAX_SESSIONS:
            self._end_session(next(iter(self._sessions)))
        spare = self._spares.popleft()
        self._start_spares()
        return await spare

    def _start_spares(self) -> None:
        while len(self._spares) < SPARE_CHILDREN:
            self._spares.append(asyncio.create_task(RelayChild.start(self._command)))

    def _end_session(self, session: str) -> None:
        task = asyncio.create_task(self._sessions.pop(session).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _build_response(
    child: RelayChild, pending: PendingRequest, headers: dict[str, str], *, stateless: bool = False
) -> Response:
    """Respond with JSON if the answer is the first frame, else with a stream that ends with it."""
    first = await pending.frames.get()
    if not _is_answer(first):
        return _build_stream(_stream_frames(child, pending, first, stateless=stateless), headers)
    child.forget_request(pending)
    status = 200
    if stateless and "error" in first:
        status = ERROR_CODE_HTTP_STATUS.get(first["error"]["code"], status)
    return JSONResponse(first, status, headers=headers)


async def _stream_frames(
    child: RelayChild, pending: PendingRequest, first: Message, *, stateless: bool
) -> AsyncIterator[str]:
    message = first
    try:
        yield _format_event(message)
        while not _is_answer(message):
            message = await pending.frames.get()
            yield _format_event(message)
    finally:
        child.forget_request(pending)
        if stateless and not _is_answer(message):
            # Closing the stream cancels the request; on stdio this needs a notification.
            cancel = {"method": "notifications/cancelled", "params": {"requestId": pending.wire_id}}
            await asyncio.shield(child.send({"jsonrpc": "2.0", **cancel}))


async def _stream_unsolicited(child: RelayChild) -> AsyncIterator[str]:
    while True:
        yield _format_event(await child.unsolicited.get())


def _build_stream(frames: AsyncIterator[str], headers: dict[str, str] | None = None) -> Response:
    return StreamingResponse(frames, media_type="text/event-stream", headers=headers)


def _format_event(message: Message) -> str:
    return f"event: message\ndata: {json.dumps(message)}\n\n"


def _build_error(request_id: Any, reason: str) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": -32000, "message": reason}}


def _is_answer(message: Message) -> bool:
    return "method" not in message


def _get_meta(message: Message) -> Message:
    """Return the `_meta` of a message, for params of any shape."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


async def main(command: Sequence[str]) -> None:
    """Relay to children that run `command`, until stdin ends."""
    relay = StdioRelay(command)
    async with relay.run_children():
        await serve_app(Starlette(routes=[Route(MCP_PATH, relay.handle_request, methods=["GET", "POST", "DELETE"])]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))

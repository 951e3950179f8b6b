"""Streamable HTTP in front of a stdio server, because the official suite only speaks HTTP.

`python -m conformance.relay COMMAND...` prints its address and serves until its stdin ends.

A handshake session is one child of its own, as a stdio client would start it. All stateless
requests go to one child, because a subscription and the call that triggers it are two POSTs; their
ids are made unique on the way in and restored on the way out. The relay adds sessions and the
status that belongs to an error code, nothing else: it checks no host, no header and no body, so
what the suite measures of those here is the relay and not the server.
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

from conformance.listening import PATH, listen

Message: TypeAlias = dict[str, Any]

SPARES = 2
"""Children started ahead of need, one for each core of a small machine: a start takes a second."""

KEPT = 4
"""Sessions kept open. The suite does not end its own, and its scenarios run one after another."""

PATIENCE = 5.0
"""Seconds for a child to end by itself once its input is closed."""

LINE_LIMIT = 64 << 20
"""Bytes in one line of a child's output."""


@dataclass(slots=True, eq=False)
class Asked:
    """A request on its way through a child."""

    key: Any
    """Its id on the pipe."""

    original: Any
    """Its id in the POST."""

    token: Any
    """Its progress token."""

    frames: asyncio.Queue[Message] = field(default_factory=asyncio.Queue)


class Child:
    """One stdio server and the requests that wait for its answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.unsolicited: asyncio.Queue[Message] = asyncio.Queue()
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._open: dict[Any, Asked] = {}
        self._pump = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, command: Sequence[str]) -> "Child":
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, limit=LINE_LIMIT
        )
        return cls(process)

    async def send(self, message: Message) -> None:
        # A child that is gone says so through its output; here it only stops listening.
        with suppress(ConnectionError):
            self._stdin.write(json.dumps(message).encode() + b"\n")
            await self._stdin.drain()

    async def ask(self, message: Message, key: Any) -> Asked:
        """Send a request under the id `key`; its frames arrive in the queue of the answer."""
        meta = _meta(message)
        asked = Asked(key, message["id"], meta.get("progressToken"))
        self._open[key] = asked
        await self.send({**message, "id": key})
        return asked

    def forget(self, asked: Asked) -> None:
        self._open.pop(asked.key, None)

    async def close(self) -> None:
        """End the server: politely, then not."""
        self._stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), PATIENCE)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._pump

    async def _read(self) -> None:
        async for line in self._stdout:
            message = json.loads(line)
            self._route(message).put_nowait(message)
        for asked in self._open.values():
            asked.frames.put_nowait(_error(asked.original, "The server has ended."))

    def _route(self, message: Message) -> asyncio.Queue[Message]:
        asked = self._owner(message)
        return self.unsolicited if asked is None else asked.frames

    def _owner(self, message: Message) -> Asked | None:
        """The request that a frame belongs to, with its own id put back into the frame."""
        if _is_answer(message):
            asked = self._open.get(message.get("id"))
            if asked is not None:
                message["id"] = asked.original
            return asked
        meta = _meta(message)
        if asked := self._open.get(meta.get(SUBSCRIPTION_ID_META_KEY)):
            meta[SUBSCRIPTION_ID_META_KEY] = asked.original
            return asked
        token = (message.get("params") or {}).get("progressToken")
        for asked in self._open.values():
            if token is not None and asked.token == token:
                return asked
        # stdio does not say which request a log message belongs to: the newest one it is.
        return next(reversed(self._open.values()), None)


class Relay:
    """Sessions of the handshake era, and one child for all that has none."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._ids = itertools.count(1)
        self._spares: deque[asyncio.Task[Child]] = deque()
        self._sessions: dict[str, Child] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._stateless: Child

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Children are there while the block runs."""
        self._stateless = await Child.start(self._command)
        # The first request decides the era of a stdio connection, so it is a stateless one.
        meta = {
            PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
            CLIENT_CAPABILITIES_META_KEY: {},
        }
        opening = {"jsonrpc": "2.0", "id": 0, "method": "server/discover"}
        asked = await self._stateless.ask({**opening, "params": {"_meta": meta}}, 0)
        await asked.frames.get()
        self._stateless.forget(asked)
        self._stock()
        try:
            yield
        finally:
            spares = await asyncio.gather(*self._spares)
            children = [self._stateless, *self._sessions.values(), *spares]
            await asyncio.gather(*(child.close() for child in children), *self._closing)

    async def handle(self, request: Request) -> Response:
        """Answer one HTTP request."""
        session = request.headers.get("mcp-session-id", "")
        if request.method != "POST":
            return self._without_body(request.method, session)
        message: Message = await request.json()
        version = request.headers.get("mcp-protocol-version")
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return await self._stateless_post(message)
        if message.get("method") == "initialize":
            session = uuid.uuid4().hex
            self._sessions[session] = await self._fresh()
        if session not in self._sessions:
            return JSONResponse(_error(None, "Session not found"), 404)
        return await self._session_post(self._sessions[session], session, message)

    def _without_body(self, method: str, session: str) -> Response:
        if session not in self._sessions:
            return Response(status_code=404)
        if method == "GET":
            return _stream(_unsolicited(self._sessions[session]))
        self._end(session)
        return Response(status_code=200)

    async def _session_post(self, child: Child, session: str, message: Message) -> Response:
        if "id" not in message or _is_answer(message):
            await child.send(message)
            return Response(status_code=202)
        asked = await child.ask(message, message["id"])
        return await _answer(child, asked, {"mcp-session-id": session})

    async def _stateless_post(self, message: Message) -> Response:
        if "id" not in message or _is_answer(message):
            await self._stateless.send(message)
            return Response(status_code=202)
        asked = await self._stateless.ask(message, f"relay-{next(self._ids)}")
        return await _answer(self._stateless, asked, {}, stateless=True)

    async def _fresh(self) -> Child:
        """A child that nobody has talked to yet."""
        while len(self._sessions) >= KEPT:
            self._end(next(iter(self._sessions)))
        spare = self._spares.popleft()
        self._stock()
        return await spare

    def _stock(self) -> None:
        while len(self._spares) < SPARES:
            self._spares.append(asyncio.create_task(Child.start(self._command)))

    def _end(self, session: str) -> None:
        task = asyncio.create_task(self._sessions.pop(session).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _answer(
    child: Child, asked: Asked, headers: dict[str, str], *, stateless: bool = False
) -> Response:
    """JSON when the answer is all there is, else a stream of frames that ends with it."""
    first = await asked.frames.get()
    if not _is_answer(first):
        return _stream(_frames(child, asked, first, stateless=stateless), headers)
    child.forget(asked)
    status = 200
    if stateless and "error" in first:
        status = ERROR_CODE_HTTP_STATUS.get(first["error"]["code"], status)
    return JSONResponse(first, status, headers=headers)


async def _frames(
    child: Child, asked: Asked, first: Message, *, stateless: bool
) -> AsyncIterator[str]:
    message = first
    try:
        yield _event(message)
        while not _is_answer(message):
            message = await asked.frames.get()
            yield _event(message)
    finally:
        child.forget(asked)
        if stateless and not _is_answer(message):
            # To close the stream is to cancel the request; on stdio a notification says so.
            cancel = {"method": "notifications/cancelled", "params": {"requestId": asked.key}}
            await asyncio.shield(child.send({"jsonrpc": "2.0", **cancel}))


async def _unsolicited(child: Child) -> AsyncIterator[str]:
    while True:
        yield _event(await child.unsolicited.get())


def _stream(frames: AsyncIterator[str], headers: dict[str, str] | None = None) -> Response:
    return StreamingResponse(frames, media_type="text/event-stream", headers=headers)


def _event(message: Message) -> str:
    return f"event: message\ndata: {json.dumps(message)}\n\n"


def _error(request_id: Any, reason: str) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": -32000, "message": reason}}


def _is_answer(message: Message) -> bool:
    return "method" not in message


def _meta(message: Message) -> Message:
    """The `_meta` of a message, whatever shape its params have."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


async def main(command: Sequence[str]) -> None:
    """Relay to children that run `command`, until stdin ends."""
    relay = Relay(command)
    async with relay.running():
        await listen(
            Starlette(routes=[Route(PATH, relay.handle, methods=["GET", "POST", "DELETE"])])
        )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))

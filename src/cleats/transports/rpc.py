"""The rpc wire: JSON-RPC 2.0, one request a line, the method is the tool.

Requests are answered one at a time and in the order they came. While one runs the next ones wait,
and when enough of them wait we stop reading, so that a client which sends faster than we work
fills its own pipe and not our memory. Every answer is a `result`: what a tool could not do is in
its payload; a JSON-RPC error is only for what was no request.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Failed, Outcome
from cleats.contract.payload import FLAT, Answer, Meta
from cleats.runtime.call import Call
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.shutdown import Shutdown
from cleats.transports import draining, jsonrpc
from cleats.transports.framing import Lines, TooLarge
from cleats.transports.stdio import Wire

log = logging.getLogger(__name__)

TOO_LARGE: Final[Mapping[str, Any]] = {
    "ok": False,
    "reason": "validation_failed",
    "errors": [{"path": "", "msg": "payload_too_large"}],
}

END_OF_INPUT: Final = "end of input"

_encode = msgspec.json.Encoder(enc_hook=str).encode


class PatientWire(Wire, Protocol):
    """A wire whose reading can be held up."""

    def pause(self) -> None:
        """Read nothing for now."""

    def resume(self) -> None:
        """Read on."""


async def serve(
    dispatcher: Dispatcher, wire: PatientWire, *, limit: int, drain: float, shutdown: Shutdown
) -> None:
    """Serve one client until it leaves or the server is asked to stop.

    When the input ends, everything that was read is answered. When a signal comes, the request
    that runs is finished however long that takes (its own timeout ends it), and those that wait
    are answered as far as `drain` seconds allow.
    """
    await Line(dispatcher, wire, limit=limit, drain=drain, shutdown=shutdown).run()


class Line:
    """One client's requests, in line."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        wire: PatientWire,
        *,
        limit: int,
        drain: float,
        shutdown: Shutdown,
    ) -> None:
        self._dispatcher = dispatcher
        self._wire = wire
        self._lines = Lines(limit)
        self._limit = limit
        self._drain = drain
        self._shutdown = shutdown
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes | TooLarge] = deque()
        self._held = 0
        self._paused = False
        self._closing = float("inf")
        self._worker: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve until the end, and leave nothing unsent."""
        self._wire.receive(self._received)
        await self._shutdown.asked.wait()
        self._wire.stop()
        patience = None
        if self._shutdown.reason != END_OF_INPUT:
            patience = self._drain
            self._closing = self._loop.time() + patience
        if self._worker is not None:
            await self._worker
        await draining.flush(self._wire, within=patience)

    def _received(self, chunk: bytes) -> None:
        for frame in self._lines.feed(chunk) if chunk else self._lines.close():
            self._waiting.append(frame)
            self._held += _size(frame)
        if not chunk:
            self._shutdown.ask(END_OF_INPUT)
        elif self._held > self._limit:
            self._paused = True
            self._wire.pause()
        if self._waiting and self._worker is None:
            self._worker = self._loop.create_task(self._work())

    async def _work(self) -> None:
        """Answer whatever waits, then end; the next bytes start another worker."""
        while self._waiting and self._loop.time() < self._closing:
            frame = self._waiting.popleft()
            self._held -= _size(frame)
            if self._paused and self._held <= self._limit // 2:
                self._paused = False
                self._wire.resume()
            answer = await self._answer(frame)
            if answer is not None:
                self._wire.write(answer + b"\n")
            if self._waiting:
                await asyncio.sleep(0)  # a long line must not keep signals from being heard
        if self._waiting:
            log.warning("drain.cut requests=%d after=%gs", len(self._waiting), self._drain)
        self._worker = None

    async def _answer(self, frame: bytes | TooLarge) -> bytes | None:
        """One frame to one answer; None for what is not answered. Never raises."""
        if isinstance(frame, TooLarge):
            return _result(None, TOO_LARGE)  # whose it is stands in what was not read
        match message := jsonrpc.parse(frame):
            case jsonrpc.Request(id=float()):
                return await self._call(message, jsonrpc.written_id(frame))
            case jsonrpc.Request():
                return await self._call(message, message.id)
            case jsonrpc.Notification():
                await self._call(message, None)
                return None
            case jsonrpc.Malformed():
                return jsonrpc.error(message.id, message.code, message.reason)
            case jsonrpc.Response():
                # We ask nothing, so it answers nothing. Refusing it would let two servers that
                # were plugged into each other talk for ever.
                log.debug("response.dropped id=%r", message.id)
                return None

    async def _call(
        self,
        message: jsonrpc.Request | jsonrpc.Notification,
        echoed: jsonrpc.Id | msgspec.Raw | None,
    ) -> bytes:
        shown = str(message.id) if isinstance(message, jsonrpc.Request) else None
        call = Call(
            tool=message.method,
            arguments=message.params or {},
            id=shown,
            surface="rpc",
            meta=Meta(request_id=shown),
        )
        outcome = await self._dispatcher.dispatch(call)
        try:
            return _result(echoed, _body(self._seal(call, outcome)))
        except (TypeError, ValueError, OverflowError, RecursionError):
            log.exception("answer.unspeakable tool=%s", call.tool)
            unspeakable = Failed(ToolError(ErrorCode.INTERNAL, "The tool's answer is not JSON."))
            return _result(echoed, _body(self._seal(call, unspeakable)))

    def _seal(self, call: Call, outcome: Outcome) -> Answer:
        try:
            payload = self._dispatcher.registry.find(call.tool).payload
        except ToolError:
            payload = FLAT  # no tool, so no shape of its own
        return payload.seal(outcome, call.meta)


def _size(frame: bytes | TooLarge) -> int:
    return len(frame) if isinstance(frame, bytes) else 0


def _body(answer: Answer) -> Mapping[str, Any] | None:
    """The answer as one object; content blocks, which have no `ok`, get one."""
    if answer.content is None:
        return answer.body
    body: dict[str, Any] = {"ok": answer.ok, "content": list(answer.content)}
    return body if answer.ok else {**body, "error": answer.body}


def _result(echoed: object, body: Mapping[str, Any] | None) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": echoed, "result": body})

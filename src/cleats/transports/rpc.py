"""The rpc wire: JSON-RPC 2.0, one request per line, the method is the tool.

Requests are answered one at a time and in order. While one runs, the next ones wait, and when enough of them wait we
stop reading, so that a client which sends faster than we work fills its own pipe and not our memory. Every answer is a
`result`: a tool's failure is part of its payload; a JSON-RPC error is only for invalid requests.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cleats.contract.outcome import Outcome
from cleats.contract.payload import FLAT, Answer, AnswerMeta
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.shutdown import Shutdown
from cleats.transports import jsonrpc, lifecycle
from cleats.transports.framing import LineFramer, OversizedFrame
from cleats.transports.stdio import Wire

log = logging.getLogger(__name__)

_OVERSIZED_FRAME_ERRORS: Final = [{"path": "", "msg": "payload_too_large"}]
OVERSIZED_FRAME_PAYLOAD: Final = {"ok": False, "reason": "validation_failed", "errors": _OVERSIZED_FRAME_ERRORS}

END_OF_INPUT: Final = "end of input"


class RpcConnection:
    """One client's requests, answered in order.

    When the input ends, everything that was read is answered. When a signal comes, the running request is finished
    however long that takes (its own timeout ends it), and the waiting ones are answered as far as `drain` seconds
    allow.
    """

    def __init__(self, dispatcher: Dispatcher, wire: Wire, *, limit: int, drain: float, shutdown: Shutdown) -> None:
        self._dispatcher, self._wire, self._shutdown = dispatcher, wire, shutdown
        self._framer = LineFramer(limit)
        self._limit, self._drain_seconds = limit, drain
        self._loop = asyncio.get_running_loop()
        self._queued_frames: deque[bytes | OversizedFrame] = deque()
        self._queued_bytes = 0
        self._paused = False
        self._deadline = float("inf")
        self._worker: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve until the end and send every answer."""
        self._wire.receive(self._receive_chunk)
        await self._shutdown.requested.wait()
        self._wire.stop()
        timeout_seconds = None
        if self._shutdown.reason != END_OF_INPUT:
            timeout_seconds = self._drain_seconds
            self._deadline = self._loop.time() + timeout_seconds
        if self._worker is not None:
            await self._worker
        await lifecycle.flush_wire(self._wire, timeout_seconds=timeout_seconds)

    def _receive_chunk(self, chunk: bytes) -> None:
        for frame in self._framer.feed(chunk) if chunk else self._framer.close():
            self._queued_frames.append(frame)
            self._queued_bytes += _count_bytes(frame)
        if not chunk:
            self._shutdown.request(END_OF_INPUT)
        elif self._queued_bytes > self._limit:
            self._paused = True
            self._wire.pause()
        if self._queued_frames and self._worker is None:
            self._worker = self._loop.create_task(self._answer_queue())

    async def _answer_queue(self) -> None:
        """Answer all queued frames, then end; the next bytes start another worker."""
        while self._queued_frames and self._loop.time() < self._deadline:
            frame = self._queued_frames.popleft()
            self._queued_bytes -= _count_bytes(frame)
            if self._paused and self._queued_bytes <= self._limit // 2:
                self._paused = False
                self._wire.resume()
            if (answer := await self._answer_frame(frame)) is not None:
                self._wire.write(answer + b"\n")
            if self._queued_frames:
                await asyncio.sleep(0)  # a long queue must not delay signals
        if self._queued_frames:
            log.warning("drain.cut requests=%d after=%gs", len(self._queued_frames), self._drain_seconds)
        self._worker = None

    async def _answer_frame(self, frame: bytes | OversizedFrame) -> bytes | None:
        """Return the answer to one frame, or None if it gets none. Never raises."""
        if isinstance(frame, OversizedFrame):
            return _encode_result(None, OVERSIZED_FRAME_PAYLOAD)  # the id is in the part that was not read
        match message := jsonrpc.parse_message(frame):
            case jsonrpc.Request(id=float() | 0):
                return await self._run_call(message, jsonrpc.read_raw_id(frame))
            case jsonrpc.Request():
                return await self._run_call(message, message.id)
            case jsonrpc.Notification():
                await self._run_call(message, None)
                return None
            case jsonrpc.MalformedMessage():
                raw_id = None if message.id is None else jsonrpc.read_raw_id(frame)
                return jsonrpc.encode_refusal(message, raw_id)
            case jsonrpc.Response():
                # We send no requests, so this answers none. Refusing it would let two servers that are connected to
                # each other exchange errors for ever.
                log.debug("response.dropped id=%r", message.id)
                return None

    async def _run_call(
        self, message: jsonrpc.Request | jsonrpc.Notification, response_id: jsonrpc.RequestId | msgspec.Raw | None
    ) -> bytes:
        request_id = str(message.id) if isinstance(message, jsonrpc.Request) else None
        meta = AnswerMeta(request_id=request_id)
        call = ToolCall(tool=message.method, arguments=message.params or {}, id=request_id, surface="rpc", meta=meta)
        outcome = await self._dispatcher.dispatch(call)
        tool = self._dispatcher.registry.get(call.tool)
        payload = tool.payload if tool else FLAT

        def encode(outcome: Outcome) -> bytes:
            return _encode_result(response_id, _render_body(payload.render_outcome(outcome, call.meta)))

        return jsonrpc.render_encodable(encode, outcome, tool=call.tool)


def _count_bytes(frame: bytes | OversizedFrame) -> int:
    return len(frame) if isinstance(frame, bytes) else 0


def _render_body(answer: Answer) -> Mapping[str, Any] | None:
    """Return the answer as one object; content blocks, which have no `ok`, get one."""
    if answer.content is None:
        return answer.body
    body: dict[str, Any] = {"ok": answer.ok, "content": list(answer.content)}
    return body if answer.ok else {**body, "error": answer.body}


def _encode_result(response_id: object, body: Mapping[str, Any] | None) -> bytes:
    return jsonrpc.encode_answer({"jsonrpc": "2.0", "id": response_id, "result": body})

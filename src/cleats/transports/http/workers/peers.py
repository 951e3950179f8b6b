"""Requests that one worker hands to another, over a Unix socket in a folder that only this user can open.

A frame is its length in four bytes and a MessagePack value. The first one names the target and holds the request; then
the messages of ASGI go both ways, as they are. Either side may close the connection, which is a disconnect.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cleats.contract.errors import ErrorCode, ToolError
from cleats.transports.http.responses import ApiError, error_response

log = logging.getLogger(__name__)

FIGURES_TARGET: Final = "figures"
"""The target that answers with the figures of a worker, in one frame."""

LENGTH_BYTES: Final = 4

MAX_QUEUED_MESSAGES: Final = 4
"""The parts of a request that wait for the application; the rest waits in the socket."""

CONNECT_SECONDS: Final = 5.0
"""The time that a worker which is being restarted has to come back."""

CONNECT_RETRY_SECONDS: Final = 0.05

MAX_PENDING_EXCHANGES: Final = 4096
"""The requests of other workers that may wait to be accepted; the system may allow fewer."""

FIGURES_SECONDS: Final = 5.0
"""The time that another worker has to answer with its figures, on a busy machine."""

_SCOPE_NAMES: Final = (
    "type", "http_version", "method", "scheme", "path", "raw_path", "query_string", "root_path",
    "headers", "client", "server",
)  # fmt: skip

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class UnreachableWorkerError(Exception):
    """Raised when the worker that should answer is not there."""


class WorkerPeers:
    """The other workers of a server, and this worker as they see it."""

    def __init__(self, folder: Path, slot: int, count: int) -> None:
        self.slot, self.count = slot, count
        self._folder = folder
        self._server: asyncio.AbstractServer | None = None
        self._targets: Mapping[str, ASGIApp] = {}
        self._answers: set[asyncio.Task[None]] = set()
        self.forwarded_count = 0
        """The requests with an end that other workers are answering; streams of events are not counted."""
        self._encode_figures: Callable[[], bytes] = bytes

    async def serve(self, targets: Mapping[str, ASGIApp], encode_figures: Callable[[], bytes]) -> None:
        """Answer the other workers from now on."""
        self._targets, self._encode_figures = targets, encode_figures
        path = self._socket_path(self.slot)
        path.unlink(missing_ok=True)  # of a worker that has crashed
        self._server = await asyncio.start_unix_server(self._start_answer, path, backlog=MAX_PENDING_EXCHANGES)

    async def close(self, timeout_seconds: float) -> None:
        """Answer no further request, and give the answers in progress some time to be sent."""
        if self._server is not None:
            self._server.close()
        if self._answers:
            _, unsent_answers = await asyncio.wait(self._answers, timeout=timeout_seconds)
            for answer in unsent_answers:
                answer.cancel()

    async def forward(
        self, slot: int, target: str, scope: Scope, receive: Receive, send: Send, *, waits: bool = False
    ) -> None:
        """Let another worker answer a request; with `waits`, for a while also one that is being restarted.

        Raises:
            UnreachableWorkerError: The worker is not there; nothing was sent.
        """
        reader, writer = await self._connect(slot, CONNECT_SECONDS if waits else 0.0)
        exchange = _Exchange(reader, writer, receive, send)
        counted = scope["method"] != "GET"
        self.forwarded_count += counted
        try:
            _write_frame(writer, {"target": target, "scope": {name: scope.get(name) for name in _SCOPE_NAMES}})
            await exchange.run()
        finally:
            self.forwarded_count -= counted
            writer.close()
        if not exchange.is_answered and not exchange.is_abandoned:
            if exchange.is_started:
                raise ConnectionError(f"worker {slot} ended while it answered")
            error = ToolError(ErrorCode.UNAVAILABLE, "The process that answered this request has ended.")
            await error_response(ApiError(error))(scope, receive, send)

    async def read_figures(self, slot: int) -> bytes | None:
        """Return the figures of another worker; None if it does not answer."""
        try:
            async with asyncio.timeout(FIGURES_SECONDS):
                reader, writer = await self._connect(slot, 0.0)
                try:
                    _write_frame(writer, {"target": FIGURES_TARGET})
                    return await _read_frame(reader)
                finally:
                    writer.close()
        except (TimeoutError, UnreachableWorkerError):
            return None

    def _socket_path(self, slot: int) -> Path:
        return self._folder / f"{slot}.sock"

    async def _connect(self, slot: int, seconds: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        started_at = asyncio.get_running_loop().time()
        deadline = started_at + seconds
        while True:
            try:
                return await asyncio.open_unix_connection(self._socket_path(slot))
            except BlockingIOError as error:  # it is there, but has too many requests to accept
                if asyncio.get_running_loop().time() >= max(deadline, started_at + CONNECT_SECONDS):
                    raise UnreachableWorkerError from error
            except OSError as error:
                if asyncio.get_running_loop().time() >= deadline:
                    raise UnreachableWorkerError from error
            await asyncio.sleep(CONNECT_RETRY_SECONDS)

    def _start_answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = asyncio.get_running_loop().create_task(self._answer(reader, writer))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            frame = await _read_frame(reader)
            if frame is None:
                return
            request = _decode(frame)
            if request["target"] == FIGURES_TARGET:
                _write_raw_frame(writer, self._encode_figures())
                await writer.drain()
            else:
                await _run_application(self._targets[request["target"]], request["scope"], reader, writer)
        except ConnectionError:
            pass  # the other worker has gone
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()  # so that the answer is complete before this process ends


class _Exchange:
    """One request in the worker that has the client."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, receive: Receive, send: Send
    ) -> None:
        self._reader, self._writer, self._receive, self._send = reader, writer, receive, send
        self.is_started = self.is_answered = self.is_abandoned = False

    async def run(self) -> None:
        """Pass messages on until the other worker has answered or the client has gone."""
        sending = asyncio.get_running_loop().create_task(self._send_request())
        try:
            while (frame := await _read_frame(self._reader)) is not None:
                message = _decode(frame)
                self.is_started = True
                self.is_answered = message["type"] == "http.response.body" and not message.get("more_body")
                await self._send(message)
        finally:
            sending.cancel()

    async def _send_request(self) -> None:
        with suppress(ConnectionError):  # the answer says what became of the request
            while (message := await self._receive())["type"] != "http.disconnect":
                _write_frame(self._writer, message)
                await self._writer.drain()
            self.is_abandoned = True
            self._writer.close()


async def _run_application(
    app: ASGIApp, scope: Scope, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    scope = {**scope, "asgi": {"version": "3.0", "spec_version": "2.3"}, "state": {}}
    scope["headers"] = [(name, value) for name, value in scope["headers"]]
    messages: asyncio.Queue[Message] = asyncio.Queue(MAX_QUEUED_MESSAGES)

    async def read_messages() -> None:
        frame: bytes | None = b""
        while frame is not None:
            frame = await _read_frame(reader)
            await messages.put({"type": "http.disconnect"} if frame is None else _decode(frame))

    is_disconnected = False

    async def receive() -> Message:
        nonlocal is_disconnected
        if is_disconnected:
            return {"type": "http.disconnect"}
        message = await messages.get()
        is_disconnected = message["type"] == "http.disconnect"
        return message

    async def send(message: Message) -> None:
        with suppress(ConnectionError):  # as with a client that has gone
            _write_frame(writer, message)
            await writer.drain()

    reading = asyncio.get_running_loop().create_task(read_messages())
    try:
        await app(scope, receive, send)
    except Exception:
        log.exception("forwarded.crash method=%s path=%r", scope["method"], scope["path"])
    finally:
        reading.cancel()


async def _read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """Return the next frame, or None at the end."""
    try:
        length = int.from_bytes(await reader.readexactly(LENGTH_BYTES))
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _write_frame(writer: asyncio.StreamWriter, value: Any) -> None:
    _write_raw_frame(writer, _encode(value))


def _write_raw_frame(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(len(frame).to_bytes(LENGTH_BYTES) + frame)

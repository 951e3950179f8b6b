"""The SDK's `Dispatcher` over our own wire.

Owns request ids, the one answer each request gets, cancellation and the drain at the end. It
takes the place of the SDK's stream dispatcher because that one drops malformed lines, loses
answers at the end of input and spends most of a call's time in memory streams. What a method
means stays with the SDK's runner above.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.abc
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    run_notify_intercept,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.call import InFlight
from cleats.runtime.shutdown import Shutdown
from cleats.transports import draining, jsonrpc
from cleats.transports.framing import Lines, TooLarge
from cleats.transports.mcp import messages
from cleats.transports.mcp.inbound import Inbound, Outbound
from cleats.transports.mcp.refusals import coded, from_exception
from cleats.transports.stdio import Wire

log = logging.getLogger(__name__)

_STOPPING = MCPError(
    -32000,
    "The server is shutting down and could not finish this in time.",
    {"code": ErrorCode.CANCELLED.name, "hint": "Raise CLEATS_DRAIN to give calls longer."},
)


class WireDispatcher(Outbound, Dispatcher[TransportContext]):
    """Frames in, answers out, for one connection."""

    def __init__(
        self,
        wire: Wire,
        *,
        limit: int,
        drain: float,
        shutdown: Shutdown,
        stopping: Callable[[], None] = lambda: None,
    ) -> None:
        self._wire = wire
        self._lines = Lines(limit)
        self._drain_for = drain
        self._shutdown = shutdown
        self._stopping = stopping
        self._open: InFlight[Inbound] = InFlight()
        self._hearing: set[asyncio.Task[None]] = set()
        self._unwritten: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._on_request: OnRequest
        self._on_notify: OnNotify
        self._intercept: OnNotifyIntercept | None = None

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until the input ends or a shutdown is asked for, then drain."""
        self._on_request = on_request
        self._on_notify = on_notify
        self._intercept = on_notify_intercept
        task_status.started()
        self._wire.receive(self._received)
        await self._shutdown.asked.wait()
        self._wire.stop()
        self._stopping()
        await self._drain()

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002 - no option applies to a plain wire
    ) -> None:
        self._write(jsonrpc.notification(method, params))

    def _received(self, chunk: bytes) -> None:
        frames = self._lines.feed(chunk) if chunk else self._lines.close()
        for frame in frames:
            if isinstance(frame, TooLarge):
                self._message(messages.refusal(f"over the limit of {frame.limit} bytes"))
            else:
                self._message(messages.read(frame))
        if not chunk:
            self._shutdown.ask("end of input")

    def _message(self, message: jsonrpc.Message) -> None:
        match message:
            case jsonrpc.Request():
                self._request(message)
            case jsonrpc.Notification():
                self._notification(message)
            case jsonrpc.Malformed():
                self._write(messages.refused(message))
            case jsonrpc.Response():
                # We ask nothing, so it answers nothing. Dropped rather than refused, so that two
                # confused peers cannot keep each other busy with errors.
                log.debug("response.dropped id=%r", message.id)

    def _request(self, request: jsonrpc.Request) -> None:
        inbound = Inbound(self, request.id, request.params)
        try:
            self._open.add(request.id, inbound)
        except ToolError as error:
            self._message(messages.refusal(error.message, request.id))
            return
        inbound.task = self._loop.create_task(self._serve(inbound, request))

    def _notification(self, message: jsonrpc.Notification) -> None:
        if message.method == "notifications/cancelled":
            request_id = (message.params or {}).get("requestId")
            if jsonrpc.is_id(request_id):
                self._open.cancel(request_id)
        if not run_notify_intercept(self._intercept, message.method, message.params):
            work = self._heard(Inbound(self, None, message.params), message)
            task = self._loop.create_task(work)
            self._hearing.add(task)
            task.add_done_callback(self._hearing.discard)

    async def _serve(self, inbound: Inbound, request: jsonrpc.Request) -> None:
        """The one place where a request becomes an answer, whatever happened to it."""
        inbound.running = True
        try:
            if inbound.cancelled:
                raise asyncio.CancelledError  # noqa: TRY301 - withdrawn before it began
            result = await self._on_request(inbound, request.method, request.params)
            answer = jsonrpc.result(request.id, result)
        except asyncio.CancelledError:
            answer = _error(request.id, _STOPPING)  # not written when the client cancelled
        except Exception as crash:  # noqa: BLE001 - the boundary
            answer = _error(request.id, from_exception(crash, request.method))
        inbound.closed = True
        self._open.discard(request.id)
        if not inbound.cancelled:
            self._write(answer)

    async def _heard(self, inbound: Inbound, message: jsonrpc.Notification) -> None:
        try:
            await self._on_notify(inbound, message.method, message.params)
        except Exception:
            log.exception("notification.crash method=%s", message.method)

    def _write(self, body: bytes) -> None:
        """Send a lone answer at once; gather those that come together into one write."""
        if not self._unwritten and not self._open:
            self._wire.write(body + b"\n")
            return
        if not self._unwritten:
            self._loop.call_soon(self._flush)
        self._unwritten += (body, b"\n")

    def _flush(self) -> None:
        if self._unwritten:
            self._wire.write(b"".join(self._unwritten))
            self._unwritten = []

    async def _drain(self) -> None:
        """Finish what is in flight; answer what does not finish; leave nothing unsent."""
        await draining.finish(self._wire, self._working, self._stop, within=self._drain_for)
        self._flush()
        await draining.flush(self._wire, within=self._drain_for)

    def _stop(self) -> None:
        for request in self._open:
            request.stop()

    def _working(self) -> set[asyncio.Task[None]]:
        return self._hearing | {inbound.task for inbound in self._open if inbound.task is not None}


def _error(request_id: jsonrpc.Id, error: MCPError) -> bytes:
    data = coded(error.error.code, error.error.data)
    return jsonrpc.error(request_id, error.error.code, error.error.message, data)

"""The SDK's `Dispatcher` over our own wire.

Owns request ids, the one answer to each request, cancellation and the drain at the end. It replaces the SDK's stream
dispatcher because that one drops malformed lines, loses answers at the end of input and spends most of a call's time in
memory streams. The SDK's runner above still defines what each method means.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import anyio
import anyio.abc
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest, run_notify_intercept
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data, progress_token_from_params
from mcp.shared.transport_context import TransportContext

from cleats.contract.errors import INTERNAL_ERROR, ErrorCode, ToolError
from cleats.runtime.call import InFlightRequests, ToolCall
from cleats.runtime.shutdown import Shutdown
from cleats.transports import jsonrpc, lifecycle
from cleats.transports.framing import OversizedFrame
from cleats.transports.mcp.handshake import Handshake
from cleats.transports.stdio import Wire

log = logging.getLogger(__name__)


def parse_message(body: bytes) -> jsonrpc.RpcMessage:
    """Parse one body into one message, by JSON-RPC's rules, but for ids: a fraction is not valid. Never raises."""
    message = jsonrpc.parse_message(body)
    if isinstance(message, jsonrpc.Request) and isinstance(message.id, float):
        return malformed_request('"id" must be a string or an integer')
    return message


def malformed_request(reason: str, request_id: jsonrpc.RequestId | None = None) -> jsonrpc.MalformedMessage:
    """Return a malformed message for JSON that is not a valid request."""
    return jsonrpc.MalformedMessage(jsonrpc.INVALID_REQUEST, f"Invalid request: {reason}", request_id)


def protocol_error(error: ToolError) -> MCPError:
    """Return the error of a call that never ran as a JSON-RPC error."""
    return MCPError(error.code.rpc, error.explanation, error.as_json())


def invalid_request_error(message: str) -> MCPError:
    """Return the error for a request that is invalid before any tool is involved."""
    return protocol_error(ToolError(ErrorCode.INVALID_REQUEST, message))


def add_error_code(number: int, data: Any) -> dict[str, Any]:
    """Return error data with its string code, whatever the SDK put there."""
    if isinstance(data, dict) and "code" in data:
        return data
    code = ErrorCode.INTERNAL if number == INTERNAL_ERROR else ErrorCode.INVALID_REQUEST
    if isinstance(data, dict):
        return {**data, "code": code.name}
    return {"code": code.name, "details": data} if data else {"code": code.name}


def error_from_exception(crash: Exception, method: str) -> MCPError:
    """Return an exception of an SDK handler as a wire error. Unknown ones reveal no internals."""
    if isinstance(crash, ToolError):  # from a toolset's resource or prompt
        return protocol_error(crash)
    error_data = handler_exception_to_error_data(crash)
    if error_data is not None:
        return MCPError(error_data.code, error_data.message, add_error_code(error_data.code, error_data.data))
    log.error("request.crash what=%s", method, exc_info=crash)
    data = {"code": ErrorCode.INTERNAL.name, "details": {"cause_class": type(crash).__name__}}
    return MCPError(INTERNAL_ERROR, "Internal error", data)


_TRANSPORT_CONTEXT = TransportContext(kind="stdio", can_send_request=False)


class InboundMessage:
    """The SDK's `DispatchContext` with support for cancellation."""

    transport = _TRANSPORT_CONTEXT
    can_send_request = False
    message_metadata = None

    def __init__(self, channel: "WireDispatcher", request_id: Any, params: Mapping[str, Any] | None) -> None:
        self.request_id = request_id
        self.task: asyncio.Task[None] | None = None
        self.running = self.cancelled = self.closed = False
        self._channel, self._params = channel, params
        self._call: ToolCall | None = None
        self._cancel_requested: anyio.Event | None = None

    @property
    def cancel_requested(self) -> anyio.Event:
        if self._cancel_requested is None:  # created on demand, because it is rarely used
            self._cancel_requested = anyio.Event()
            if self.cancelled:
                self._cancel_requested.set()
        return self._cancel_requested

    def begin_call(self, call: ToolCall) -> None:
        """Attach the tool call of this request, so that cancelling the request cancels the call."""
        self._call = call
        if self.cancelled:
            call.cancel()

    def cancel(self) -> None:
        """Cancel the request for the client: stop the work and send nothing more about it."""
        self.cancelled = True
        if self._cancel_requested is not None:
            self._cancel_requested.set()
        self.stop_work()

    def stop_work(self) -> None:
        if self._call is not None:
            self._call.cancel()
        elif self.task is not None and self.running:
            # A task that has not started has no work to stop, and would never run if cancelled now.
            self.task.cancel()

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        if not self.closed and not self.cancelled:
            await self._channel.notify(method, params, opts)

    async def send_raw_request(self, method: str, *_options: Any, **_named_options: Any) -> dict[str, Any]:
        raise NoBackChannelError(method)  # a handler asks nothing of a client

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        token = progress_token_from_params(self._params)
        if token is not None:
            params = {"progressToken": token, "progress": progress, "total": total, "message": message}
            present = {key: value for key, value in params.items() if value is not None}
            await self.notify("notifications/progress", present)


_SHUTDOWN_ERROR = protocol_error(
    ToolError(
        ErrorCode.CANCELLED,
        "The server is shutting down and could not finish this in time.",
        hint="Raise CLEATS_DRAIN to give calls longer.",
    )
)


class WireDispatcher(Dispatcher[TransportContext]):
    """The dispatcher of one connection: frames in, answers out."""

    def __init__(
        self,
        wire: Wire,
        handshake: Handshake,
        *,
        drain: float,
        shutdown: Shutdown,
        on_stopping: Callable[[], None] = lambda: None,
    ) -> None:
        self._wire, self._shutdown, self._on_stopping = wire, shutdown, on_stopping
        self._handshake, self._framer = handshake, handshake.framer
        self._drain_seconds = drain
        self._open_requests: InFlightRequests[InboundMessage] = InFlightRequests()
        self._notification_tasks: set[asyncio.Task[None]] = set()
        self._pending_writes: list[bytes] = []
        self._sent_requests: dict[jsonrpc.RequestId, asyncio.Future[dict[str, Any]]] = {}
        self._request_numbers = itertools.count(1)
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
        """Serve until the input ends or a shutdown is requested, then drain."""
        self._on_request, self._on_notify, self._intercept = on_request, on_notify, on_notify_intercept
        task_status.started()
        self._handle_frames(self._handshake.unanswered)
        if self._handshake.has_input_ended:
            self._shutdown.request("end of input")
        self._wire.receive(self._receive_chunk)
        await self._shutdown.requested.wait()
        self._wire.stop()
        self._on_stopping()
        await lifecycle.finish_work(
            self._wire, self._list_tasks, self._stop_requests, timeout_seconds=self._drain_seconds
        )
        self._flush_writes()
        await lifecycle.flush_wire(self._wire, timeout_seconds=self._drain_seconds)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002 - no option applies to a plain wire
    ) -> None:
        self._queue_write(jsonrpc.encode_notification(method, params))

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        opts: CallOptions | None = None,  # noqa: ARG002 - the one caller has a timeout of its own
    ) -> dict[str, Any]:
        """Send a request to the client and return its result.

        Raises:
            MCPError: The client answered with an error.
        """
        request_id = f"cleats-{next(self._request_numbers)}"
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._sent_requests[request_id] = answer
        try:
            self._queue_write(jsonrpc.encode_request(request_id, method, params))
            return await answer
        finally:
            del self._sent_requests[request_id]

    def _receive_chunk(self, chunk: bytes) -> None:
        self._handle_frames(self._framer.feed(chunk) if chunk else self._framer.close())
        if not chunk:
            self._shutdown.request("end of input")

    def _handle_frames(self, frames: Iterable[bytes | OversizedFrame]) -> None:
        for frame in frames:
            if isinstance(frame, OversizedFrame):
                self._handle_message(malformed_request(f"over the limit of {frame.limit} bytes"))
            else:
                self._handle_message(parse_message(frame))

    def _handle_message(self, message: jsonrpc.RpcMessage) -> None:
        match message:
            case jsonrpc.Request():
                self._start_request(message)
            case jsonrpc.Notification():
                self._start_notification(message)
            case jsonrpc.MalformedMessage():
                self._queue_write(jsonrpc.encode_refusal(message))
            case jsonrpc.Response():
                self._accept_response(message)

    def _accept_response(self, response: jsonrpc.Response) -> None:
        answer = self._sent_requests.get(response.id) if jsonrpc.is_request_id(response.id) else None
        if answer is None or answer.done():
            # It answers no request of ours. It is dropped rather than refused, so that two confused peers cannot
            # exchange errors for ever.
            log.debug("response.dropped id=%r", response.id)
        elif isinstance(response.result, dict):
            answer.set_result(response.result)
        else:
            answer.set_exception(MCPError(INTERNAL_ERROR, "The client answered with an error."))

    def _start_request(self, request: jsonrpc.Request) -> None:
        inbound = InboundMessage(self, request.id, request.params)
        try:
            self._open_requests.add(request.id, inbound)
        except ToolError as error:
            self._handle_message(malformed_request(error.message, request.id))
            return
        inbound.task = self._loop.create_task(self._run_request(inbound, request))

    def _start_notification(self, message: jsonrpc.Notification) -> None:
        if message.method == "notifications/cancelled":
            request_id = (message.params or {}).get("requestId")
            if jsonrpc.is_request_id(request_id):
                self._open_requests.cancel(request_id)
        if not run_notify_intercept(self._intercept, message.method, message.params):
            inbound = InboundMessage(self, None, message.params)
            task = self._loop.create_task(self._run_notification(inbound, message))
            self._notification_tasks.add(task)
            task.add_done_callback(self._notification_tasks.discard)

    async def _run_request(self, inbound: InboundMessage, request: jsonrpc.Request) -> None:
        """Run a request and answer it: the only place where a request becomes an answer."""
        inbound.running = True
        try:
            if inbound.cancelled:
                raise asyncio.CancelledError  # noqa: TRY301 - cancelled before it began
            result = await self._on_request(inbound, request.method, request.params)
            answer = jsonrpc.encode_result(request.id, result)
        except asyncio.CancelledError:
            answer = _encode_error(request.id, _SHUTDOWN_ERROR)  # not written when the client cancelled
        except Exception as crash:  # noqa: BLE001 - the boundary
            answer = _encode_error(request.id, error_from_exception(crash, request.method))
        inbound.closed = True
        self._open_requests.discard(request.id)
        if not inbound.cancelled:
            self._queue_write(answer)

    async def _run_notification(self, inbound: InboundMessage, message: jsonrpc.Notification) -> None:
        try:
            await self._on_notify(inbound, message.method, message.params)
        except Exception:
            log.exception("notification.crash method=%s", message.method)

    def _queue_write(self, body: bytes) -> None:
        """Send a lone answer at once; combine those that come together into one write."""
        if not self._pending_writes and not self._open_requests:
            self._wire.write(body + b"\n")
            return
        if not self._pending_writes:
            self._loop.call_soon(self._flush_writes)
        self._pending_writes += (body, b"\n")

    def _flush_writes(self) -> None:
        if self._pending_writes:
            self._wire.write(b"".join(self._pending_writes))
            self._pending_writes = []

    def _stop_requests(self) -> None:
        for request in self._open_requests:
            request.stop_work()

    def _list_tasks(self) -> set[asyncio.Task[None]]:
        return self._notification_tasks | {inbound.task for inbound in self._open_requests if inbound.task is not None}


def _encode_error(request_id: jsonrpc.RequestId, error: MCPError) -> bytes:
    data = add_error_code(error.error.code, error.error.data)
    return jsonrpc.encode_error(request_id, error.error.code, error.error.message, data)

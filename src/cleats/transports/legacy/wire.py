"""One client of the legacy wire: frames in, answers out.

Guarantees: every request is answered exactly once, a cancelled one too, and that one at once;
nothing about a request is sent after its answer; an invalid message is refused and the next one is
served; control messages never wait behind a call.
"""

import asyncio
import logging
from collections.abc import Mapping
from time import time
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Failed, Outcome, Rejected
from cleats.contract.payload import AnswerMeta, Payload, format_timestamp
from cleats.contract.violations import make_type_violation
from cleats.runtime.call import InFlightRequests, ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import ProgressReport, ProgressReporter
from cleats.runtime.shutdown import Shutdown
from cleats.transports import jsonrpc, lifecycle
from cleats.transports.framing import ContentLengthFramer, InvalidFrame, OversizedFrame, WireFrame, frame_body
from cleats.transports.legacy import replies
from cleats.transports.stdio import Wire

log = logging.getLogger(__name__)

METHOD_NOT_FOUND = -32601


async def serve_client(
    dispatcher: Dispatcher,
    wire: Wire,
    *,
    capabilities: Mapping[str, Any],
    limit: int,
    drain: float,
    shutdown: Shutdown,
) -> None:
    """Serve one client until it leaves or the server is asked to stop."""
    await LegacyConnection(
        dispatcher,
        wire,
        capabilities=capabilities,
        limit=limit,
        drain=drain,
        shutdown=shutdown,
    ).run()


class OpenCall:
    """A call without an answer so far."""

    def __init__(self, connection: "LegacyConnection", request: jsonrpc.Request) -> None:
        self.id = request.id
        self.answered = False
        self._connection = connection
        name = (request.params or {}).get("name")
        arguments = (request.params or {}).get("arguments")
        self.error = _check_params(name, arguments)
        self.payload = connection.find_payload(str(name))
        self.call = ToolCall(
            tool=str(name),
            arguments=arguments if isinstance(arguments, dict) else {},
            id=str(request.id),
            surface="legacy",
            reporter=ProgressReporter(self._send_progress),
            meta=AnswerMeta(request_id=str(request.id)),
        )

    def cancel(self) -> None:
        """Answer at once and cancel the work, which may take its time to clean up."""
        self.answer(Cancelled())
        self.call.cancel()

    def answer(self, outcome: Outcome) -> None:
        """Send the answer, unless one was already sent."""
        if not self.answered:
            self.answered = True
            result = replies.render_result(self.payload, outcome, self.call.meta)
            self._connection.send_answer(self.id, result)

    async def _send_progress(self, report: ProgressReport) -> None:
        if not self.answered:
            params = {
                "id": self.id,
                "tool": self.call.tool,
                "message": report.message,
                "stream": "info",
                "phase": report.phase,
                "ts": format_timestamp(time()),
            }
            self._connection.send(jsonrpc.encode_notification("notifications/progress", params))


class LegacyConnection:
    """The connection of one client and its open calls."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        wire: Wire,
        *,
        capabilities: Mapping[str, Any],
        limit: int,
        drain: float,
        shutdown: Shutdown,
    ) -> None:
        self._dispatcher = dispatcher
        self._wire = wire
        self._capabilities = capabilities
        self._framer = ContentLengthFramer(limit)
        self._drain_seconds = drain
        self._shutdown = shutdown
        self._closing = False
        self._open_calls: InFlightRequests[OpenCall] = InFlightRequests()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Serve until the end and send every answer."""
        self._wire.receive(self._receive_chunk)
        await self._shutdown.requested.wait()
        self._wire.stop()
        await self._drain_calls()

    def find_payload(self, tool: str) -> Payload | None:
        """Return the payload shape of a tool's answers, or None for an unknown tool."""
        try:
            return self._dispatcher.registry.find(tool).payload
        except ToolError:
            return None

    def send_answer(self, request_id: jsonrpc.RequestId, result: Any) -> None:
        """Send an answer and release its id for reuse."""
        self._open_calls.discard(_normalize_id(request_id))
        self.send(jsonrpc.encode_result(request_id, result))

    def send(self, body: bytes) -> None:
        self._wire.write(frame_body(body))

    def _receive_chunk(self, chunk: bytes) -> None:
        for frame in self._framer.feed(chunk) if chunk else self._framer.close():
            self._handle_frame(frame)
        if not chunk:
            self._shutdown.request("end of input")

    def _handle_frame(self, frame: WireFrame) -> None:
        match frame:
            case OversizedFrame():
                reason = f"Invalid request: over the limit of {frame.limit} bytes"
                self._send_error(jsonrpc.INVALID_REQUEST, reason)
            case InvalidFrame():
                self._send_error(jsonrpc.PARSE_ERROR, f"Parse error: {frame.reason}")
            case bytes():
                self._handle_message(jsonrpc.parse_message(frame))

    def _handle_message(self, message: jsonrpc.RpcMessage) -> None:
        match message:
            case jsonrpc.Request():
                self._handle_request(message)
            case jsonrpc.Notification():
                self._handle_notification(message)
            case jsonrpc.MalformedMessage():
                self._send_error(message.code, message.reason, message.id)
            case jsonrpc.Response():
                # We send no requests; refusing a response could start an endless exchange of errors.
                log.debug("response.dropped id=%r", message.id)

    def _handle_request(self, request: jsonrpc.Request) -> None:
        if self._closing:
            reason = "Invalid request: the server was asked to shut down"
            self._send_error(jsonrpc.INVALID_REQUEST, reason, request.id)
            return
        match request.method:
            case "tools/call":
                self._start_call(request)
            case "tools/list":
                tools = replies.list_definitions(self._dispatcher.registry)
                self.send(jsonrpc.encode_result(request.id, {"tools": tools}))
            case "initialize":
                self.send(jsonrpc.encode_result(request.id, replies.build_handshake(self._capabilities)))
            case "ping":
                self.send(jsonrpc.encode_result(request.id, {}))
            case "shutdown":
                self._closing = True
                self.send(jsonrpc.encode_result(request.id, None))
                # `exit` or the end of input follows; we do not wait for a client that sends neither.
                self._loop.call_later(self._drain_seconds, self._shutdown.request, "shutdown")
            case _:
                reason = f"Method not found: {request.method}"
                self._send_error(METHOD_NOT_FOUND, reason, request.id)

    def _handle_notification(self, message: jsonrpc.Notification) -> None:
        if message.method == "$/cancelRequest":
            request_id = (message.params or {}).get("id")
            if jsonrpc.is_request_id(request_id):
                self._open_calls.cancel(_normalize_id(request_id))
        elif message.method == "exit":
            self._closing = True
            self._shutdown.request("exit")

    def _start_call(self, request: jsonrpc.Request) -> None:
        open_call = OpenCall(self, request)
        try:
            self._open_calls.add(_normalize_id(request.id), open_call)
        except ToolError as error:
            # Without the id, because otherwise the older request would have two answers.
            self._send_error(jsonrpc.INVALID_REQUEST, f"Invalid request: {error.message}")
            return
        task = self._loop.create_task(self._run_call(open_call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_call(self, open_call: OpenCall) -> None:
        """Run a call and answer it: the only place where a call becomes an answer."""
        if open_call.error is not None:
            open_call.answer(Rejected(open_call.error))
            return
        try:
            open_call.answer(await self._dispatcher.dispatch(open_call.call))
        except Exception:
            log.exception("request.crash id=%s", open_call.call.id)
            open_call.answer(Failed(ToolError(ErrorCode.INTERNAL, "Internal error.")))

    def _send_error(self, code: int, reason: str, request_id: jsonrpc.RequestId | None = None) -> None:
        data = {"code": ErrorCode.INVALID_REQUEST.name}
        self.send(jsonrpc.encode_error(request_id, code, reason, data))

    async def _drain_calls(self) -> None:
        """Finish open calls, answer those that do not finish in time, and flush the output."""
        await lifecycle.finish_work(
            self._wire, self._tasks.copy, self._cancel_open_calls, timeout_seconds=self._drain_seconds
        )
        await lifecycle.flush_wire(self._wire, timeout_seconds=self._drain_seconds)

    def _cancel_open_calls(self) -> None:
        for open_call in self._open_calls:
            open_call.cancel()


def _normalize_id(request_id: Any) -> str:
    """Return an id in the form used for comparison: `7`, `7.0` and `"7"` are equal."""
    if isinstance(request_id, float) and request_id.is_integer():
        request_id = int(request_id)
    return str(request_id)


def _check_params(name: object, arguments: object) -> ToolError | None:
    """Return the error in the params of a call, before any tool is looked up."""
    if not isinstance(name, str):
        return _mistyped_error("name", "string")
    if arguments is not None and not isinstance(arguments, dict):
        return _mistyped_error("arguments", "object")
    return None


def _mistyped_error(name: str, expected: str) -> ToolError:
    violation = make_type_violation(name, f"expected {expected}")
    message = f"{violation.path}: {violation.message}"
    return ToolError(ErrorCode.INVALID_REQUEST, message, details=[violation.as_json()])

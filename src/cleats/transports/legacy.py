"""The wire of spec a: Content-Length frames, for clients that know nothing newer. Deprecated.

Guarantees: every request is answered exactly once, a cancelled one too, and that one at once; nothing about a request
is sent after its answer; an invalid message is refused and the next one is served; control messages never wait behind a
call.
"""

import asyncio
import logging
from collections.abc import Mapping
from time import time
from typing import Any

from cleats.contract.arguments import make_type_error
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome, Rejected
from cleats.contract.payload import ENVELOPE, FLAT, LAUNCH, AnswerMeta, Payload, format_timestamp, get_outcome_error
from cleats.contract.registry import Registry
from cleats.contract.versions import LEGACY_PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime.call import InFlightRequests, ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import ProgressReport, ProgressReporter
from cleats.runtime.shutdown import Shutdown
from cleats.transports import jsonrpc, lifecycle
from cleats.transports.framing import ContentLengthFramer, InvalidFrame, OversizedFrame, WireFrame, frame_body
from cleats.transports.stdio import Wire

log = logging.getLogger(__name__)

LIFTED_DETAILS = ("stderr", "stdout", "timeoutMs")
"""Details that become top-level fields of the flat error."""

MAX_OUTPUT_CHARS = 4000
"""The maximum length of process output in an error; the end is kept."""


def build_handshake(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to `initialize`, whatever version the client asked for."""
    versions = {"schemaVersion": SCHEMA_VERSION, "toolingVersion": TOOLING_VERSION}
    capability_block = {**versions, "transport": "legacy", "capabilities": dict(capabilities)}
    return {
        "protocolVersion": LEGACY_PROTOCOL_VERSION,
        "capabilities": {"tools": {"listChanged": False}, "experimental": {"pairofcleats": capability_block}},
        "serverInfo": {"name": "cleats", "version": TOOLING_VERSION},
    }


def list_definitions(registry: Registry) -> list[dict[str, Any]]:
    """Return the definitions of every tool and every alias, which these clients still call."""
    definitions: list[dict[str, Any]] = []
    for tool in registry:
        description, versions = (
            tool.current_description,
            {"schemaVersion": tool.version, "toolingVersion": TOOLING_VERSION},
        )
        fields = {"name": tool.name, "description": description, "inputSchema": dict(tool.input), **versions}
        definitions.append(fields)
        for alias in tool.aliases:
            notice = f"Deprecated since {alias.deprecated}: use {tool.name}. {description}"
            definitions.append({**fields, "name": alias.name, "description": notice})
    return definitions


def render_result(payload: Payload | None, outcome: Outcome, meta: AnswerMeta) -> dict[str, Any]:
    """Render an outcome as the result of `tools/call`; `payload` is None for an unknown tool."""
    return jsonrpc.render_encodable(lambda outcome: _render_outcome(payload, outcome, meta), outcome)


def _render_outcome(payload: Payload | None, outcome: Outcome, meta: AnswerMeta) -> dict[str, Any]:
    error = get_outcome_error(outcome)
    if error is not None:
        body = flatten_error(error)
        if payload in (FLAT, LAUNCH):  # both specs bind here, and their fields do not collide
            body = {**(payload.render_outcome(outcome, meta).body or {}), **body}
        return _render_text(body, failed=True)
    assert payload is not None  # noqa: S101 - what is done has a tool
    assert isinstance(outcome, Done)  # noqa: S101
    if payload is ENVELOPE:
        return _render_text(outcome.result, failed=False)
    answer = payload.render_outcome(outcome, meta)
    if answer.content is not None:
        return {"content": list(answer.content), **({} if answer.ok else {"isError": True})}
    return _render_text(answer.body, failed=not answer.ok)


def _render_text(body: Any, *, failed: bool) -> dict[str, Any]:
    content = [{"type": "text", "text": jsonrpc.encode_answer(body).decode()}]
    return {"content": content, "isError": True} if failed else {"content": content}


def flatten_error(error: ToolError) -> dict[str, Any]:
    """Return the flat error: `{message, code}` and any hint, lifted fields and details."""
    # Spec a has no separate code for an unknown tool; its table maps it to INVALID_REQUEST.
    code = ErrorCode.INVALID_REQUEST if error.code is ErrorCode.UNKNOWN_TOOL else error.code
    body: dict[str, Any] = {"message": error.message, "code": code.name}
    if error.hint:
        body["hint"] = error.hint
    details = error.details
    if isinstance(details, Mapping):
        body |= {name: _trim_output(details[name]) for name in LIFTED_DETAILS if name in details}
        details = {name: value for name, value in details.items() if name not in LIFTED_DETAILS}
    if details:
        body["details"] = details
    return body


def _trim_output(value: Any) -> Any:
    return value.strip()[-MAX_OUTPUT_CHARS:].lstrip() if isinstance(value, str) else value


METHOD_NOT_FOUND = -32601


class OpenCall:
    """A call without an answer so far."""

    def __init__(self, connection: "LegacyConnection", request: jsonrpc.Request) -> None:
        self.id = request.id
        self.answered = False
        self._connection = connection
        params = request.params or {}
        name, arguments = params.get("name"), params.get("arguments")
        self.error = _check_params(name, arguments)
        tool = connection.registry.get(str(name))
        self.payload = tool.payload if tool else None
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
            result = render_result(self.payload, outcome, self.call.meta)
            self._connection.send_answer(self.id, result)

    async def _send_progress(self, report: ProgressReport) -> None:
        if not self.answered:
            facts = {"message": report.message, "stream": "info", "phase": report.phase, "ts": format_timestamp(time())}
            params = {"id": self.id, "tool": self.call.tool, **facts}
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
        self.registry = dispatcher.registry
        self._dispatcher, self._wire, self._shutdown = dispatcher, wire, shutdown
        self._capabilities = capabilities
        self._framer = ContentLengthFramer(limit)
        self._drain_seconds = drain
        self._closing = False
        self._open_calls: InFlightRequests[OpenCall] = InFlightRequests()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Serve until the end and send every answer."""
        self._wire.receive(self._receive_chunk)
        await self._shutdown.requested.wait()
        self._wire.stop()
        await lifecycle.finish_work(
            self._wire, self._tasks.copy, self._cancel_open_calls, timeout_seconds=self._drain_seconds
        )
        await lifecycle.flush_wire(self._wire, timeout_seconds=self._drain_seconds)

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
        match jsonrpc.parse_message(frame) if isinstance(frame, bytes) else frame:
            case OversizedFrame(limit):
                self._send_error(jsonrpc.INVALID_REQUEST, f"Invalid request: over the limit of {limit} bytes")
            case InvalidFrame(reason):
                self._send_error(jsonrpc.PARSE_ERROR, f"Parse error: {reason}")
            case jsonrpc.Request() as request:
                self._handle_request(request)
            case jsonrpc.Notification() as notification:
                self._handle_notification(notification)
            case jsonrpc.MalformedMessage(code, reason, request_id):
                self._send_error(code, reason, request_id)
            case jsonrpc.Response(response_id):
                # We send no requests; refusing a response could start an endless exchange of errors.
                log.debug("response.dropped id=%r", response_id)

    def _handle_request(self, request: jsonrpc.Request) -> None:
        if self._closing:
            self._send_error(jsonrpc.INVALID_REQUEST, "Invalid request: the server was asked to shut down", request.id)
            return
        match request.method:
            case "tools/call":
                self._start_call(request)
            case "tools/list":
                self.send(jsonrpc.encode_result(request.id, {"tools": list_definitions(self.registry)}))
            case "initialize":
                self.send(jsonrpc.encode_result(request.id, build_handshake(self._capabilities)))
            case "ping":
                self.send(jsonrpc.encode_result(request.id, {}))
            case "shutdown":
                self._closing = True
                self.send(jsonrpc.encode_result(request.id, None))
                # `exit` or the end of input follows; we do not wait for a client that sends neither.
                self._loop.call_later(self._drain_seconds, self._shutdown.request, "shutdown")
            case _:
                self._send_error(METHOD_NOT_FOUND, f"Method not found: {request.method}", request.id)

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
        self.send(jsonrpc.encode_error(request_id, code, reason, {"code": ErrorCode.INVALID_REQUEST.name}))

    def _cancel_open_calls(self) -> None:
        for open_call in self._open_calls:
            open_call.cancel()


def _normalize_id(request_id: Any) -> str:
    """Return an id in the form used for comparison: `7`, `7.0` and `"7"` are equal."""
    if isinstance(request_id, float) and request_id.is_integer():
        request_id = int(request_id)
    return str(request_id)


def _check_params(name: object, arguments: object) -> ToolError | None:
    if not isinstance(name, str):
        return make_type_error("name", "string")
    if arguments is not None and not isinstance(arguments, dict):
        return make_type_error("arguments", "object")
    return None

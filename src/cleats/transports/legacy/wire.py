"""One client of the legacy wire: frames in, answers out.

Laws: every request is answered exactly once, also one that is withdrawn, and that one at once;
nothing is said about a request after its answer; what is no request is refused and the next one
served; control messages never wait behind a call.
"""

import asyncio
import logging
from collections.abc import Mapping
from time import time
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Failed, Outcome, Rejected
from cleats.contract.payload import Meta, Payload, timestamp
from cleats.contract.violations import mistyped
from cleats.runtime.call import Call, InFlight
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import Progress, Report
from cleats.runtime.shutdown import Shutdown
from cleats.transports import draining, jsonrpc
from cleats.transports.framing import ContentLength, Frame, TooLarge, Unframed, sized
from cleats.transports.legacy import answers
from cleats.transports.stdio import Wire

log = logging.getLogger(__name__)

METHOD_NOT_FOUND = -32601


async def serve(
    dispatcher: Dispatcher,
    wire: Wire,
    *,
    capabilities: Mapping[str, Any],
    limit: int,
    drain: float,
    shutdown: Shutdown,
) -> None:
    """Serve one client until it leaves or the server is asked to stop."""
    await Conversation(
        dispatcher,
        wire,
        capabilities=capabilities,
        limit=limit,
        drain=drain,
        shutdown=shutdown,
    ).run()


class Open:
    """A call that has no answer yet."""

    def __init__(self, conversation: "Conversation", request: jsonrpc.Request) -> None:
        self.id = request.id
        self.answered = False
        self._conversation = conversation
        name = (request.params or {}).get("name")
        arguments = (request.params or {}).get("arguments")
        self.error = _wrong(name, arguments)
        self.payload = conversation.payload(str(name))
        self.call = Call(
            tool=str(name),
            arguments=arguments if isinstance(arguments, dict) else {},
            id=str(request.id),
            surface="legacy",
            reporter=Progress(self._report),
            meta=Meta(request_id=str(request.id)),
        )

    def cancel(self) -> None:
        """Answer at once; the work is told to stop, and may clean up as long as it must."""
        self.answer(Cancelled())
        self.call.cancel()

    def answer(self, outcome: Outcome) -> None:
        """Give the one answer, unless it was given."""
        if not self.answered:
            self.answered = True
            result = answers.result(self.payload, outcome, self.call.meta)
            self._conversation.answer(self.id, result)

    async def _report(self, report: Report) -> None:
        if not self.answered:
            params = {
                "id": self.id,
                "tool": self.call.tool,
                "message": report.message,
                "stream": "info",
                "phase": report.phase,
                "ts": timestamp(time()),
            }
            self._conversation.send(jsonrpc.notification("notifications/progress", params))


class Conversation:
    """What one client asks, until the end."""

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
        self._frames = ContentLength(limit)
        self._drain_for = drain
        self._shutdown = shutdown
        self._closing = False
        self._open: InFlight[Open] = InFlight()
        self._working: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Serve until the end, and leave nothing unsent."""
        self._wire.receive(self._received)
        await self._shutdown.asked.wait()
        self._wire.stop()
        await self._drain()

    def payload(self, tool: str) -> Payload | None:
        """The shape of a tool's answers; None when there is no such tool."""
        try:
            return self._dispatcher.registry.find(tool).payload
        except ToolError:
            return None

    def answer(self, request_id: jsonrpc.Id, result: Any) -> None:
        """Send an answer; from now on its id may be used again."""
        self._open.discard(_key(request_id))
        self.send(jsonrpc.result(request_id, result))

    def send(self, body: bytes) -> None:
        self._wire.write(sized(body))

    def _received(self, chunk: bytes) -> None:
        for frame in self._frames.feed(chunk) if chunk else self._frames.close():
            self._frame(frame)
        if not chunk:
            self._shutdown.ask("end of input")

    def _frame(self, frame: Frame) -> None:
        match frame:
            case TooLarge():
                reason = f"Invalid request: over the limit of {frame.limit} bytes"
                self._refuse(jsonrpc.INVALID_REQUEST, reason)
            case Unframed():
                self._refuse(jsonrpc.PARSE_ERROR, f"Parse error: {frame.reason}")
            case bytes():
                self._message(jsonrpc.parse(frame))

    def _message(self, message: jsonrpc.Message) -> None:
        match message:
            case jsonrpc.Request():
                self._request(message)
            case jsonrpc.Notification():
                self._notification(message)
            case jsonrpc.Malformed():
                self._refuse(message.code, message.reason, message.id)
            case jsonrpc.Response():
                # We ask nothing, so it answers nothing; refusing it could begin an endless quarrel.
                log.debug("response.dropped id=%r", message.id)

    def _request(self, request: jsonrpc.Request) -> None:
        if self._closing:
            reason = "Invalid request: the server was asked to shut down"
            self._refuse(jsonrpc.INVALID_REQUEST, reason, request.id)
            return
        match request.method:
            case "tools/call":
                self._call(request)
            case "tools/list":
                tools = answers.definitions(self._dispatcher.registry)
                self.send(jsonrpc.result(request.id, {"tools": tools}))
            case "initialize":
                self.send(jsonrpc.result(request.id, answers.handshake(self._capabilities)))
            case "ping":
                self.send(jsonrpc.result(request.id, {}))
            case "shutdown":
                self._closing = True
                self.send(jsonrpc.result(request.id, None))
                # `exit` or the end of input follows; a client that sends neither is not waited for.
                self._loop.call_later(self._drain_for, self._shutdown.ask, "shutdown")
            case _:
                reason = f"Method not found: {request.method}"
                self._refuse(METHOD_NOT_FOUND, reason, request.id)

    def _notification(self, message: jsonrpc.Notification) -> None:
        if message.method == "$/cancelRequest":
            request_id = (message.params or {}).get("id")
            if jsonrpc.is_id(request_id):
                self._open.cancel(_key(request_id))
        elif message.method == "exit":
            self._closing = True
            self._shutdown.ask("exit")

    def _call(self, request: jsonrpc.Request) -> None:
        opened = Open(self, request)
        try:
            self._open.add(_key(request.id), opened)
        except ToolError as error:
            # Without the id: with it, the older request would have two answers.
            self._refuse(jsonrpc.INVALID_REQUEST, f"Invalid request: {error.message}")
            return
        task = self._loop.create_task(self._serve(opened))
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _serve(self, opened: Open) -> None:
        """The one place where a call becomes an answer, whatever happened to it."""
        if opened.error is not None:
            opened.answer(Rejected(opened.error))
            return
        try:
            opened.answer(await self._dispatcher.dispatch(opened.call))
        except Exception:
            log.exception("request.crash id=%s", opened.call.id)
            opened.answer(Failed(ToolError(ErrorCode.INTERNAL, "Internal error.")))

    def _refuse(self, code: int, reason: str, request_id: jsonrpc.Id | None = None) -> None:
        data = {"code": ErrorCode.INVALID_REQUEST.name}
        self.send(jsonrpc.error(request_id, code, reason, data))

    async def _drain(self) -> None:
        """Finish what is in flight; answer what does not finish; leave nothing unsent."""
        await draining.finish(
            self._wire, self._working.copy, self._withdraw, within=self._drain_for
        )
        await draining.flush(self._wire, within=self._drain_for)

    def _withdraw(self) -> None:
        for opened in self._open:
            opened.cancel()


def _key(request_id: Any) -> str:
    """An id as it is compared: `7`, `7.0` and `"7"` are one."""
    if isinstance(request_id, float) and request_id.is_integer():
        request_id = int(request_id)
    return str(request_id)


def _wrong(name: object, arguments: object) -> ToolError | None:
    """What is wrong with the params of a call, before any tool is looked for."""
    if not isinstance(name, str):
        return _violation("name", "string")
    if arguments is not None and not isinstance(arguments, dict):
        return _violation("arguments", "object")
    return None


def _violation(name: str, expected: str) -> ToolError:
    found = mistyped(name, f"expected {expected}")
    message = f"{found.path}: {found.message}"
    return ToolError(ErrorCode.INVALID_REQUEST, message, details=[found.as_json()])

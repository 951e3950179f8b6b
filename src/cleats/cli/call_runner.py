"""One call on a server that lives only as long as the call, and its answer as text for a person."""

import asyncio
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import anyio
import msgspec

from cleats import app
from cleats.cli.output import ProgressPrinter
from cleats.cli.tools import suggest_tool_names
from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Cancelled, Failed, Outcome, Rejected
from cleats.contract.payload import ENVELOPE, Answer, Payload
from cleats.contract.tools import Toolset
from cleats.contract.toolset_rules import list_tool_names
from cleats.runtime.background_writer import PROCESS_JOURNAL, StderrHandler
from cleats.runtime.call import ToolCall
from cleats.runtime.progress import ProgressReporter
from cleats.runtime.server_status import ServerStatus
from cleats.runtime.shutdown import Shutdown, watch_signals
from cleats.settings import Settings
from cleats.transports.jsonrpc import encode_answer, render_encodable
from cleats.transports.stdio import claim_stdio

log = logging.getLogger(__name__)


class CallResult(NamedTuple):
    """The outcome of a call and the values needed to print it."""

    call: ToolCall
    outcome: Outcome
    payload: Payload
    suggestion: str


def run_call(
    settings: Settings,
    tool: str,
    arguments: Mapping[str, Any],
    progress_printer: ProgressPrinter,
    *,
    show_traces: bool = False,
) -> CallResult:
    """Call a tool on a server that lives only as long as the call."""
    # Output that a tool or its children print while it runs is not part of the answer.
    with claim_stdio():
        handler = StderrHandler()
        handler.setFormatter(_LogFormatter(show_traces=show_traces))
        logging.basicConfig(handlers=[handler], level=settings.log_level.upper())
        try:
            return anyio.run(_dispatch_call, settings, tool, arguments, progress_printer)
        finally:
            PROCESS_JOURNAL.close()


async def _dispatch_call(
    settings: Settings, name: str, arguments: Mapping[str, Any], progress_printer: ProgressPrinter
) -> CallResult:
    server_status = ServerStatus()
    toolsets = app.load_toolsets(settings, app.BUILTIN_TOOLSETS, server_status)
    if not any(_has_tool(toolset, name) for toolset in toolsets):
        toolsets += app.load_servable_plugins(settings, toolsets)
    # All tools stay known, as on a server, but watchers and stores of other toolsets are not started, so their problems
    # cannot fail the call.
    served = [toolset if _has_tool(toolset, name) else replace(toolset, running=None) for toolset in toolsets]
    request = ToolCall(tool=name, arguments=arguments, surface="cli", reporter=ProgressReporter(progress_printer.show))
    outcome: Outcome | None = None
    try:
        with watch_signals() as stop:
            async with app.open_dispatcher(settings, served, server_status) as dispatcher:
                cancel_task = asyncio.create_task(_cancel_on_shutdown(stop, request, progress_printer))
                outcome = await dispatcher.dispatch(request)
                cancel_task.cancel()
                progress_printer.clear()
    except Exception:
        if outcome is None:
            raise
        log.exception("call.stop tool=%s: the call was answered, but its toolset failed to stop", name)
    if (tool := dispatcher.registry.get(name)) is not None:
        return CallResult(request, outcome, tool.payload, "")
    return CallResult(request, outcome, ENVELOPE, suggest_tool_names(dispatcher.registry, name).strip())


def _has_tool(toolset: Toolset, name: str) -> bool:
    return any(name in list_tool_names(tool) for tool in toolset.tools)


async def _cancel_on_shutdown(stop: Shutdown, request: ToolCall, progress_printer: ProgressPrinter) -> None:
    await stop.requested.wait()
    progress_printer.print_line("Cancelling; press Ctrl-C again to exit at once")
    request.cancel()


class _LogFormatter(logging.Formatter):
    """A formatter that writes one line per record, with tracebacks only if requested."""

    def __init__(self, *, show_traces: bool) -> None:
        super().__init__("%(levelname)s %(name)s %(message)s")
        self._show_traces = show_traces

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return super().formatException(ei) if self._show_traces else ""


def render_result(result: CallResult, *, as_json: bool) -> tuple[bool, bytes]:
    """Return whether the call succeeded, and its answer as text."""

    def encode(outcome: Outcome) -> tuple[bool, bytes]:
        answer = result.payload.render_outcome(outcome, result.call.meta)
        return answer.ok, _encode_answer(answer, as_json=as_json)

    return render_encodable(encode, result.outcome, tool=result.call.tool)


def _encode_answer(answer: Answer, *, as_json: bool) -> bytes:
    """Encode the answer for a reader: content blocks as their text, anything else as JSON."""
    indent = 2 if sys.stdout.isatty() and not as_json else 0
    if answer.content is None or (as_json and answer.body is not None):
        return _encode_json(answer.body, indent)
    if as_json:
        return _encode_json({"content": answer.content}, indent)
    return b"".join(
        str(block["text"]).encode(errors="replace") + b"\n"
        if block.get("type") == "text"
        else _encode_json(block, indent)
        for block in answer.content
    )


def _encode_json(value: object, indent: int) -> bytes:
    text = encode_answer(value)
    return (msgspec.json.format(text, indent=indent) if indent else text) + b"\n"


def suggest_next_step(result: CallResult, *, verbose: int) -> Sequence[str]:
    """Return what a person can do next; the answer itself, made for programs, does not say it."""
    match result.outcome:
        case Rejected(error) if error.code is ErrorCode.UNKNOWN_TOOL:
            return [result.suggestion]
        case Rejected(error) if error.code is ErrorCode.INVALID_REQUEST:
            return [f"`cleats tools --show {result.call.tool}` lists the arguments."]
        case Failed(error) if error.code is ErrorCode.INTERNAL and not verbose:
            return ["-v shows the traceback."]
        case Failed(error) if error.code is ErrorCode.TOOL_TIMEOUT:
            return [f"Set CLEATS_TIMEOUTS={result.call.tool}=SECONDS to give it more time."]
        case Cancelled() | _:
            return []

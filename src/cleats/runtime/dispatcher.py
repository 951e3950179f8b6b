"""The dispatcher: find, validate, admit, run and finish every tool call.

This is the only place that turns exceptions into outcomes, and the only one that knows about
deadlines. Handlers raise; surfaces match.
"""

import logging
from collections.abc import Callable, Mapping
from copy import copy
from time import monotonic
from typing import Any, TypeAlias

import anyio

from cleats.contract.errors import ErrorCode, ToolError, unwrap_tool_error
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome, Rejected
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.runtime.call import ToolCall
from cleats.runtime.concurrency import CallSlots, Deadlines
from cleats.runtime.server_status import CALLER_REGISTRY, ServerStatus
from cleats.runtime.telemetry import CallTelemetry, get_span_ids, is_sampled

log = logging.getLogger(__name__)

CallEndCallback: TypeAlias = Callable[[ToolCall, Outcome], None]
"""Called at the end of each call. Has to be cheap, and must never raise."""


class Dispatcher:
    """Runs tool calls. A server has one dispatcher for all of its connections."""

    def __init__(
        self,
        registry: Registry,
        *,
        concurrency: int,
        queue: int,
        timeouts: Mapping[str, float] | None = None,
        telemetry: CallTelemetry | None = None,
        status: ServerStatus | None = None,
    ) -> None:
        self.registry = registry
        self._slots = CallSlots(concurrency=concurrency, queue=queue)
        self._deadlines = Deadlines()
        self._timeouts = dict(timeouts or {})
        self._telemetry = telemetry or CallTelemetry()
        self._status = status or ServerStatus()
        self._status.slots = self._slots
        self._status.registry = registry
        self._on_call_end: CallEndCallback | None = None

    def with_registry(self, registry: Registry, on_call_end: CallEndCallback | None = None) -> "Dispatcher":
        """Return a view for a caller with only these tools, with the same queue and records.

        Every view is a caller of its own, which takes its turn in the queue.
        """
        view = copy(self)
        view.registry = registry
        view._on_call_end = on_call_end  # noqa: SLF001 - our own copy
        return view

    async def dispatch(self, call: ToolCall) -> Outcome:
        """Run one call to its end. Never raises what a handler raised."""
        started_at = monotonic()
        self._status.record_start(call, started_at)
        span = self._telemetry.begin_call(call)
        call.ids = get_span_ids(span)
        call.sampled = is_sampled(span)
        outcome: Outcome = Cancelled()
        try:
            outcome = await self._admit_and_run(call)
        finally:
            if call.reporter is not None:
                with anyio.CancelScope(shield=True):
                    await call.reporter.close(flush=not isinstance(outcome, Cancelled))
            call.meta.duration_ms = (monotonic() - started_at) * 1000
            self._status.record_end(call, outcome)
            self._telemetry.end_call(span, call, outcome)
            if self._on_call_end is not None:
                self._on_call_end(call, outcome)
        return outcome

    async def _admit_and_run(self, call: ToolCall) -> Outcome:
        try:
            tool = self.registry.find(call.tool)
            arguments = tool.bind(call.arguments)
            self._slots.check_capacity(self)
        except ToolError as error:
            return Rejected(error)
        if (alias := self.registry.find_alias(call.tool)) is not None:
            call.warn(
                "DEPRECATED_NAME",
                f"{alias.name} is an old name; use {tool.name}.",
                name=alias.name,
                use=tool.name,
                since=alias.deprecated,
            )
        timeout = self._timeouts.get(tool.name, tool.timeout) or None
        outcome: Outcome = Cancelled()
        if call.scope.ended is not None:
            return outcome
        with call.scope:
            if not self._slots.try_acquire():
                try:
                    await self._slots.wait_for_slot(self)
                except ToolError as error:
                    return Rejected(error)
            try:
                if timeout is not None:
                    self._deadlines.add(call, timeout, call.expire)
                outcome = await self._run_tool(tool, arguments, call)
            finally:
                self._deadlines.remove(call)
                self._slots.release()
        match call.scope.ended:
            case None:
                return outcome
            case "late":
                seconds = timeout or 0.0
                return Failed(
                    ToolError(
                        ErrorCode.TOOL_TIMEOUT,
                        f"{tool.name} took longer than {seconds:g} s and was stopped.",
                        hint="Narrow the request, or raise the tool's timeout.",
                        details={"timeoutMs": round(seconds * 1000)},
                    )
                )
            case "withdrawn":
                return Cancelled()  # even when the handler finished regardless

    async def _run_tool(self, tool: Tool, arguments: Mapping[str, Any], call: ToolCall) -> Outcome:
        token = CALLER_REGISTRY.set(self.registry)
        try:
            return Done(await tool.run(arguments, call))
        except Exception as crash:
            if (error := unwrap_tool_error(crash)) is not None:
                if error.code not in tool.codes:  # it still reaches the caller
                    name, code = tool.name, error.code.name
                    log.error("contract.breach tool=%s code=%s: the tool does not declare this code", name, code)  # noqa: TRY400
                return Failed(error)
            log.exception("call.crash id=%s tool=%s", call.id, tool.name)
            return Failed(
                ToolError(
                    ErrorCode.INTERNAL,
                    f"{tool.name} failed unexpectedly ({type(crash).__name__}).",
                    hint="The server's log has the traceback.",
                    details={"cause_class": type(crash).__name__},
                )
            )
        finally:
            CALLER_REGISTRY.reset(token)

"""Find, validate, admit, run, settle: the one road every tool call takes.

This is the only place that turns exceptions into outcomes, and the only one that knows about
deadlines. Handlers raise; surfaces match.
"""

import logging
from collections.abc import Callable, Mapping
from copy import copy
from time import monotonic
from typing import Any, TypeAlias

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome, Rejected
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.runtime.call import Call
from cleats.runtime.deadlines import Deadlines
from cleats.runtime.slots import Slots
from cleats.runtime.telemetry import Telemetry, ids_of, sampled
from cleats.runtime.vitals import SEEN, Vitals

log = logging.getLogger(__name__)

Ended: TypeAlias = Callable[[Call, Outcome], None]
"""Hears of the end of a call. Cheap, and never raises."""


class Dispatcher:
    """One for the whole server, however many connections it has."""

    def __init__(
        self,
        registry: Registry,
        *,
        concurrency: int,
        queue: int,
        timeouts: Mapping[str, float] | None = None,
        telemetry: Telemetry | None = None,
        vitals: Vitals | None = None,
    ) -> None:
        self.registry = registry
        self._slots = Slots(concurrency=concurrency, queue=queue)
        self._deadlines = Deadlines()
        self._timeouts = dict(timeouts or {})
        self._telemetry = telemetry or Telemetry()
        self._vitals = vitals or Vitals()
        self._vitals.slots = self._slots
        self._vitals.registry = registry
        self._ended: Ended | None = None

    def over(self, registry: Registry, ended: Ended | None = None) -> "Dispatcher":
        """The same queue and the same records for a caller that has these tools only."""
        view = copy(self)
        view.registry = registry
        view._ended = ended  # noqa: SLF001 - our own copy
        return view

    async def dispatch(self, call: Call) -> Outcome:
        """Take one call to its end. Never raises what a handler raised."""
        begun = monotonic()
        self._vitals.opened(call, begun)
        span = self._telemetry.begin(call)
        call.ids = ids_of(span)
        call.sampled = sampled(span)
        outcome: Outcome = Cancelled()
        try:
            outcome = await self._settle(call)
        finally:
            if call.reporter is not None:
                with anyio.CancelScope(shield=True):
                    await call.reporter.close(flush=not isinstance(outcome, Cancelled))
            call.meta.duration_ms = (monotonic() - begun) * 1000
            self._vitals.closed(call, outcome)
            self._telemetry.end(span, call, outcome)
            if self._ended is not None:
                self._ended(call, outcome)
        return outcome

    async def _settle(self, call: Call) -> Outcome:
        try:
            tool = self.registry.find(call.tool)
            arguments = tool.bind(call.arguments)
            self._slots.check()
        except ToolError as error:
            return Rejected(error)
        if (alias := self.registry.alias(call.tool)) is not None:
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
            if not self._slots.take():
                await self._slots.wait()
            try:
                if timeout is not None:
                    self._deadlines.add(call, timeout, call.expire)
                outcome = await self._run(tool, arguments, call)
            finally:
                self._deadlines.remove(call)
                self._slots.release()
        match call.scope.ended:
            case None:
                return outcome
            case "late":
                return Failed(_too_late(tool, timeout))
            case "withdrawn":
                return Cancelled()  # even when the handler finished regardless

    async def _run(self, tool: Tool, arguments: Mapping[str, Any], call: Call) -> Outcome:
        seen = SEEN.set(self.registry)
        try:
            return Done(await tool.run(arguments, call))
        except ToolError as error:
            return Failed(_declared(error, tool))
        except Exception as crash:
            if (lone := _lone_tool_error(crash)) is not None:
                return Failed(_declared(lone, tool))
            log.exception("call.crash id=%s tool=%s", call.id, tool.name)
            return Failed(
                ToolError(
                    ErrorCode.INTERNAL,
                    f"{tool.name} failed unexpectedly ({type(crash).__name__}).",
                    hint="The server's log has the trace.",
                    details={"cause_class": type(crash).__name__},
                )
            )
        finally:
            SEEN.reset(seen)


def _too_late(tool: Tool, timeout: float | None) -> ToolError:
    seconds = timeout or 0.0
    return ToolError(
        ErrorCode.TOOL_TIMEOUT,
        f"{tool.name} took longer than {seconds:g} s and was stopped.",
        hint="Narrow the request, or raise the tool's timeout.",
        details={"timeoutMs": round(seconds * 1000)},
    )


def _declared(error: ToolError, tool: Tool) -> ToolError:
    """A code the tool does not list still reaches the caller, but not quietly."""
    if error.code not in tool.codes:
        log.error(
            "contract.breach tool=%s code=%s: not among its codes", tool.name, error.code.name
        )
    return error


def _lone_tool_error(crash: Exception) -> ToolError | None:
    """The tool error inside a task group's exception group, when it is the only one."""
    while isinstance(crash, ExceptionGroup) and len(crash.exceptions) == 1:
        crash = crash.exceptions[0]
    return crash if isinstance(crash, ToolError) else None

"""Tests of the dispatcher: every way in which a call can end, whatever its tool does."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Done, Failed, Outcome, Rejected
from cleats.contract.registry import Registry
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.server_status import ServerStatus
from cleats.runtime.telemetry import CallTelemetry
from tests.support.requirements import requirement

pytestmark = pytest.mark.anyio


class DispatcherHost:
    """A dispatcher around one handler."""

    def __init__(self, run: Any, *, timeout: float | None = 60, concurrency: int = 1, queue: int = 1) -> None:
        tool = Tool(name="probe", description="", input=arguments(), run=run, timeout=timeout)
        self.server_status = ServerStatus()
        self.dispatcher = Dispatcher(
            Registry([Toolset(name="one", purpose="", tools=[tool])]),
            concurrency=concurrency,
            queue=queue,
            telemetry=CallTelemetry(log_calls=False),
            status=self.server_status,
        )

    def build_call(self, tool: str = "probe", **args: Any) -> ToolCall:
        return ToolCall(id="1", tool=tool, arguments=args)

    async def run(self, call: ToolCall | None = None) -> Outcome:
        return await self.dispatcher.dispatch(call or self.build_call())


async def wait_forever(_args: Mapping[str, Any], _context: Context) -> None:
    await anyio.sleep_forever()


@requirement("a:timeout:answer")
async def test_a_call_past_its_deadline_fails_and_says_how_long_it_had() -> None:
    outcome = await DispatcherHost(wait_forever, timeout=0.01).run()

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.TOOL_TIMEOUT
    assert outcome.error.details == {"timeoutMs": 10}


async def test_a_timeout_of_nought_is_none_and_not_that_of_the_tool() -> None:
    async def finish_soon(_args: Mapping[str, Any], _context: Context) -> str:
        await anyio.sleep(0.01)
        return "done"

    tool = Tool(name="probe", description="", input=arguments(), run=finish_soon, timeout=0.001)
    dispatcher = Dispatcher(
        Registry([Toolset(name="one", purpose="", tools=[tool])]),
        concurrency=1,
        queue=0,
        timeouts={"probe": 0.0},
        telemetry=CallTelemetry(log_calls=False),
    )

    outcome = await dispatcher.dispatch(ToolCall(tool="probe", arguments={}))

    assert isinstance(outcome, Done)


async def test_deadlines_of_many_calls_are_kept_apart() -> None:
    ended_tools: list[str] = []

    async def wait(args: Mapping[str, Any], _context: Context) -> None:
        await anyio.sleep_forever()

    def build_tool(name: str, timeout: float | None) -> Tool:
        return Tool(name=name, description="", input=arguments(), run=wait, timeout=timeout)

    tools = [build_tool("slow", 1.0), build_tool("quick", 0.01), build_tool("endless", None)]
    registry = Registry([Toolset(name="t", purpose="", tools=tools)])
    dispatcher = Dispatcher(registry, concurrency=3, queue=0, telemetry=CallTelemetry(log_calls=False))
    endless = ToolCall(tool="endless", arguments={})

    async def run(call: ToolCall) -> None:
        await dispatcher.dispatch(call)
        ended_tools.append(call.tool)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for call in (ToolCall(tool="slow", arguments={}), ToolCall(tool="quick", arguments={})):
                tasks.start_soon(run, call)
            tasks.start_soon(run, endless)
            while len(ended_tools) < 2:
                await anyio.sleep(0.001)
            endless.cancel()

    assert ended_tools == ["quick", "slow", "endless"]


async def test_a_timeout_inside_the_tool_is_a_crash_not_our_deadline() -> None:
    async def raise_timeout(_args: Mapping[str, Any], _context: Context) -> None:
        raise TimeoutError

    outcome = await DispatcherHost(raise_timeout).run()

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.INTERNAL
    assert outcome.error.details == {"cause_class": "TimeoutError"}


@requirement("a:cancel:stops-the-work")
async def test_a_withdrawn_call_is_cancelled_and_its_handler_cleans_up_undisturbed() -> None:
    started = anyio.Event()
    cleanups: list[str] = []

    async def block(_args: Mapping[str, Any], _context: Context) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
                cleanups.append("yes")

    host = DispatcherHost(block)
    call = host.build_call()
    outcomes: list[Outcome] = []

    async def run() -> None:
        outcomes.append(await host.run(call))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await started.wait()
            call.cancel()
            call.cancel()

    assert outcomes == [Cancelled()]
    assert cleanups == ["yes"]


async def test_a_call_withdrawn_before_it_starts_never_runs() -> None:
    async def fail_if_run(_args: Mapping[str, Any], _context: Context) -> None:
        raise AssertionError

    host = DispatcherHost(fail_if_run)
    call = host.build_call()
    call.cancel()

    assert await host.run(call) == Cancelled()
    await anyio.lowlevel.checkpoint()  # no cancel is left over for the caller


@requirement("a:cancel:never-success")
async def test_a_handler_that_ignores_its_cancellation_cannot_answer_done() -> None:
    call: ToolCall

    async def ignore_cancel(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        call.cancel()
        return {"late": True}

    host = DispatcherHost(ignore_cancel)
    call = host.build_call()

    assert await host.run(call) == Cancelled()
    await anyio.lowlevel.checkpoint()


async def test_a_handler_that_swallows_its_cancellation_cannot_answer_done() -> None:
    async def swallow_cancel(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return {"late": True}
        raise AssertionError

    outcome = await DispatcherHost(swallow_cancel, timeout=0.01).run()

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.TOOL_TIMEOUT
    await anyio.lowlevel.checkpoint()


async def test_a_cancel_of_the_whole_connection_passes_through() -> None:
    host = DispatcherHost(wait_forever)

    with anyio.move_on_after(0.02) as scope:
        await host.run()

    assert scope.cancelled_caught
    assert host.server_status.count_outcomes()["cancelled"] == 1
    assert host.server_status.list_open_calls() == []


@requirement("a:arguments:unknown-refused")
async def test_an_unknown_argument_is_rejected_by_its_path() -> None:
    host = DispatcherHost(wait_forever)

    outcome = await host.run(host.build_call(colour="red"))

    assert isinstance(outcome, Rejected)
    assert outcome.error.details[0]["instancePath"] == "/colour"


async def test_a_full_queue_rejects_the_next_call_and_keeps_the_order_of_the_rest() -> None:
    release = anyio.Event()
    ran: list[str | None] = []

    async def wait(_args: Mapping[str, Any], context: Context) -> None:
        assert isinstance(context, ToolCall)
        ran.append(context.id)
        await release.wait()

    host = DispatcherHost(wait, concurrency=1, queue=2)

    async def run(name: str) -> None:
        await host.run(ToolCall(id=name, tool="probe", arguments={}))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "c"):
                tasks.start_soon(run, name)
            await anyio.wait_all_tasks_blocked()
            rejection = await host.run()
            load = host.server_status.get_queue_load()
            release.set()

    assert isinstance(rejection, Rejected)
    assert rejection.error.code is ErrorCode.QUEUE_OVERLOADED
    assert rejection.error.details == {"queue": {"max": 2, "size": 2}}
    assert load == {"running": 1, "maxRunning": 1, "waiting": 2, "maxWaiting": 2}
    assert ran == ["a", "b", "c"]
    assert host.server_status.get_queue_load()["running"] == 0


async def test_a_slot_that_is_handed_over_to_a_withdrawn_call_is_not_lost() -> None:
    release = anyio.Event()

    async def wait(_args: Mapping[str, Any], _context: Context) -> None:
        await release.wait()

    host = DispatcherHost(wait, concurrency=1, queue=5)
    queued = host.build_call()

    async def run(call: ToolCall) -> None:
        await host.run(call)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, host.build_call())
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(run, queued)
            await anyio.wait_all_tasks_blocked()
            release.set()
            queued.cancel()

    assert host.server_status.get_queue_load()["running"] == 0
    assert isinstance(await host.run(), Done)


async def test_a_raised_tool_error_reaches_the_caller_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = ToolError(ErrorCode.NO_INDEX, "no index here", hint="Build it.")

    async def fail(_args: Mapping[str, Any], _context: Context) -> None:
        async with anyio.create_task_group():
            raise error

    with caplog.at_level(logging.ERROR):
        assert await DispatcherHost(fail).run() == Failed(error)

    assert "contract.breach tool=probe code=NO_INDEX" in caplog.text


async def test_a_handler_knows_the_trace_that_its_call_is_part_of() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    traces: list[tuple[str, str]] = []

    async def record_trace(_args: Mapping[str, Any], context: Context) -> None:
        traces.append(context.trace)

    host = DispatcherHost(record_trace)
    await host.run()
    await host.run(ToolCall(tool="probe", arguments={}, traceparent=parent))

    [(first, span), (second, _)] = traces
    assert second == "0af7651916cd43dd8448eb211c80319c"
    assert first != second
    assert (len(first), len(span)) == (32, 16)
    assert int(span, 16)

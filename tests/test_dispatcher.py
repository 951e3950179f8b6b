"""How a call ends, whatever its tool does."""

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
from cleats.runtime.call import Call
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.telemetry import Telemetry
from cleats.runtime.vitals import Vitals
from tests.requirements import requirement

pytestmark = pytest.mark.anyio


class Host:
    """One dispatcher around one handler."""

    def __init__(
        self, run: Any, *, timeout: float | None = 60, concurrency: int = 1, queue: int = 1
    ) -> None:
        tool = Tool(name="probe", description="", input=arguments(), run=run, timeout=timeout)
        self.vitals = Vitals()
        self.dispatcher = Dispatcher(
            Registry([Toolset(name="one", purpose="", tools=[tool])]),
            concurrency=concurrency,
            queue=queue,
            telemetry=Telemetry(log_calls=False),
            vitals=self.vitals,
        )

    def call(self, tool: str = "probe", **given: Any) -> Call:
        return Call(id="1", tool=tool, arguments=given)

    async def run(self, call: Call | None = None) -> Outcome:
        return await self.dispatcher.dispatch(call or self.call())


async def for_ever(_args: Mapping[str, Any], _context: Context) -> None:
    await anyio.sleep_forever()


@requirement("a:timeout:answer")
async def test_a_call_past_its_deadline_fails_and_says_how_long_it_had() -> None:
    outcome = await Host(for_ever, timeout=0.01).run()

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.TOOL_TIMEOUT
    assert outcome.error.details == {"timeoutMs": 10}


async def test_a_timeout_of_nought_is_none_and_not_that_of_the_tool() -> None:
    async def soon(_args: Mapping[str, Any], _context: Context) -> str:
        await anyio.sleep(0.01)
        return "done"

    tool = Tool(name="probe", description="", input=arguments(), run=soon, timeout=0.001)
    dispatcher = Dispatcher(
        Registry([Toolset(name="one", purpose="", tools=[tool])]),
        concurrency=1,
        queue=0,
        timeouts={"probe": 0.0},
        telemetry=Telemetry(log_calls=False),
    )

    outcome = await dispatcher.dispatch(Call(tool="probe", arguments={}))

    assert isinstance(outcome, Done)


async def test_deadlines_of_many_calls_are_kept_apart() -> None:
    ended: list[str] = []

    async def wait(args: Mapping[str, Any], _context: Context) -> None:
        await anyio.sleep_forever()

    def tool(name: str, timeout: float | None) -> Tool:
        return Tool(name=name, description="", input=arguments(), run=wait, timeout=timeout)

    tools = [tool("slow", 1.0), tool("quick", 0.01), tool("endless", None)]
    registry = Registry([Toolset(name="t", purpose="", tools=tools)])
    dispatcher = Dispatcher(registry, concurrency=3, queue=0, telemetry=Telemetry(log_calls=False))
    endless = Call(tool="endless", arguments={})

    async def run(call: Call) -> None:
        await dispatcher.dispatch(call)
        ended.append(call.tool)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for call in (Call(tool="slow", arguments={}), Call(tool="quick", arguments={})):
                tasks.start_soon(run, call)
            tasks.start_soon(run, endless)
            while len(ended) < 2:
                await anyio.sleep(0.001)
            endless.cancel()

    assert ended == ["quick", "slow", "endless"]


async def test_a_timeout_inside_the_tool_is_a_crash_not_our_deadline() -> None:
    async def boom(_args: Mapping[str, Any], _context: Context) -> None:
        raise TimeoutError

    outcome = await Host(boom).run()

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.INTERNAL
    assert outcome.error.details == {"cause_class": "TimeoutError"}


@requirement("a:cancel:stops-the-work")
async def test_a_withdrawn_call_is_cancelled_and_its_handler_cleans_up_undisturbed() -> None:
    started = anyio.Event()
    cleaned: list[str] = []

    async def block(_args: Mapping[str, Any], _context: Context) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
                cleaned.append("yes")

    host = Host(block)
    call = host.call()
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
    assert cleaned == ["yes"]


async def test_a_call_withdrawn_before_it_starts_never_runs() -> None:
    async def never(_args: Mapping[str, Any], _context: Context) -> None:
        raise AssertionError

    host = Host(never)
    call = host.call()
    call.cancel()

    assert await host.run(call) == Cancelled()
    await anyio.lowlevel.checkpoint()  # no cancel is left over for the caller


@requirement("a:cancel:never-success")
async def test_a_handler_that_ignores_its_cancellation_cannot_answer_done() -> None:
    call: Call

    async def stubborn(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        call.cancel()
        return {"late": True}

    host = Host(stubborn)
    call = host.call()

    assert await host.run(call) == Cancelled()
    await anyio.lowlevel.checkpoint()


async def test_a_handler_that_swallows_its_cancellation_cannot_answer_done() -> None:
    async def deaf(_args: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return {"late": True}
        raise AssertionError

    outcome = await Host(deaf, timeout=0.01).run()

    assert isinstance(outcome, Failed)
    assert outcome.error.code is ErrorCode.TOOL_TIMEOUT
    await anyio.lowlevel.checkpoint()


async def test_a_cancel_of_the_whole_connection_passes_through() -> None:
    host = Host(for_ever)

    with anyio.move_on_after(0.02) as scope:
        await host.run()

    assert scope.cancelled_caught
    assert host.vitals.ended()["cancelled"] == 1
    assert host.vitals.in_flight() == []


@requirement("a:arguments:unknown-refused")
async def test_an_unknown_argument_is_rejected_by_its_path() -> None:
    host = Host(for_ever)

    outcome = await host.run(host.call(colour="red"))

    assert isinstance(outcome, Rejected)
    assert outcome.error.details[0]["instancePath"] == "/colour"


async def test_a_full_queue_rejects_the_next_call_and_keeps_the_order_of_the_rest() -> None:
    release = anyio.Event()
    ran: list[str | None] = []

    async def wait(_args: Mapping[str, Any], context: Context) -> None:
        assert isinstance(context, Call)
        ran.append(context.id)
        await release.wait()

    host = Host(wait, concurrency=1, queue=2)

    async def run(name: str) -> None:
        await host.run(Call(id=name, tool="probe", arguments={}))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "c"):
                tasks.start_soon(run, name)
            await anyio.wait_all_tasks_blocked()
            refused = await host.run()
            load = host.vitals.queue()
            release.set()

    assert isinstance(refused, Rejected)
    assert refused.error.code is ErrorCode.QUEUE_OVERLOADED
    assert refused.error.details == {"queue": {"max": 2, "size": 2}}
    assert load == {"running": 1, "maxRunning": 1, "waiting": 2, "maxWaiting": 2}
    assert ran == ["a", "b", "c"]
    assert host.vitals.queue()["running"] == 0


async def test_a_slot_that_is_handed_over_to_a_withdrawn_call_is_not_lost() -> None:
    release = anyio.Event()

    async def wait(_args: Mapping[str, Any], _context: Context) -> None:
        await release.wait()

    host = Host(wait, concurrency=1, queue=5)
    queued = host.call()

    async def run(call: Call) -> None:
        await host.run(call)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, host.call())
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(run, queued)
            await anyio.wait_all_tasks_blocked()
            release.set()
            queued.cancel()

    assert host.vitals.queue()["running"] == 0
    assert isinstance(await host.run(), Done)


async def test_a_raised_tool_error_reaches_the_caller_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = ToolError(ErrorCode.NO_INDEX, "no index here", hint="Build it.")

    async def fail(_args: Mapping[str, Any], _context: Context) -> None:
        async with anyio.create_task_group():
            raise error

    with caplog.at_level(logging.ERROR):
        assert await Host(fail).run() == Failed(error)

    assert "contract.breach tool=probe code=NO_INDEX" in caplog.text


async def test_a_handler_knows_the_trace_that_its_call_is_part_of() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    seen: list[tuple[str, str]] = []

    async def look(_args: Mapping[str, Any], context: Context) -> None:
        seen.append(context.trace)

    host = Host(look)
    await host.run()
    await host.run(Call(tool="probe", arguments={}, traceparent=parent))

    [(first, span), (second, _)] = seen
    assert second == "0af7651916cd43dd8448eb211c80319c"
    assert first != second
    assert (len(first), len(span)) == (32, 16)
    assert int(span, 16)

"""Tests of the queue of calls, in which callers take turns."""

import asyncio

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.concurrency import CallSlots

pytestmark = pytest.mark.anyio


class WaitingCalls:
    """Calls that wait for the one slot of a queue, and the order in which they get it."""

    def __init__(self, queue: int) -> None:
        self.slots = CallSlots(concurrency=1, queue=queue)
        self.order: list[str] = []
        assert self.slots.try_acquire()

    def start(self, caller: str, name: str) -> "asyncio.Task[None]":
        self.slots.check_capacity(caller)
        return asyncio.create_task(self._wait(caller, name))

    async def _wait(self, caller: str, name: str) -> None:
        await self.slots.wait_for_slot(caller)
        self.order.append(name)

    async def release_all(self, count: int) -> None:
        for _ in range(count):
            self.slots.release()
            await asyncio.sleep(0)


async def test_callers_take_turns_and_each_is_served_in_its_order() -> None:
    calls = WaitingCalls(queue=10)
    tasks = [calls.start("many", f"many {number}") for number in range(4)]
    await asyncio.sleep(0)
    tasks += [calls.start("few", f"few {number}") for number in range(2)]
    await asyncio.sleep(0)

    await calls.release_all(6)
    await asyncio.gather(*tasks)

    assert calls.order == ["many 0", "few 0", "many 1", "few 1", "many 2", "many 3"]
    assert (calls.slots.running, calls.slots.waiting) == (1, 0)


async def test_in_a_full_queue_the_newest_call_of_the_greediest_caller_makes_room() -> None:
    calls = WaitingCalls(queue=3)
    tasks = [calls.start("many", f"many {number}") for number in range(3)]
    await asyncio.sleep(0)

    with pytest.raises(ToolError) as refused:
        calls.start("many", "one too many")
    few = calls.start("few", "few")
    await asyncio.sleep(0)

    assert refused.value.code is ErrorCode.QUEUE_OVERLOADED
    with pytest.raises(ToolError, match="waiting"):
        await tasks[2]
    await calls.release_all(3)
    await asyncio.gather(*tasks[:2], few)
    assert calls.order == ["many 0", "few", "many 1"]


async def test_a_cancelled_call_leaves_its_place() -> None:
    calls = WaitingCalls(queue=2)
    first, second = calls.start("one", "first"), calls.start("two", "second")
    await asyncio.sleep(0)

    first.cancel()
    await asyncio.sleep(0)
    assert calls.slots.waiting == 1
    await calls.release_all(1)
    await second
    calls.slots.release()

    assert calls.order == ["second"]
    assert (calls.slots.running, calls.slots.waiting) == (0, 0)


async def test_a_slot_that_is_assigned_to_a_cancelled_call_goes_on_to_the_next() -> None:
    calls = WaitingCalls(queue=2)
    first, second = calls.start("one", "first"), calls.start("two", "second")
    await asyncio.sleep(0)

    calls.slots.release()
    first.cancel()
    await asyncio.sleep(0)
    await second

    assert calls.order == ["second"]

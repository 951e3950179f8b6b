"""Callers that share runs of blocking work."""

import threading
from collections.abc import Iterator

import anyio
import pytest

from cleats.system.processes.shared_runs import SharedRuns

pytestmark = pytest.mark.anyio


class GatedWork:
    """Work that counts its runs, each of which ends when it is let through."""

    def __init__(self) -> None:
        self.started = 0
        self.gate = threading.Semaphore(0)

    def __call__(self) -> int:
        self.started += 1
        number = self.started
        assert self.gate.acquire(timeout=30)
        return number


@pytest.fixture
def work() -> Iterator[GatedWork]:
    gated = GatedWork()
    yield gated
    gated.gate.release(10)


async def wait_until_started(work: GatedWork, count: int) -> None:
    with anyio.fail_after(30):
        while work.started < count:
            await anyio.sleep(0.001)


async def test_callers_that_come_during_a_run_share_the_next_one(work: GatedWork) -> None:
    runs, results = SharedRuns(work), []

    async def call() -> None:
        results.append(await runs.run())

    async with anyio.create_task_group() as calls:
        calls.start_soon(call)
        await wait_until_started(work, 1)
        for _ in range(5):
            calls.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        work.gate.release(2)
    assert results == [1, 2, 2, 2, 2, 2]


async def test_a_caller_after_a_run_gets_a_new_one(work: GatedWork) -> None:
    runs = SharedRuns(work)
    work.gate.release(2)
    assert [await runs.run(), await runs.run()] == [1, 2]


async def test_a_cancelled_caller_does_not_end_the_run_of_the_others(work: GatedWork) -> None:
    runs, results = SharedRuns(work), []

    async def call(scope: anyio.CancelScope) -> None:
        with scope:
            results.append(await runs.run())

    async with anyio.create_task_group() as calls:
        first, second = anyio.CancelScope(), anyio.CancelScope()
        calls.start_soon(call, first)
        calls.start_soon(call, second)
        await wait_until_started(work, 1)
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        work.gate.release(1)
    assert results == [1]


async def test_the_caller_after_a_run_that_nobody_waits_for_gets_a_new_one(work: GatedWork) -> None:
    runs = SharedRuns(work)
    with anyio.move_on_after(30) as scope:
        async with anyio.create_task_group() as calls:
            calls.start_soon(runs.run)
            await wait_until_started(work, 1)
            scope.cancel()
    work.gate.release(2)
    assert await runs.run() == 2


async def test_everybody_who_shares_a_run_gets_its_error() -> None:
    def fail() -> None:
        raise OSError("no such folder")

    runs, errors = SharedRuns(fail), []

    async def call() -> None:
        try:
            await runs.run()
        except OSError as error:
            errors.append(str(error))

    async with anyio.create_task_group() as calls:
        calls.start_soon(call)
        calls.start_soon(call)
    assert errors == ["no such folder", "no such folder"]

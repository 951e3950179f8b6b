"""Tests of the lease of a run: one driver at a time, stopped by a cancel, replaced when lost."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drive import engine as drives
from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.drive.leases import LeaseTiming
from cleats.toolsets.launch.runs.events import TraceIds
from cleats.toolsets.launch.runs.states import RunState
from cleats.toolsets.launch.store.model import Run, RunLease
from tests.support.launch_runs import build_config, create_engine, create_run, expire_lease, record_states
from tests.support.paths import REPOSITORY_ROOT
from tests.support.process_trees import find_children, is_alive
from tests.support.requirements import requirement
from tests.support.waiting import wait_until

pytestmark = pytest.mark.anyio

STEADY_PACE = LeaseTiming(lease_seconds=60.0, renew_seconds=1000.0, check_seconds=0.05, retry_seconds=0.02)
"""A pace at which nothing expires unless the test says so, and losses are noticed only by
polling."""


async def start_blocked_run(runs: RunEngine, gate: Path, step: str = "clone") -> Run:
    return await create_run(runs, build_config("stepwise", test={"block": {step: str(gate)}}))


async def wait_for_worker(gate: Path) -> int:
    """Return the process ID of the worker that waits at a gate."""
    with anyio.fail_after(60):
        while not (worker := read_gate(gate)):
            await anyio.sleep(0.01)
    return int(worker)


def read_gate(gate: Path) -> str:
    return gate.read_text() if gate.exists() else ""


def start_driver(home: Path, *words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.support.servers.launch_driver", str(home), *words]
    return subprocess.Popen(command, cwd=REPOSITORY_ROOT)


@requirement("e:cancel", "e:telemetry:work-items")
async def test_a_cancel_stops_the_worker_and_whoever_drives_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drives, "CANCEL_TIMEOUT_SECONDS", 60.0)
    before = find_children()
    runs = create_engine(tmp_path, pace=STEADY_PACE)
    gate = tmp_path / "gate"
    run = await start_blocked_run(runs, gate)
    error_codes: list[ErrorCode] = []

    async def drive_run() -> None:
        with pytest.raises(ToolError) as error:
            await runs.resume(run.run_id)
        error_codes.append(error.value.code)

    async with anyio.create_task_group() as group:
        group.start_soon(drive_run)
        worker = await wait_for_worker(gate)
        await runs.cancel(run.run_id)
        assert not is_alive(worker)

    assert error_codes == [ErrorCode.CANCELLED]
    assert runs.store.get(run.run_id).state is RunState.CANCELLED
    assert not runs.store.list_steps(run.run_id)
    assert find_children() <= before
    items = runs.store.get_snapshot(run.run_id)["work_items"]
    assert [(item["status"], item["error"]["code"]) for item in items] == [("failed", "CANCELLED")]
    log = [event.type for event in runs.store.list_events(run.run_id)]
    assert log[-3:] == ["WORK_ITEM_FAILED", "RUN_CANCELLED", "RUN_STATE_CHANGED"]
    await runs.cancel(run.run_id)  # once more is as good


async def test_a_cancel_from_another_process_stops_the_worker_too(tmp_path: Path) -> None:
    runs = create_engine(tmp_path, pace=STEADY_PACE)
    gate = tmp_path / "gate"
    run = await start_blocked_run(runs, gate)
    with start_driver(tmp_path, run.run_id, "--lease", "60") as other:
        worker = await wait_for_worker(gate)

        await runs.cancel(run.run_id)

        wait_until(lambda: not is_alive(worker))
        assert other.wait(timeout=60) == 0
    assert runs.store.get(run.run_id).state is RunState.CANCELLED
    assert not runs.store.list_steps(run.run_id)


async def test_a_call_that_is_withdrawn_stops_its_step_and_gives_the_run_back(
    tmp_path: Path,
) -> None:
    runs = create_engine(tmp_path, pace=STEADY_PACE)
    gate = tmp_path / "gate"
    run = await start_blocked_run(runs, gate, "inventory")

    async with anyio.create_task_group() as group:
        group.start_soon(runs.resume, run.run_id)
        worker = await wait_for_worker(gate)
        group.cancel_scope.cancel()

    stored = runs.store.get(run.run_id)
    assert not is_alive(worker)
    assert (stored.owner, stored.state) == ("", RunState.CLONED_INPUTS)
    assert [step.step for step in runs.store.list_steps(run.run_id)] == ["clone"]
    assert (await runs.resume(run.run_id))["state"] == "PLAN_READY"


async def test_a_driver_that_lost_its_lease_stops_and_what_it_made_does_not_count(
    tmp_path: Path,
) -> None:
    runs = create_engine(tmp_path, pace=STEADY_PACE)
    gate = tmp_path / "gate"
    run = await start_blocked_run(runs, gate)
    errors: list[ToolError] = []

    async def drive_run() -> None:
        with pytest.raises(ToolError) as error:
            await runs.resume(run.run_id)
        errors.append(error.value)

    async with anyio.create_task_group() as group:
        group.start_soon(drive_run)
        worker = await wait_for_worker(gate)
        steal_lease(runs, run)
        with anyio.fail_after(60):
            while not errors:
                await anyio.sleep(0.01)

    assert not is_alive(worker)
    assert (errors[0].code, errors[0].retryable) == (ErrorCode.ILLEGAL_STATE, True)
    assert not runs.store.list_steps(run.run_id)


def steal_lease(runs: RunEngine, run: Run) -> None:
    """Take a lease as if it had expired."""
    expire_lease(runs.store, run.run_id)
    assert runs.store.acquire(run.run_id, "thief", 60) is not None


async def test_a_lease_is_renewed_for_as_long_as_a_step_takes(tmp_path: Path) -> None:
    runs = create_engine(
        tmp_path, pace=LeaseTiming(lease_seconds=5.0, renew_seconds=0.05, check_seconds=0.02, retry_seconds=0.02)
    )
    gate = tmp_path / "gate"
    run = await start_blocked_run(runs, gate)

    async with anyio.create_task_group() as group:
        group.start_soon(runs.resume, run.run_id)
        await wait_for_worker(gate)
        first = runs.store.get(run.run_id).expires
        with anyio.fail_after(60):
            while runs.store.get(run.run_id).expires <= first:
                await anyio.sleep(0.01)
        gate.unlink()

    assert runs.store.get(run.run_id).state is RunState.PLAN_READY


async def test_a_lost_driver_is_followed_when_its_lease_has_run_out_and_not_before(
    tmp_path: Path,
) -> None:
    runs = create_engine(tmp_path, inline=True, pace=STEADY_PACE)
    run = await create_run(runs, build_config("stepwise"))
    lost = runs.store.acquire(run.run_id, "lost", 60)
    assert lost is not None

    with anyio.move_on_after(0.3) as waiting:
        await runs.resume(run.run_id)
    before = runs.store.get(run.run_id).state
    runs.store.renew(lost, -1)
    after = await runs.resume(run.run_id)

    assert waiting.cancelled_caught
    assert before is RunState.CREATED
    assert after["state"] == "PLAN_READY"


async def test_a_tool_whose_state_does_not_fit_answers_at_once_though_somebody_drives(
    tmp_path: Path,
) -> None:
    runs = create_engine(tmp_path, pace=STEADY_PACE)
    gate = tmp_path / "gate"
    run = await start_blocked_run(runs, gate)

    async with anyio.create_task_group() as group:
        group.start_soon(runs.resume, run.run_id)
        await wait_for_worker(gate)
        for tool in (runs.validate, runs.fix_next, runs.open_pr):
            with pytest.raises(ToolError) as error, anyio.fail_after(STEADY_PACE.lease_seconds / 2):
                await tool(run.run_id)
            assert error.value.code is ErrorCode.ILLEGAL_STATE
        group.cancel_scope.cancel()


async def test_two_resumes_at_once_do_the_work_once(tmp_path: Path) -> None:
    one = create_engine(tmp_path, inline=True, pace=STEADY_PACE)
    two = create_engine(tmp_path, inline=True, pace=STEADY_PACE)
    run = await create_run(one, build_config("stepwise"))
    lease = one.store.acquire(run.run_id, "somebody", 60)
    assert lease is not None
    reached_states: list[str] = []

    async def resume_run(runs: RunEngine) -> None:
        reached_states.append((await runs.resume(run.run_id))["state"])

    with record_states(one.store) as first, record_states(two.store) as second:
        async with anyio.create_task_group() as group:
            group.start_soon(resume_run, one)
            group.start_soon(resume_run, two)
            with anyio.fail_after(60):
                while not (first and second):
                    await anyio.sleep(0.01)
            one.store.release(lease)  # both have seen it where it began

    # The second waited, and told where the first had got to.
    assert reached_states == ["PLAN_READY", "PLAN_READY"]
    items = one.store.get_snapshot(run.run_id)["work_items"]
    assert [item["scope_key"] for item in items] == [*("clone", "inventory", "facts", "snippets", "plan")]


async def test_a_run_that_is_cancelled_while_its_lease_is_taken_is_not_driven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = create_engine(tmp_path, inline=True, pace=STEADY_PACE)
    run = await create_run(runs, build_config("stepwise"))
    acquire = runs.store.acquire

    def cancel_then_acquire(run_id: str, owner: str, seconds: float) -> RunLease | None:
        runs.store.cancel(run_id, lambda _: [], TraceIds())
        return acquire(run_id, owner, seconds)

    monkeypatch.setattr(runs.store, "acquire", cancel_then_acquire)
    with pytest.raises(ToolError) as error:
        await runs.resume(run.run_id)

    assert error.value.code is ErrorCode.CANCELLED
    assert runs.store.get_snapshot(run.run_id)["work_items"] == []

"""Who drives a run: one at a time, stopped by a cancel, followed when lost."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drive import driver as drives
from cleats.toolsets.launch.drive.driver import Engine
from cleats.toolsets.launch.drive.leases import Pace
from cleats.toolsets.launch.events import Trace
from cleats.toolsets.launch.states import State
from cleats.toolsets.launch.store.port import Lease, Run
from tests.launch_world import ROOT, config, engine, looking, run_out, start
from tests.requirements import requirement
from tests.trees import children, is_alive
from tests.waiting import until

pytestmark = pytest.mark.anyio

STEADY = Pace(lease=60.0, renew=1000.0, look=0.05, wait=0.02)
"""Nothing runs out here unless the test says so, and what is lost is only seen by looking."""


async def blocked(runs: Engine, gate: Path, step: str = "clone") -> Run:
    return await start(runs, config("stepwise", test={"block": {step: str(gate)}}))


async def reached(gate: Path) -> int:
    """The worker that waits at a gate."""
    with anyio.fail_after(60):
        while not (worker := written(gate)):
            await anyio.sleep(0.01)
    return int(worker)


def written(gate: Path) -> str:
    return gate.read_text() if gate.exists() else ""


def driver(home: Path, *words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.servers.launch_driver", str(home), *words]
    return subprocess.Popen(command, cwd=ROOT)


@requirement("e:cancel", "e:telemetry:work-items")
async def test_a_cancel_stops_the_worker_and_whoever_drives_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drives, "CANCEL_PATIENCE", 60.0)
    before = children()
    runs = engine(tmp_path, pace=STEADY)
    gate = tmp_path / "gate"
    run = await blocked(runs, gate)
    heard: list[ErrorCode] = []

    async def drive() -> None:
        with pytest.raises(ToolError) as error:
            await runs.resume(run.run_id)
        heard.append(error.value.code)

    async with anyio.create_task_group() as group:
        group.start_soon(drive)
        worker = await reached(gate)
        await runs.cancel(run.run_id)
        assert not is_alive(worker)

    assert heard == [ErrorCode.CANCELLED]
    assert runs.store.get(run.run_id).state is State.CANCELLED
    assert not runs.store.steps(run.run_id)
    assert children() <= before
    items = runs.store.snapshot(run.run_id)["work_items"]
    assert [(item["status"], item["error"]["code"]) for item in items] == [("failed", "CANCELLED")]
    log = [event.type for event in runs.store.events(run.run_id)]
    assert log[-3:] == ["WORK_ITEM_FAILED", "RUN_CANCELLED", "RUN_STATE_CHANGED"]
    await runs.cancel(run.run_id)  # once more is as good


async def test_a_cancel_from_another_process_stops_the_worker_too(tmp_path: Path) -> None:
    runs = engine(tmp_path, pace=STEADY)
    gate = tmp_path / "gate"
    run = await blocked(runs, gate)
    with driver(tmp_path, run.run_id, "--lease", "60") as other:
        worker = await reached(gate)

        await runs.cancel(run.run_id)

        until(lambda: not is_alive(worker))
        assert other.wait(timeout=60) == 0
    assert runs.store.get(run.run_id).state is State.CANCELLED
    assert not runs.store.steps(run.run_id)


async def test_a_call_that_is_withdrawn_stops_its_step_and_gives_the_run_back(
    tmp_path: Path,
) -> None:
    runs = engine(tmp_path, pace=STEADY)
    gate = tmp_path / "gate"
    run = await blocked(runs, gate, "inventory")

    async with anyio.create_task_group() as group:
        group.start_soon(runs.resume, run.run_id)
        worker = await reached(gate)
        group.cancel_scope.cancel()

    stored = runs.store.get(run.run_id)
    assert not is_alive(worker)
    assert (stored.owner, stored.state) == ("", State.CLONED_INPUTS)
    assert [step.step for step in runs.store.steps(run.run_id)] == ["clone"]
    assert (await runs.resume(run.run_id))["state"] == "PLAN_READY"


async def test_a_driver_that_lost_its_lease_stops_and_what_it_made_does_not_count(
    tmp_path: Path,
) -> None:
    runs = engine(tmp_path, pace=STEADY)
    gate = tmp_path / "gate"
    run = await blocked(runs, gate)
    heard: list[ToolError] = []

    async def drive() -> None:
        with pytest.raises(ToolError) as error:
            await runs.resume(run.run_id)
        heard.append(error.value)

    async with anyio.create_task_group() as group:
        group.start_soon(drive)
        worker = await reached(gate)
        rob(runs, run)
        with anyio.fail_after(60):
            while not heard:
                await anyio.sleep(0.01)

    assert not is_alive(worker)
    assert (heard[0].code, heard[0].retryable) == (ErrorCode.ILLEGAL_STATE, True)
    assert not runs.store.steps(run.run_id)


def rob(runs: Engine, run: Run) -> None:
    """Take a lease as if it had run out."""
    run_out(runs.store, run.run_id)
    assert runs.store.acquire(run.run_id, "thief", 60) is not None


async def test_a_lease_is_renewed_for_as_long_as_a_step_takes(tmp_path: Path) -> None:
    runs = engine(tmp_path, pace=Pace(lease=5.0, renew=0.05, look=0.02, wait=0.02))
    gate = tmp_path / "gate"
    run = await blocked(runs, gate)

    async with anyio.create_task_group() as group:
        group.start_soon(runs.resume, run.run_id)
        await reached(gate)
        first = runs.store.get(run.run_id).expires
        with anyio.fail_after(60):
            while runs.store.get(run.run_id).expires <= first:
                await anyio.sleep(0.01)
        gate.unlink()

    assert runs.store.get(run.run_id).state is State.PLAN_READY


async def test_a_lost_driver_is_followed_when_its_lease_has_run_out_and_not_before(
    tmp_path: Path,
) -> None:
    runs = engine(tmp_path, inline=True, pace=STEADY)
    run = await start(runs, config("stepwise"))
    lost = runs.store.acquire(run.run_id, "lost", 60)
    assert lost is not None

    with anyio.move_on_after(0.3) as waiting:
        await runs.resume(run.run_id)
    before = runs.store.get(run.run_id).state
    runs.store.renew(lost, -1)
    after = await runs.resume(run.run_id)

    assert waiting.cancelled_caught
    assert before is State.CREATED
    assert after["state"] == "PLAN_READY"


async def test_a_tool_whose_state_does_not_fit_answers_at_once_though_somebody_drives(
    tmp_path: Path,
) -> None:
    runs = engine(tmp_path, pace=STEADY)
    gate = tmp_path / "gate"
    run = await blocked(runs, gate)

    async with anyio.create_task_group() as group:
        group.start_soon(runs.resume, run.run_id)
        await reached(gate)
        for tool in (runs.validate, runs.fix_next, runs.open_pr):
            with pytest.raises(ToolError) as error, anyio.fail_after(STEADY.lease / 2):
                await tool(run.run_id)
            assert error.value.code is ErrorCode.ILLEGAL_STATE
        group.cancel_scope.cancel()


async def test_two_resumes_at_once_do_the_work_once(tmp_path: Path) -> None:
    one = engine(tmp_path, inline=True, pace=STEADY)
    two = engine(tmp_path, inline=True, pace=STEADY)
    run = await start(one, config("stepwise"))
    lease = one.store.acquire(run.run_id, "somebody", 60)
    assert lease is not None
    seen: list[str] = []

    async def resume(runs: Engine) -> None:
        seen.append((await runs.resume(run.run_id))["state"])

    with looking(one.store) as first, looking(two.store) as second:
        async with anyio.create_task_group() as group:
            group.start_soon(resume, one)
            group.start_soon(resume, two)
            with anyio.fail_after(60):
                while not (first and second):
                    await anyio.sleep(0.01)
            one.store.release(lease)  # both have seen it where it began

    # The second waited, and told where the first had got to.
    assert seen == ["PLAN_READY", "PLAN_READY"]
    items = one.store.snapshot(run.run_id)["work_items"]
    assert [item["scope_key"] for item in items] == [
        *("clone", "inventory", "facts", "snippets", "plan")
    ]


async def test_a_run_that_is_cancelled_while_its_lease_is_taken_is_not_driven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = engine(tmp_path, inline=True, pace=STEADY)
    run = await start(runs, config("stepwise"))
    acquire = runs.store.acquire

    def late(run_id: str, owner: str, seconds: float) -> Lease | None:
        runs.store.cancel(run_id, lambda _: [], Trace())
        return acquire(run_id, owner, seconds)

    monkeypatch.setattr(runs.store, "acquire", late)
    with pytest.raises(ToolError) as error:
        await runs.resume(run.run_id)

    assert error.value.code is ErrorCode.CANCELLED
    assert runs.store.snapshot(run.run_id)["work_items"] == []

"""Tests of workers on one PostgreSQL: any of them can drive a run, whichever of them dies."""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.system.postgres import UnreachableError
from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.drive.run_driver import Caller
from cleats.toolsets.launch.fleet import FleetWorker, RetryLaterError, RetrySoonError, RunQueue, is_abandoned
from cleats.toolsets.launch.runs.events import TraceIds
from cleats.toolsets.launch.runs.states import RunState
from cleats.toolsets.launch.store.databases import PostgresStore
from cleats.toolsets.launch.store.model import Run
from tests.support.held_locks import close_after_test
from tests.support.launch_runs import TEST_PACE, build_config, create_engine, create_run, expire_lease
from tests.support.paths import REPOSITORY_ROOT
from tests.support.postgres import create_database, make_unreachable
from tests.support.process_trees import find_children, is_alive
from tests.support.spans import read_span_files
from tests.support.waiting import WAIT_TIMEOUT_SECONDS, wait_until

CALL_TRACE = TraceIds("7" * 32, "8" * 16)


class WorkerFleet:
    """Workers that can be started and killed, and the store that they share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = create_database()
        self.workers: list[subprocess.Popen[bytes]] = []
        self.owners: dict[int, str] = {}
        self.engine: RunEngine = create_engine(folder, store=PostgresStore(self.url))

    def start_worker(self) -> subprocess.Popen[bytes]:
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.support.servers.fleet_worker", str(self.folder), self.url],
            cwd=REPOSITORY_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.workers.append(worker)
        assert worker.stdout is not None
        status_word, self.owners[worker.pid] = worker.stdout.readline().decode().split()
        assert status_word == "ready"
        return worker

    def kill_worker(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill a worker; its runs have lost their driver, and its steps have ended."""
        worker.send_signal(signal.SIGSTOP)  # it starts nothing any more
        supervisors = find_children(worker.pid)
        self.reap_worker(worker)
        wait_until(lambda: not any(map(is_alive, supervisors)))
        for run in self.engine.store.list_runs():
            owner = self.engine.store.get(run.run_id).owner
            if owner.startswith(self.owners[worker.pid]):
                expire_lease(self.engine.store, run.run_id)

    def reap_worker(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()
        assert worker.stdout is not None
        worker.stdout.close()
        self.workers.remove(worker)

    def stop_workers(self) -> None:
        """Let all workers end gracefully."""
        for worker in self.workers:
            worker.terminate()
            worker.wait()

    def submit(self, **changes: Any) -> Run:
        async def start_and_defer() -> Run:
            run = await create_run(self.engine, build_config(**changes), caller=Caller(CALL_TRACE))
            jobs = RunQueue(self.url)
            async with jobs.open():
                await jobs.defer(run.run_id)
            return run

        return anyio.run(start_and_defer)

    def read_state(self, run: Run) -> RunState:
        return self.engine.store.get(run.run_id).state

    def list_steps(self, run: Run) -> list[str]:
        return [step.step for step in self.engine.store.list_steps(run.run_id)]


@contextmanager
def open_fleet(folder: Path) -> Iterator[WorkerFleet]:
    worker_fleet = WorkerFleet(folder)
    try:
        yield worker_fleet
    finally:
        for worker in list(worker_fleet.workers):
            worker_fleet.reap_worker(worker)
        worker_fleet.engine.store.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[WorkerFleet]:
    with open_fleet(tmp_path) as worker_fleet:
        yield worker_fleet


pytestmark = pytest.mark.timeout(300)  # a database, and workers that come and go

RUN_STEPS = ["clone", "inventory", "facts", "snippets", "plan", "draft:docs", "link", "apply"]


def test_a_worker_takes_a_run_from_the_queue_to_its_decision(fleet: WorkerFleet) -> None:
    run = fleet.submit()
    fleet.start_worker()

    wait_until(lambda: fleet.read_state(run) is RunState.READY_FOR_PR)

    assert fleet.list_steps(run) == [*RUN_STEPS, "validate:1"]


def test_a_run_whose_worker_was_killed_is_finished_by_another_without_an_operator(
    fleet: WorkerFleet, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    run = fleet.submit(test={"block": {"facts": str(gate)}})
    first = fleet.start_worker()
    wait_until(gate.exists)
    fleet.kill_worker(first)
    gate.unlink()

    fleet.start_worker()
    wait_until(lambda: fleet.read_state(run) is RunState.READY_FOR_PR)

    assert fleet.list_steps(run) == [*RUN_STEPS, "validate:1"]
    assert fleet.engine.store.verify(run.run_id)
    events = fleet.engine.store.list_events(run.run_id)
    assert {entry.trace.trace_id for entry in events} == {CALL_TRACE.trace_id}
    fleet.stop_workers()
    spans = read_span_files(*(tmp_path / "spans").iterdir())
    drives = [entry for entry in spans if entry.name == "drive"]  # the killed one's has no end
    assert {drive.ids[::2] for drive in drives} == {CALL_TRACE[:2]}
    drive_ids = {drive.span_id for drive in drives}  # more than one if a slow machine lets the lease run out
    after = [entry.attributes["cleats.step"] for entry in spans if entry.parent_id in drive_ids]
    assert after == [*RUN_STEPS[2:], "validate:1"]


def test_a_run_that_nobody_put_into_the_queue_is_found(fleet: WorkerFleet) -> None:
    run = anyio.run(create_run, fleet.engine, build_config())
    fleet.start_worker()

    wait_until(lambda: fleet.read_state(run) is RunState.READY_FOR_PR)


def test_a_run_that_was_to_publish_itself_does_so_although_its_worker_was_lost(
    fleet: WorkerFleet, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    test = {"block": {"commit": str(gate)}, "remote": str(tmp_path / "remote.txt")}
    run = fleet.submit(drive={"auto_pr": True}, test=test)
    first = fleet.start_worker()
    wait_until(gate.exists)
    fleet.kill_worker(first)
    gate.unlink()

    fleet.start_worker()
    wait_until(lambda: gate.exists() or fleet.read_state(run) is RunState.DONE)
    gate.unlink(missing_ok=True)
    wait_until(lambda: fleet.read_state(run) is RunState.DONE)


def test_a_step_that_fails_for_a_passing_reason_is_tried_again_by_itself(fleet: WorkerFleet) -> None:
    fault = {"times": 1, "code": "REPO_NOT_FOUND", "retryable": True}
    run = fleet.submit(test={"raise": {"clone": fault}})
    fleet.start_worker()

    wait_until(lambda: fleet.read_state(run) is RunState.READY_FOR_PR)


def test_two_workers_and_a_dozen_kills_leave_every_run_finished_and_none_doubled(
    fleet: WorkerFleet, tmp_path: Path
) -> None:
    chance = random.Random(11)
    remote = tmp_path / "remote.txt"
    run_options = {"drive": {"auto_pr": True}, "test": {"remote": str(remote)}}
    runs = [fleet.submit(**run_options) for _ in range(6)]
    fleet.start_worker()
    fleet.start_worker()

    for _ in range(12):
        before = sum(len(fleet.list_steps(run)) for run in runs)
        wait_until(lambda before=before: _has_moved(fleet, runs, before))  # type: ignore[misc]
        fleet.kill_worker(chance.choice(fleet.workers))
        fleet.start_worker()
    wait_until(lambda: all(fleet.read_state(run) is RunState.DONE for run in runs), limit=180)

    for run in runs:
        assert fleet.list_steps(run) == [*RUN_STEPS, "validate:1", "commit", "request"]
        assert fleet.engine.store.verify(run.run_id)
    commits = remote.read_text().splitlines()
    assert len(commits) == len(set(commits)) == len(runs)


def _has_moved(fleet: WorkerFleet, runs: list[Run], before: int) -> bool:
    is_done = all(fleet.read_state(run) is RunState.DONE for run in runs)
    return is_done or sum(len(fleet.list_steps(run)) for run in runs) > before


def test_a_worker_that_is_asked_to_stop_gives_its_run_back_at_once(fleet: WorkerFleet, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    run = fleet.submit(test={"block": {"facts": str(gate)}})
    worker = fleet.start_worker()
    wait_until(lambda: gate.exists() and gate.read_text())
    child = int(gate.read_text())

    worker.send_signal(signal.SIGTERM)
    worker.wait(60)

    assert fleet.engine.store.get(run.run_id).owner == ""
    wait_until(lambda: not is_alive(child))
    gate.unlink()
    fleet.start_worker()
    wait_until(lambda: fleet.read_state(run) is RunState.READY_FOR_PR)


def test_a_run_that_rests_or_failed_or_goes_by_steps_is_nobodys_to_take_over(
    fleet: WorkerFleet,
) -> None:
    resting = anyio.run(create_run, fleet.engine, build_config(test={"page": "BAD9"}))
    stepwise = anyio.run(create_run, fleet.engine, build_config("stepwise"))
    fault = {"code": "REPO_NOT_FOUND", "retryable": True}
    failing = anyio.run(create_run, fleet.engine, build_config(test={"raise": {"clone": fault}}))
    worker = FleetWorker(fleet.engine, RunQueue(fleet.url))

    anyio.run(worker.drive, resting.run_id)
    with pytest.raises(RetryLaterError):
        anyio.run(worker.drive, failing.run_id)

    store = fleet.engine.store
    for run in (resting, stepwise, failing):
        assert not is_abandoned(store.get(run.run_id), store.list_steps(run.run_id))


@pytest.mark.anyio
async def test_a_queue_that_is_away_is_told_as_a_database_that_does_not_answer() -> None:
    url = create_database()
    jobs, late = RunQueue(url, connect_timeout=0.2), RunQueue(url)

    async with jobs.open():
        with make_unreachable(url):
            with pytest.raises(UnreachableError):
                await jobs.defer("r_1")
            with pytest.raises(UnreachableError):
                async with late.open():
                    pass


@pytest.mark.anyio
async def test_a_job_is_retried_at_once_although_the_clock_of_its_worker_is_an_hour_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cleats.toolsets.launch.fleet.RETRY_BASE_SECONDS", 0)
    monkeypatch.setattr("procrastinate.utils.utcnow", lambda: datetime.now(UTC) + timedelta(hours=1))
    jobs = RunQueue(create_database())
    attempts: list[str] = []
    second_attempt = anyio.Event()

    async def fail_once(run_id: str) -> None:
        attempts.append(run_id)
        if len(attempts) == 1:
            raise RetryLaterError("BUSY")
        second_attempt.set()

    async with jobs.open(), anyio.create_task_group() as tasks:
        tasks.start_soon(partial(jobs.run_worker, fail_once, concurrency=1, drain=0.1))
        await jobs.defer("r_1")
        with anyio.fail_after(WAIT_TIMEOUT_SECONDS):
            await second_attempt.wait()
        tasks.cancel_scope.cancel()

    assert attempts == ["r_1", "r_1"]


@pytest.mark.anyio
async def test_a_run_whose_driver_lost_the_database_counts_as_abandoned_until_it_goes_on(tmp_path: Path) -> None:
    url = create_database()
    pace = replace(TEST_PACE, renew_seconds=1000.0, check_seconds=1000.0)  # nothing opens the connection again early
    engine = create_engine(tmp_path, store=close_after_test(PostgresStore(url)), pace=pace)
    gate = tmp_path / "gate"
    run = await create_run(engine, build_config(test={"block": {"facts": str(gate)}}))
    worker = FleetWorker(engine, RunQueue(url))

    async def cut_connections() -> None:
        with anyio.fail_after(WAIT_TIMEOUT_SECONDS):
            while not (gate.exists() and gate.read_text()):
                await anyio.sleep(0.01)
        with make_unreachable(url):
            pass
        gate.unlink()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cut_connections)
        with pytest.raises(RetrySoonError):
            await worker.drive(run.run_id)

    [orphan] = engine.store.list_orphans(10)
    assert is_abandoned(orphan, engine.store.list_steps(run.run_id))
    await worker.drive(run.run_id)
    assert engine.store.get(run.run_id).state is RunState.READY_FOR_PR
    assert engine.store.list_orphans(10) == []

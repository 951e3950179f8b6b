"""Workers on one PostgreSQL: a run needs one of them, whichever it is and whoever dies."""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.runtime.postgres import UnreachableError
from cleats.toolsets.launch.drive.course import Caller
from cleats.toolsets.launch.drive.driver import Engine
from cleats.toolsets.launch.events import Trace
from cleats.toolsets.launch.fleet.jobs import Jobs
from cleats.toolsets.launch.fleet.worker import PassingError, Worker, abandoned
from cleats.toolsets.launch.states import State
from cleats.toolsets.launch.store.port import Run
from cleats.toolsets.launch.store.postgres import PostgresStore
from tests.launch_world import ROOT, config, engine, run_out, start
from tests.postgres import away, database
from tests.span_world import of_file
from tests.trees import children, is_alive
from tests.waiting import until

CALL = Trace("7" * 32, "8" * 16)


class Fleet:
    """Workers that can be started and killed, and the store that they share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = database()
        self.workers: list[subprocess.Popen[bytes]] = []
        self.owners: dict[int, str] = {}
        self.engine: Engine = engine(folder, store=PostgresStore(self.url))

    def hire(self) -> subprocess.Popen[bytes]:
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.fleet_worker", str(self.folder), self.url],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.workers.append(worker)
        assert worker.stdout is not None
        said, self.owners[worker.pid] = worker.stdout.readline().decode().split()
        assert said == "ready"
        return worker

    def fire(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill a worker; what it drove has lost its driver, and the steps are over."""
        worker.send_signal(signal.SIGSTOP)  # it starts nothing any more
        supervisors = children(worker.pid)
        self.bury(worker)
        until(lambda: not any(map(is_alive, supervisors)))
        for each in self.engine.store.list():
            owner = self.engine.store.get(each.run_id).owner
            if owner.startswith(self.owners[worker.pid]):
                run_out(self.engine.store, each.run_id)

    def bury(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()
        assert worker.stdout is not None
        worker.stdout.close()
        self.workers.remove(worker)

    def dismiss(self) -> None:
        """Let all workers end in good order."""
        for worker in self.workers:
            worker.terminate()
            worker.wait()

    def submit(self, **given: Any) -> Run:
        async def both() -> Run:
            run = await start(self.engine, config(**given), by=Caller(CALL))
            jobs = Jobs(self.url)
            async with jobs.open():
                await jobs.defer(run.run_id)
            return run

        return anyio.run(both)

    def state(self, run: Run) -> State:
        return self.engine.store.get(run.run_id).state

    def steps(self, run: Run) -> list[str]:
        return [each.step for each in self.engine.store.steps(run.run_id)]


@contextmanager
def a_fleet(folder: Path) -> Iterator[Fleet]:
    made = Fleet(folder)
    try:
        yield made
    finally:
        for worker in list(made.workers):
            made.bury(worker)
        made.engine.store.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with a_fleet(tmp_path) as made:
        yield made


pytestmark = pytest.mark.timeout(300)  # a database, and workers that come and go

WHOLE = ["clone", "inventory", "facts", "snippets", "plan", "draft:docs", "link", "apply"]


def test_a_worker_takes_a_run_from_the_queue_to_its_decision(fleet: Fleet) -> None:
    run = fleet.submit()
    fleet.hire()

    until(lambda: fleet.state(run) is State.READY_FOR_PR)

    assert fleet.steps(run) == [*WHOLE, "validate:1"]


def test_a_run_whose_worker_was_killed_is_finished_by_another_without_an_operator(
    fleet: Fleet, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    run = fleet.submit(test={"block": {"facts": str(gate)}})
    first = fleet.hire()
    until(gate.exists)
    fleet.fire(first)
    gate.unlink()

    fleet.hire()
    until(lambda: fleet.state(run) is State.READY_FOR_PR)

    assert fleet.steps(run) == [*WHOLE, "validate:1"]
    assert fleet.engine.store.verify(run.run_id)
    events = fleet.engine.store.events(run.run_id)
    assert {each.trace.trace_id for each in events} == {CALL.trace_id}
    fleet.dismiss()
    spans = of_file(*(tmp_path / "spans").iterdir())
    [drive] = [each for each in spans if each.name == "drive"]  # the killed one's has no end
    assert drive.ids[::2] == CALL[:2]
    after = [each.attributes["cleats.step"] for each in spans if each.parent_id == drive.span_id]
    assert after == [*WHOLE[2:], "validate:1"]


def test_a_run_that_nobody_put_into_the_queue_is_found(fleet: Fleet) -> None:
    run = anyio.run(start, fleet.engine, config())
    fleet.hire()

    until(lambda: fleet.state(run) is State.READY_FOR_PR)


def test_a_run_that_was_to_publish_itself_does_so_although_its_worker_was_lost(
    fleet: Fleet, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    test = {"block": {"commit": str(gate)}, "remote": str(tmp_path / "remote.txt")}
    run = fleet.submit(drive={"auto_pr": True}, test=test)
    first = fleet.hire()
    until(gate.exists)
    fleet.fire(first)
    gate.unlink()

    fleet.hire()
    until(lambda: gate.exists() or fleet.state(run) is State.DONE)
    gate.unlink(missing_ok=True)
    until(lambda: fleet.state(run) is State.DONE)


def test_a_step_that_fails_for_a_passing_reason_is_tried_again_by_itself(fleet: Fleet) -> None:
    fault = {"times": 1, "code": "REPO_NOT_FOUND", "retryable": True}
    run = fleet.submit(test={"raise": {"clone": fault}})
    fleet.hire()

    until(lambda: fleet.state(run) is State.READY_FOR_PR)


def test_two_workers_and_a_dozen_kills_leave_every_run_finished_and_none_doubled(
    fleet: Fleet, tmp_path: Path
) -> None:
    chance = random.Random(11)
    remote = tmp_path / "remote.txt"
    given = {"drive": {"auto_pr": True}, "test": {"remote": str(remote)}}
    runs = [fleet.submit(**given) for _ in range(6)]
    fleet.hire()
    fleet.hire()

    for _ in range(12):
        before = sum(len(fleet.steps(run)) for run in runs)
        until(lambda before=before: _moved(fleet, runs, before))  # type: ignore[misc]
        fleet.fire(chance.choice(fleet.workers))
        fleet.hire()
    until(lambda: all(fleet.state(run) is State.DONE for run in runs), limit=180)

    for run in runs:
        assert fleet.steps(run) == [*WHOLE, "validate:1", "commit", "request"]
        assert fleet.engine.store.verify(run.run_id)
    commits = remote.read_text().splitlines()
    assert len(commits) == len(set(commits)) == len(runs)


def _moved(fleet: Fleet, runs: list[Run], before: int) -> bool:
    done = all(fleet.state(run) is State.DONE for run in runs)
    return done or sum(len(fleet.steps(run)) for run in runs) > before


def test_a_worker_that_is_asked_to_stop_gives_its_run_back_at_once(
    fleet: Fleet, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    run = fleet.submit(test={"block": {"facts": str(gate)}})
    worker = fleet.hire()
    until(lambda: gate.exists() and gate.read_text())
    child = int(gate.read_text())

    worker.send_signal(signal.SIGTERM)
    worker.wait(60)

    assert fleet.engine.store.get(run.run_id).owner == ""
    until(lambda: not is_alive(child))
    gate.unlink()
    fleet.hire()
    until(lambda: fleet.state(run) is State.READY_FOR_PR)


def test_a_run_that_rests_or_failed_or_goes_by_steps_is_nobodys_to_take_over(
    fleet: Fleet,
) -> None:
    resting = anyio.run(start, fleet.engine, config(test={"page": "BAD9"}))
    stepwise = anyio.run(start, fleet.engine, config("stepwise"))
    fault = {"code": "REPO_NOT_FOUND", "retryable": True}
    failing = anyio.run(start, fleet.engine, config(test={"raise": {"clone": fault}}))
    worker = Worker(fleet.engine, Jobs(fleet.url))

    anyio.run(worker.drive, resting.run_id)
    with pytest.raises(PassingError):
        anyio.run(worker.drive, failing.run_id)

    store = fleet.engine.store
    for run in (resting, stepwise, failing):
        assert not abandoned(store.get(run.run_id), store.steps(run.run_id))


@pytest.mark.anyio
async def test_a_queue_that_is_away_is_told_as_a_database_that_does_not_answer() -> None:
    url = database()
    jobs, late = Jobs(url, patience=0.2), Jobs(url)

    async with jobs.open():
        with away(url):
            with pytest.raises(UnreachableError):
                await jobs.defer("r_1")
            with pytest.raises(UnreachableError):
                async with late.open():
                    pass

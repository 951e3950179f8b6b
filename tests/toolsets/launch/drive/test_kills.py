"""Tests of drivers that are killed at any moment: the run goes on, and nothing is done twice."""

import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.toolsets.launch.drive.engine import RunEngine
from cleats.toolsets.launch.runs.snapshot import replay_events
from cleats.toolsets.launch.runs.states import RunState
from tests.support.launch_runs import build_config, create_engine, create_run, expire_lease
from tests.support.paths import REPOSITORY_ROOT
from tests.support.process_trees import is_alive
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(300)  # each kill costs a new process

PASSED_STATES = [
    *(RunState.CLONED_INPUTS, RunState.INGESTED, RunState.FACTS_READY, RunState.PLAN_READY, RunState.DRAFTING),
    *(RunState.DRAFT_READY, RunState.LINKING, RunState.VALIDATING, RunState.FIXING, RunState.READY_FOR_PR),
    RunState.PR_OPENED,
]
RUN_STEPS = [
    *("clone", "inventory", "facts", "snippets", "plan", "draft:docs", "link", "apply"),
    *("validate:1", "fix:1", "apply:fix:1", "validate:2", "commit", "request"),
]


def start_driver(home: Path, *words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.servers.launch_driver", str(home), *words],
        cwd=REPOSITORY_ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def kill_process(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def kill_processes(processes: "list[subprocess.Popen[bytes]]") -> None:
    for process in processes:
        process.kill()


def wait_for_success(process: "subprocess.Popen[bytes]") -> None:
    _, stderr = process.communicate(timeout=100)
    assert process.returncode == 0, stderr.decode()


def check_finished_run(runs: RunEngine, run_id: str, remote: Path) -> None:
    """Check that the run is done with one commit, and that nothing is recorded twice."""
    steps = [step.step for step in runs.store.list_steps(run_id)]
    events = runs.store.list_events(run_id)
    snapshot = runs.store.get_snapshot(run_id)
    finished_steps = Counter(item["scope_key"] for item in snapshot["work_items"] if item["status"] == "finished")
    assert snapshot["run_state"] == "DONE"
    assert steps == RUN_STEPS
    assert finished_steps == Counter(RUN_STEPS)
    assert {item["status"] for item in snapshot["work_items"]} <= {"finished", "failed"}
    assert remote.read_text().splitlines().count(f"launch/{run_id}/x") == 1
    assert runs.store.verify(run_id)
    assert replay_events(run_id, events) == snapshot


def start_stepwise_run(runs: RunEngine, **test: Any) -> str:
    run = anyio.run(create_run, runs, build_config("stepwise", test={"page": "BAD1", **test}))
    return run.run_id


def test_a_driver_killed_in_each_state_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    runs = create_engine(tmp_path)
    remote = tmp_path / "remote.txt"
    run_id = start_stepwise_run(runs, remote=str(remote))

    for state in PASSED_STATES:
        doomed = start_driver(tmp_path, run_id, "--inline", "--halt", state.value)
        wait_until((tmp_path / "halted").exists)
        assert runs.store.get(run_id).state is state
        kill_process(doomed)
        (tmp_path / "halted").unlink()
    wait_for_success(start_driver(tmp_path, run_id, "--inline"))

    check_finished_run(runs, run_id, remote)


def test_a_driver_killed_in_each_step_leaves_no_process_and_the_step_is_done_again(
    tmp_path: Path,
) -> None:
    runs = create_engine(tmp_path)
    remote = tmp_path / "remote.txt"
    gates = {step: tmp_path / f"gate{place}" for place, step in enumerate(RUN_STEPS)}
    run_id = start_stepwise_run(runs, remote=str(remote), block={step: str(at) for step, at in gates.items()})

    for gate in gates.values():
        doomed = start_driver(tmp_path, run_id)
        wait_until(lambda: gate.exists() and gate.read_text())  # noqa: B023 - it is waited for here
        worker = int(gate.read_text())
        kill_process(doomed)
        wait_until(lambda: not is_alive(worker))  # noqa: B023
    wait_for_success(start_driver(tmp_path, run_id))

    check_finished_run(runs, run_id, remote)
    ran = (tmp_path / "runs" / run_id / "ran.log").read_text().splitlines()
    assert [line.rsplit(" ", 1)[0] for line in ran] == [f"{step} {attempt}" for step in RUN_STEPS for attempt in (1, 2)]


def test_two_drivers_on_one_store_survive_twenty_five_kills(tmp_path: Path) -> None:
    dice = random.Random(25)
    runs = create_engine(tmp_path)
    remote = tmp_path / "remote.txt"
    names = [start_stepwise_run(runs, remote=str(remote)) for _ in range(12)]

    def count_events() -> int:
        return sum(runs.store.get(name).tail.length for name in names)

    def has_open_runs() -> bool:
        return any(runs.store.get(name).state is not RunState.DONE for name in names)

    def start_next_driver() -> "subprocess.Popen[bytes]":
        words = (*names, "--inline", "--lease", "60", "--seed", str(dice.random())[2:8])
        return start_driver(tmp_path, *words)

    def expire_leases(driver: "subprocess.Popen[bytes]") -> None:
        """Let the leases of a killed driver expire."""
        owner_path = tmp_path / f"owner.{driver.pid}"
        owner = owner_path.read_text() if owner_path.exists() else "nobody"  # it had not begun
        for name in names:
            if runs.store.get(name).owner.startswith(owner):
                expire_lease(runs.store, name)

    with ExitStack() as stack:
        both = [start_next_driver(), start_next_driver()]
        stack.callback(kill_processes, both)
        kills = 0
        while kills < 25:
            goal = count_events() + dice.randint(1, 20)
            wait_until(lambda: count_events() >= goal or not has_open_runs())  # noqa: B023
            place = dice.randrange(2)
            kill_process(both[place])
            expire_leases(both[place])
            both[place] = start_next_driver()
            kills += 1
        for process in both:
            wait_for_success(process)

    for name in names:
        check_finished_run(runs, name, remote)

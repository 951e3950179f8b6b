"""A driver that is killed, at any moment: the run goes on, and nothing is done twice."""

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

from cleats.toolsets.launch.drive.driver import Engine
from cleats.toolsets.launch.snapshot import replay
from cleats.toolsets.launch.states import State
from tests.launch_world import ROOT, config, engine, run_out, start
from tests.trees import is_alive
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)  # each kill costs a new process

ON_THE_WAY = [
    *(State.CLONED_INPUTS, State.INGESTED, State.FACTS_READY, State.PLAN_READY, State.DRAFTING),
    *(State.DRAFT_READY, State.LINKING, State.VALIDATING, State.FIXING, State.READY_FOR_PR),
    State.PR_OPENED,
]
STEPS = [
    *("clone", "inventory", "facts", "snippets", "plan", "draft:docs", "link", "apply"),
    *("validate:1", "fix:1", "apply:fix:1", "validate:2", "commit", "request"),
]


def driver(home: Path, *words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.servers.launch_driver", str(home), *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def end(processes: "list[subprocess.Popen[bytes]]") -> None:
    for process in processes:
        process.kill()


def finish(process: "subprocess.Popen[bytes]") -> None:
    _, said = process.communicate(timeout=100)
    assert process.returncode == 0, said.decode()


def check(runs: Engine, run_id: str, remote: Path) -> None:
    """The run is done; nothing is recorded twice; one commit; the log tells the snapshot."""
    steps = [step.step for step in runs.store.steps(run_id)]
    events = runs.store.events(run_id)
    snapshot = runs.store.snapshot(run_id)
    ended = Counter(
        item["scope_key"] for item in snapshot["work_items"] if item["status"] == "finished"
    )
    assert snapshot["run_state"] == "DONE"
    assert steps == STEPS
    assert ended == Counter(STEPS)
    assert {item["status"] for item in snapshot["work_items"]} <= {"finished", "failed"}
    assert remote.read_text().splitlines().count(f"launch/{run_id}/x") == 1
    assert runs.store.verify(run_id)
    assert replay(run_id, events) == snapshot


def begin(runs: Engine, **test: Any) -> str:
    run = anyio.run(start, runs, config("stepwise", test={"page": "BAD1", **test}))
    return run.run_id


def test_a_driver_killed_in_each_state_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    runs = engine(tmp_path)
    remote = tmp_path / "remote.txt"
    run_id = begin(runs, remote=str(remote))

    for state in ON_THE_WAY:
        doomed = driver(tmp_path, run_id, "--inline", "--halt", state.value)
        until((tmp_path / "halted").exists)
        assert runs.store.get(run_id).state is state
        kill(doomed)
        (tmp_path / "halted").unlink()
    finish(driver(tmp_path, run_id, "--inline"))

    check(runs, run_id, remote)


def test_a_driver_killed_in_each_step_leaves_no_process_and_the_step_is_done_again(
    tmp_path: Path,
) -> None:
    runs = engine(tmp_path)
    remote = tmp_path / "remote.txt"
    gates = {step: tmp_path / f"gate{place}" for place, step in enumerate(STEPS)}
    run_id = begin(runs, remote=str(remote), block={step: str(at) for step, at in gates.items()})

    for gate in gates.values():
        doomed = driver(tmp_path, run_id)
        until(lambda: gate.exists() and gate.read_text())  # noqa: B023 - it is waited for here
        worker = int(gate.read_text())
        kill(doomed)
        until(lambda: not is_alive(worker))  # noqa: B023
    finish(driver(tmp_path, run_id))

    check(runs, run_id, remote)
    ran = (tmp_path / "runs" / run_id / "ran.log").read_text().splitlines()
    assert [line.rsplit(" ", 1)[0] for line in ran] == [
        f"{step} {attempt}" for step in STEPS for attempt in (1, 2)
    ]


def test_two_drivers_on_one_store_survive_twenty_five_kills(tmp_path: Path) -> None:
    dice = random.Random(25)
    runs = engine(tmp_path)
    remote = tmp_path / "remote.txt"
    names = [begin(runs, remote=str(remote)) for _ in range(12)]

    def written() -> int:
        return sum(runs.store.get(name).tail.length for name in names)

    def open_runs() -> bool:
        return any(runs.store.get(name).state is not State.DONE for name in names)

    def more() -> "subprocess.Popen[bytes]":
        words = (*names, "--inline", "--lease", "60", "--seed", str(dice.random())[2:8])
        return driver(tmp_path, *words)

    def lost(driver: "subprocess.Popen[bytes]") -> None:
        """Let the leases that it left run out."""
        said = tmp_path / f"owner.{driver.pid}"
        owner = said.read_text() if said.exists() else "nobody"  # it had not begun
        for name in names:
            if runs.store.get(name).owner.startswith(owner):
                run_out(runs.store, name)

    with ExitStack() as stack:
        both = [more(), more()]
        stack.callback(end, both)
        kills = 0
        while kills < 25:
            goal = written() + dice.randint(1, 20)
            until(lambda: written() >= goal or not open_runs())  # noqa: B023
            place = dice.randrange(2)
            kill(both[place])
            lost(both[place])
            both[place] = more()
            kills += 1
        for each in both:
            finish(each)

    for name in names:
        check(runs, name, remote)

"""Launch runs on networks that fail: random faults, and the promises that have to hold afterwards.

`FAULTS` is the number of faults (200 by default), `SEED` repeats the faults of a history. The seed of one that broke a
promise belongs into `FAILED_SEEDS`.
"""

import os
import random
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.fleet import RunQueue
from cleats.toolsets.launch.runs.states import RunState
from cleats.toolsets.launch.store.databases import PostgresStore
from tests.networks.history import PUBLISHED_STEPS, RUN_STEPS, find_violations, read_history
from tests.networks.laboratory import Database, Fault, Laboratory, Machine, find_missing, open_laboratory, start_python
from tests.support.launch_runs import build_config, create_engine, create_run
from tests.support.waiting import WAIT_TIMEOUT_SECONDS, wait_until

pytestmark = [
    pytest.mark.skipif(bool(find_missing()), reason=find_missing()),
    pytest.mark.timeout(4000),  # the longest history and the wait for its last runs
]

FAULT_COUNT = int(os.environ.get("FAULTS", "200"))
FAILED_SEEDS: tuple[int, ...] = ()
"""Seeds of histories that broke a promise once."""

MAX_HISTORY_SECONDS = 2400
"""Seconds after which a history gets no more faults: a busy machine checks a shorter one and says so."""

STALL_SECONDS = 300.0
"""Seconds in which the last runs have to record a step; the time of a takeover, several times."""

OBSERVATION_SECONDS = 0.5
"""Pause between two looks at the runs, so that looking does not take the processor from the workers."""

LEASE_SECONDS = 6.0
TAKEOVER_SECONDS = 90.0
"""The time within which another machine has to go on: a lease, half a minute for locks, and the work itself."""

T = TypeVar("T")

MAX_UNFINISHED_RUNS = 5
MAX_STORED_RUNS = 10_000
"""More runs than any history has: the store lists 50 unless it is told otherwise."""

CLOCK_OFFSETS = (0, 3600, -3600)
"""The error of each worker's clock, in seconds: none, an hour fast, an hour slow."""


def persist(action: Callable[[], T]) -> T:
    """Return the result of an action, which is tried again while the database has crashed."""
    end = time.monotonic() + WAIT_TIMEOUT_SECONDS
    while True:
        try:
            return action()
        except (ToolError, OSError) as error:
            if time.monotonic() > end or (isinstance(error, ToolError) and not error.retryable):
                raise


class NetworkFleet:
    """Three workers and a database, each on a machine of its own, and a recorder that no fault reaches."""

    def __init__(self, folder: Path, lab: Laboratory, stack: ExitStack) -> None:
        self.folder, self._stack = folder, stack
        self.database = Database(lab.add_machine("db"), stack)
        self.machines = [lab.add_machine(f"w{number}") for number in range(len(CLOCK_OFFSETS))]
        self.workers: dict[Machine, subprocess.Popen[bytes]] = {}
        self.engine = create_engine(folder, store=PostgresStore(self.database.local_url))
        stack.callback(self.engine.store.close)
        self.remote = folder / "remote.txt"
        self.starts: dict[str, list[str]] = defaultdict(list)
        self.epochs: dict[str, list[int]] = defaultdict(list)
        self.done_ids: set[str] = set()
        self.restart_count = 0

    def start_worker(self, machine: Machine) -> None:
        """Start the worker of a machine; it has to reach the database first."""
        offset = CLOCK_OFFSETS[self.machines.index(machine)]
        words = ("-m", "tests.support.servers.fleet_worker", str(self.folder), self.database.url, str(LEASE_SECONDS))
        with (self.folder / f"{machine.name}.log").open("ab") as log:
            self.workers[machine] = start_python(machine, *words, clock_offset=offset, stdout=log, stderr=log)

    def revive_workers(self) -> None:
        """Start workers again that ended, as a service manager does."""
        for machine, worker in list(self.workers.items()):
            if worker.poll() is not None:
                self.restart_count += 1
                self.start_worker(machine)

    def submit(self, key: str) -> None:
        """Start a run under an idempotency key, or start it once more."""

        async def start_and_defer() -> str:
            config = build_config(drive={"auto_pr": True}, test={"remote": str(self.remote)})
            run = await create_run(self.engine, config, key=key)
            jobs = RunQueue(self.database.local_url)
            async with jobs.open():
                await jobs.defer(run.run_id)
            return run.run_id

        # A start whose answer was lost is repeated under its key, as a client does.
        self.starts[key].append(persist(lambda: anyio.run(start_and_defer)))

    def observe_runs(self) -> list[str]:
        """Record the lease of every run that is not done, and return those runs; what is done stays done."""
        run_ids = [run_ids[0] for run_ids in self.starts.values() if run_ids[0] not in self.done_ids]
        for run_id in run_ids:
            run = persist(partial(self.engine.store.get, run_id))
            if not self.epochs[run_id] or self.epochs[run_id][-1] != run.epoch:
                self.epochs[run_id].append(run.epoch)
            if run.state is RunState.DONE:
                self.done_ids.add(run_id)
        return [run_id for run_id in run_ids if run_id not in self.done_ids]

    def wait_for_runs(self) -> None:
        """Wait until all runs are done; fail if none of them records a step for a long time."""
        step_count, stalled_at = -1, 0.0
        while unfinished := self.observe_runs():
            self.revive_workers()
            steps = {run_id: persist(partial(self.engine.store.list_steps, run_id)) for run_id in unfinished}
            recorded = sum(map(len, steps.values())) + len(self.done_ids) * len(PUBLISHED_STEPS)
            if recorded != step_count:
                step_count, stalled_at = recorded, time.monotonic() + STALL_SECONDS
            assert time.monotonic() < stalled_at, f"these runs make no progress: {unfinished}"
            time.sleep(OBSERVATION_SECONDS)

    def find_violations(self) -> list[str]:
        store = self.engine.store
        histories = read_history(store, self.starts, self.epochs)
        stored_ids = [run.run_id for run in store.list_runs(limit=MAX_STORED_RUNS)]
        assert len(stored_ids) < MAX_STORED_RUNS
        return find_violations(histories, stored_ids, self.remote.read_text().splitlines())


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[NetworkFleet]:
    with open_laboratory() as lab, ExitStack() as stack:
        network_fleet = NetworkFleet(tmp_path, lab, stack)
        for machine in network_fleet.machines:
            network_fleet.start_worker(machine)
        yield network_fleet


def choose_fault(fleet: NetworkFleet, chance: random.Random) -> Fault:
    """Choose a fault, where it happens and how long it lasts."""
    machine = chance.choice([*fleet.machines, fleet.database.machine])
    worker_machine = chance.choice(fleet.machines)
    worker = fleet.workers[worker_machine]
    short, long = chance.uniform(0.1, 1.0), chance.uniform(LEASE_SECONDS, 1.5 * LEASE_SECONDS)

    def nothing() -> None:
        pass

    def restart_database() -> None:
        fleet.database.crash()
        fleet.database.start()

    faults = [
        *[Fault(f"silence of {machine.name}", machine.pull_cable, machine.plug_cable, short)] * 3,
        Fault(f"long silence of {worker_machine.name}", worker_machine.pull_cable, worker_machine.plug_cable, long),
        *[Fault(f"no link of {machine.name}", machine.disconnect, machine.connect, short)] * 3,
        *[Fault(f"slow link of {machine.name}", machine.slow_down, machine.speed_up, 2 * short)] * 3,
        *[
            Fault(
                f"no answers to {worker_machine.name}",
                lambda: fleet.database.machine.lose_answers_to(worker_machine),
                lambda: fleet.database.machine.answer_again(worker_machine),
                chance.choice((short, long)),
            )
        ]
        * 2,
        *[Fault(f"death of {worker_machine.name}", worker.kill, nothing, 0.0)] * 2,
        Fault(f"pause of {worker_machine.name}", lambda: worker.send_signal(19), lambda: worker.send_signal(18), long),
        Fault("crash of the database", restart_database, nothing, 0.0),
    ]
    return chance.choice(faults)


def report(text: str) -> None:
    """Show how far a long history is."""
    print(f"  {text}", flush=True)  # noqa: T201 - pytest runs with -s here


@pytest.mark.parametrize("seed", [int(os.environ.get("SEED", "0")) or random.randrange(1, 1 << 31), *FAILED_SEEDS])
def test_nothing_is_lost_and_nothing_happens_twice_whatever_the_network_does(fleet: NetworkFleet, seed: int) -> None:
    # The number of runs depends on the time that each takes, so choosing among them must not change the faults.
    chance, repetition_chance = random.Random(seed), random.Random(seed + 1)
    started_at = time.monotonic()
    report(f"seed {seed}: {FAULT_COUNT} faults")
    names: dict[str, int] = defaultdict(int)
    for _ in range(FAULT_COUNT):
        if time.monotonic() - started_at > MAX_HISTORY_SECONDS:
            break
        while len(fleet.observe_runs()) < MAX_UNFINISHED_RUNS:
            fleet.submit(f"key {len(fleet.starts)}")
        if repetition_chance.random() < 0.1:
            fleet.submit(repetition_chance.choice(list(fleet.starts)))
        fault = choose_fault(fleet, chance)
        names[fault.name.partition(" of ")[0].partition(" to ")[0]] += 1
        fault.happen()
        fleet.observe_runs()
        fleet.revive_workers()
        if sum(names.values()) % 20 == 0:
            done, elapsed = len(fleet.done_ids), time.monotonic() - started_at
            report(f"{sum(names.values())} faults, {done} runs done, {elapsed:.0f} s")

    fleet.wait_for_runs()
    takeovers = sum(len(epochs) - 1 for epochs in fleet.epochs.values() if epochs)
    report(f"{len(fleet.starts)} runs, {takeovers} changes of driver seen, {fleet.restart_count} workers restarted")
    report(f"{dict(names)}")

    violations = fleet.find_violations()
    assert not violations, "\n".join([f"repeat with SEED={seed}", *violations])
    assert sum(names.values()) == FAULT_COUNT, "the machine was too slow for all faults; the promises held"


def test_another_machine_goes_on_when_the_driver_vanishes_from_the_network(fleet: NetworkFleet) -> None:
    gate = fleet.folder / "gate"
    fleet.engine.store.list_runs()
    config = build_config(drive={"auto_pr": True}, test={"remote": str(fleet.remote), "block": {"facts": str(gate)}})

    async def start() -> str:
        return (await create_run(fleet.engine, config)).run_id

    run_id = anyio.run(start)
    wait_until(lambda: gate.exists() and gate.read_text())
    driver = _find_machine_of(fleet, int(gate.read_text()))
    driver.pull_cable()
    try:
        # The step of the lost driver ends by itself, although nobody tells it that the run was taken over.
        wait_until(lambda: fleet.engine.store.get(run_id).state is RunState.DONE, limit=TAKEOVER_SECONDS)
        child = int(gate.read_text())
        wait_until(lambda: not Path(f"/proc/{child}").exists(), limit=TAKEOVER_SECONDS)
    finally:
        driver.plug_cable()
        gate.unlink()

    assert [step.step for step in fleet.engine.store.list_steps(run_id)][: len(RUN_STEPS)] == RUN_STEPS


def test_a_machine_that_vanishes_while_it_holds_a_lock_does_not_block_the_others(fleet: NetworkFleet) -> None:
    machine = fleet.machines[0]
    run_id = anyio.run(_create_stepwise_run, fleet)
    holder = start_python(
        machine, "-m", "tests.networks.lock_holder", fleet.database.url, run_id, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    with holder.stdout:
        assert holder.stdout.readline() == b"locked\n"
    machine.pull_cable()
    acquired = threading.Event()

    def acquire_lease() -> None:
        fleet.engine.store.acquire(run_id, "another", 60.0)
        acquired.set()

    thread = threading.Thread(target=acquire_lease, daemon=True)
    thread.start()
    try:
        assert acquired.wait(TAKEOVER_SECONDS)
    finally:
        machine.plug_cable()


async def _create_stepwise_run(fleet: NetworkFleet) -> str:
    return (await create_run(fleet.engine, build_config("stepwise"))).run_id


def _find_machine_of(fleet: NetworkFleet, pid: int) -> Machine:
    """Return the machine whose worker has a process among its descendants."""
    ancestors: set[int] = set()
    while pid > 1:
        ancestors.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return next(machine for machine, worker in fleet.workers.items() if worker.pid in ancestors)

"""The store of runs. Every store passes these tests: what is new makes its own `store_factory`."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drive.driver import new_run_id
from cleats.toolsets.launch.drive.records import cancelled
from cleats.toolsets.launch.events import NO_TRACE, BrokenChainError, Draft, Trace
from cleats.toolsets.launch.snapshot import replay
from cleats.toolsets.launch.states import IllegalTransition, State
from cleats.toolsets.launch.store.journal import to_state
from cleats.toolsets.launch.store.port import (
    Lease,
    LeaseLost,
    NewRun,
    Run,
    RunStore,
    Step,
    StepRecorded,
)
from cleats.toolsets.launch.store.postgres import PostgresStore
from cleats.toolsets.launch.store.sqlite import SqliteStore
from tests.held import held
from tests.launch_world import ROOT
from tests.postgres import away, database
from tests.requirements import requirement

Factory = Callable[[], RunStore]
"""Opens the same store once more, as another process would."""


@pytest.fixture(params=["sqlite", "postgres"])
def store_factory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Factory]:
    opened: list[RunStore] = []
    address = database() if request.param == "postgres" else ""

    def open_store() -> RunStore:
        made = PostgresStore(address) if address else SqliteStore(tmp_path / "runs.db")
        opened.append(made)
        return made

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture
def store(store_factory: Factory) -> RunStore:
    return store_factory()


def new(**given: Any) -> NewRun:
    config = {"product_slug": "zip"}
    base = NewRun(
        run_id=new_run_id(),
        product_slug="zip",
        config=config,
        shown_config=config,
        config_hash="a" * 64,
    )
    return replace(base, **given)


CREATED = Draft("RUN_CREATED", {"required_sections": ["docs"], "product_slug": "zip"})


def make(store: RunStore, **given: Any) -> Run:
    return store.create(new(**given), [CREATED], NO_TRACE)[0]


def lease_of(store: RunStore, run: Run, seconds: float = 60.0) -> Lease:
    lease = store.acquire(run.run_id, "me", seconds)
    assert lease is not None
    return lease


def test_a_new_run_is_there_with_its_first_event(store: RunStore) -> None:
    run, made = store.create(new(key="k"), [CREATED], Trace("1" * 32, "2" * 16))

    assert made
    assert store.get(run.run_id) == run
    assert run.state is State.CREATED
    assert run.snapshot["section_states"] == {"docs": "NOT_STARTED"}
    (event,) = store.events(run.run_id)
    assert (event.type, event.trace.trace_id) == ("RUN_CREATED", "1" * 32)


def test_an_unknown_run_is_not_found(store: RunStore) -> None:
    for ask in (store.get, store.snapshot, store.verify):
        with pytest.raises(ToolError) as error:
            ask("r_nowhere")
        assert error.value.code is ErrorCode.RUN_NOT_FOUND


@requirement("e:start:idempotent")
def test_the_same_key_and_configuration_give_the_same_run(store: RunStore) -> None:
    first, _ = store.create(new(key="k"), [CREATED], NO_TRACE)

    second, made = store.create(new(key="k"), [CREATED], NO_TRACE)

    assert (second.run_id, made) == (first.run_id, False)
    assert len(store.events(first.run_id)) == 1


def test_the_same_key_with_another_configuration_is_refused(store: RunStore) -> None:
    first = make(store, key="k")

    with pytest.raises(ToolError) as error:
        make(store, key="k", config_hash="b" * 64)

    assert error.value.code is ErrorCode.INVALID_INPUT
    assert error.value.details == {
        "existing_run_id": first.run_id,
        "existing_hash": "a" * 64,
        "given_hash": "b" * 64,
    }
    assert len(store.list()) == 1


def test_the_same_key_and_request_give_the_same_run_whatever_was_derived(store: RunStore) -> None:
    first = make(store, key="k", request_hash="q")

    again, made = store.create(
        new(key="k", request_hash="q", config_hash="b" * 64), [CREATED], NO_TRACE
    )

    assert (again.run_id, made) == (first.run_id, False)
    found = store.find("k")
    assert found is not None
    assert found.run_id == first.run_id
    assert store.find("other") is None


def test_runs_without_a_key_are_never_the_same(store: RunStore) -> None:
    assert make(store).run_id != make(store).run_id


def test_a_step_is_recorded_once_with_its_events_and_its_state(store: RunStore) -> None:
    run = make(store)
    lease = lease_of(store, run)
    change = to_state(State.CREATED, State.CLONED_INPUTS)

    after, events = store.record(lease, [change], NO_TRACE, step=Step("clone", {"a": 1}, 0.5))
    with pytest.raises(StepRecorded):
        store.record(lease, [Draft("INPUTS_CLONED")], NO_TRACE, step=Step("clone", {}, 0.1))

    assert after.state is State.CLONED_INPUTS
    assert store.get(run.run_id).tail == after.tail
    assert [event.type for event in events] == ["RUN_STATE_CHANGED"]
    assert [event.seq for event in store.events(run.run_id)] == [1, 2]
    assert list(store.steps(run.run_id)) == [Step("clone", {"a": 1}, 0.5)]
    assert [event.seq for event in store.events(run.run_id, after=1)] == [2]


def test_steps_are_told_in_the_order_of_their_records(store: RunStore) -> None:
    run = make(store)
    lease = lease_of(store, run)
    for name in ("zebra", "apple", "mole"):
        store.record(lease, [Draft("X")], NO_TRACE, step=Step(name, {}, 0.0))

    assert [step.step for step in store.steps(run.run_id)] == ["zebra", "apple", "mole"]


def test_an_illegal_change_of_state_writes_nothing(store: RunStore) -> None:
    run = make(store)
    lease = lease_of(store, run)

    with pytest.raises(IllegalTransition):
        store.record(
            lease,
            [Draft("X"), to_state(State.CREATED, State.DONE)],
            NO_TRACE,
            step=Step("clone", {}, 0.0),
        )

    assert len(store.events(run.run_id)) == 1
    assert not store.steps(run.run_id)


def test_one_has_the_lease_at_a_time_and_gives_it_back(store: RunStore) -> None:
    run = make(store)
    lease = lease_of(store, run)

    assert store.acquire(run.run_id, "other", 60) is None
    store.release(lease)
    other = store.acquire(run.run_id, "other", 60)

    assert other is not None
    assert other.epoch > lease.epoch


def test_a_lease_that_ran_out_is_taken_over_and_the_old_holder_cannot_write(
    store_factory: Factory,
) -> None:
    slow, quick = store_factory(), store_factory()
    run = make(slow)
    old = lease_of(slow, run, seconds=-1)

    new_lease = quick.acquire(run.run_id, "quick", 60)

    assert new_lease is not None
    assert not slow.held(old)
    with pytest.raises(LeaseLost):
        slow.renew(old, 60)
    with pytest.raises(LeaseLost):
        slow.record(old, [Draft("X")], NO_TRACE, step=Step("clone", {}, 0.0))
    with pytest.raises(LeaseLost):
        slow.rebuild(old)
    slow.release(old)  # it is not ours to release
    assert quick.acquire(run.run_id, "third", 60) is None
    quick.record(new_lease, [Draft("X")], NO_TRACE, step=Step("clone", {}, 0.0))


def test_a_renewed_lease_stays(store: RunStore) -> None:
    run = make(store)
    lease = lease_of(store, run, seconds=-1)

    store.renew(lease, 60)

    assert store.held(lease)
    assert store.acquire(run.run_id, "other", 60) is None


def test_a_cancel_ends_the_run_and_fences_its_driver(store_factory: Factory) -> None:
    driver, other = store_factory(), store_factory()
    run = make(driver)
    lease = lease_of(driver, run)

    after, events = other.cancel(run.run_id, cancelled, NO_TRACE)
    again, nothing = other.cancel(run.run_id, cancelled, NO_TRACE)

    assert after.state is again.state is State.CANCELLED
    assert [event.type for event in events] == ["RUN_CANCELLED", "RUN_STATE_CHANGED"]
    assert not nothing
    assert driver.get(run.run_id).finished_at
    assert not driver.held(lease)
    with pytest.raises(LeaseLost):
        driver.record(lease, [Draft("X")], NO_TRACE)


@pytest.mark.parametrize("end", [State.FAILED, State.DONE])
def test_what_has_ended_cannot_be_cancelled(store: RunStore, end: State) -> None:
    run = make(store)
    lease = lease_of(store, run)
    walk = [State.CREATED, end]
    if end is State.DONE:
        walk = [
            state for state in State if state not in {State.FIXING, State.FAILED, State.CANCELLED}
        ]
    for old, then in pairwise(walk):
        store.record(lease, [to_state(old, then)], NO_TRACE)

    with pytest.raises(ToolError) as error:
        store.cancel(run.run_id, cancelled, NO_TRACE)

    assert error.value.code is ErrorCode.ILLEGAL_STATE
    assert store.get(run.run_id).state is end
    assert store.get(run.run_id).finished_at


@requirement("e:list", "e:list:filter")
def test_lists_are_newest_first_filtered_and_paged(store: RunStore) -> None:
    runs = [make(store, product_slug="zip" if i % 2 else "pdf") for i in range(6)]
    store.cancel(runs[0].run_id, cancelled, NO_TRACE)
    newest = [run.run_id for run in reversed(runs)]

    def ids(**given: Any) -> list[str]:
        return [each.run_id for each in store.list(**given)]

    assert ids() == newest
    assert ids(product_slug="zip") == newest[::2]
    assert ids(state="CANCELLED") == [runs[0].run_id]
    assert ids(product_slug="zip", state="CANCELLED") == []
    first = store.list(limit=4)
    assert [each.run_id for each in first] == newest[:4]
    assert ids(limit=4, before=first[-1].number) == newest[4:]
    assert first[0].finished_at == ""
    assert store.list(state="CANCELLED")[0].finished_at != ""


def test_the_stored_snapshot_is_told_by_the_log(store: RunStore) -> None:
    run = make(store)
    lease = lease_of(store, run)
    store.record(lease, [to_state(State.CREATED, State.CLONED_INPUTS)], NO_TRACE)

    assert store.verify(run.run_id)
    assert replay(run.run_id, store.events(run.run_id)) == store.snapshot(run.run_id)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET payload = replace(payload, 'zip', 'zap')",
        "UPDATE events SET ts = replace(ts, '20', '21')",
        "UPDATE events SET span_id = '1111111111111111'",
        "UPDATE events SET event_hash = substr(event_hash, 2) || 'g' WHERE seq = 2",
        "DELETE FROM events WHERE seq = 2",
        "DELETE FROM events WHERE seq = 3",
        "UPDATE runs SET last_hash = 'x'",
    ],
)
def test_a_byte_changed_in_the_file_is_found(tmp_path: Path, change: str) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    run = make(store)
    lease = lease_of(store, run)
    store.record(lease, [Draft("X"), Draft("Y")], NO_TRACE)
    assert store.verify(run.run_id)

    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute(change)
    database.close()

    with pytest.raises(BrokenChainError) as broken:
        store.verify(run.run_id)
    assert broken.value.details["cause_class"] == "EventChainBroken"
    store.close()


@pytest.mark.parametrize("kept", ["", "{}", "[]", '{"run_state": 7}', '{"run_id": "x"'])
def test_a_snapshot_that_cannot_be_used_is_told_again_by_the_log(tmp_path: Path, kept: str) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    run = make(store)
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("UPDATE runs SET snapshot = ?", (kept,))
    database.close()

    assert store.get(run.run_id).snapshot == store.snapshot(run.run_id) == run.snapshot
    assert not store.verify(run.run_id)
    store.rebuild(lease_of(store, run))

    assert store.verify(run.run_id)
    store.close()


def test_a_changed_snapshot_is_noticed_and_told_again_by_the_log(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    run = make(store)
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("UPDATE runs SET snapshot = replace(snapshot, 'NOT_STARTED', 'DONE')")
    database.close()

    assert not store.verify(run.run_id)
    store.rebuild(lease_of(store, run))

    assert store.verify(run.run_id)
    assert store.snapshot(run.run_id)["section_states"] == {"docs": "NOT_STARTED"}
    store.close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    held(SqliteStore(tmp_path / "runs.db")).list()
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(ToolError, match="newer version"):
        held(SqliteStore(tmp_path / "runs.db")).list()


STARTS = """
import sys, threading
from pathlib import Path
from cleats.toolsets.launch.events import NO_TRACE
from cleats.toolsets.launch.store.postgres import PostgresStore
from cleats.toolsets.launch.store.sqlite import SqliteStore
from tests.test_launch_store import CREATED, new

sys.stdin.readline()  # both begin at once
def start():
    store = SqliteStore(Path(sys.argv[1]))
    names.append(store.create(new(key="one"), [CREATED], NO_TRACE)[0].run_id)
    store.close()

names = []

threads = [threading.Thread(target=start) for _ in range(10)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*names)
"""


def test_twenty_starts_with_one_key_across_two_processes_give_one_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS, str(tmp_path / "runs.db")]
    both = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(2)
    ]
    for each in both:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [line for each in both for line in each.communicate(timeout=60)[0].split()]

    assert [each.returncode for each in both] == [0, 0]
    assert len(said) == 20
    assert len(set(said)) == 1
    store = SqliteStore(tmp_path / "runs.db")
    assert len(store.list()) == 1
    store.close()


def test_a_database_that_is_away_is_told_as_such_and_used_again_when_it_is_back() -> None:
    url = database()
    store = PostgresStore(url)
    run = make(store)

    with away(url):
        faults = [fault_of(lambda: make(store)), fault_of(lambda: store.get(run.run_id))]
    again = store.get(run.run_id)
    store.close()

    assert {(each.code, each.retryable) for each in faults} == {(ErrorCode.INTERNAL, True)}
    assert {each.message for each in faults} == {
        "The database that the runs are kept in cannot be reached."
    }
    assert all(each.details["cause_class"] for each in faults)
    assert again == run


def test_who_stalls_in_a_change_and_is_put_out_has_lost_the_database() -> None:
    store = PostgresStore(database())
    put_out = psycopg.errors.IdleInTransactionSessionTimeout("terminating connection")

    def stall() -> None:
        with store._writing():
            raise put_out

    fault = fault_of(stall)
    store.close()

    assert (fault.code, fault.retryable) == (ErrorCode.INTERNAL, True)
    assert fault.details == {"cause_class": "IdleInTransactionSessionTimeout"}


def fault_of(work: Callable[[], Any]) -> ToolError:
    with pytest.raises(ToolError) as error:
        work()
    return error.value

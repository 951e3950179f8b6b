"""Tests that every run store passes; a new store only adds its own `store_factory`."""

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
from cleats.toolsets.launch.drive.engine import make_run_id
from cleats.toolsets.launch.drive.step_events import make_cancellation_events
from cleats.toolsets.launch.runs.events import NO_TRACE, BrokenChainError, EventDraft, TraceIds
from cleats.toolsets.launch.runs.snapshot import replay_events
from cleats.toolsets.launch.runs.states import IllegalTransition, RunState
from cleats.toolsets.launch.store.databases import PostgresStore, SqliteStore
from cleats.toolsets.launch.store.model import (
    LeaseLost,
    RecordedStep,
    Run,
    RunLease,
    StepRecorded,
    make_state_event,
)
from cleats.toolsets.launch.store.run_store import RunStore
from tests.support.held_locks import close_after_test
from tests.support.paths import REPOSITORY_ROOT
from tests.support.postgres import create_database, make_unreachable

StoreFactory = Callable[[], RunStore]
"""A function that opens the same store again, as another process would."""


@pytest.fixture(params=["sqlite", "postgres"])
def store_factory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StoreFactory]:
    stores: list[RunStore] = []
    address = create_database() if request.param == "postgres" else ""

    def open_store() -> RunStore:
        run_store = PostgresStore(address) if address else SqliteStore(tmp_path / "runs.db")
        stores.append(run_store)
        return run_store

    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def store(store_factory: StoreFactory) -> RunStore:
    return store_factory()


def build_new_run(**changes: Any) -> Run:
    config = {"product_slug": "zip"}
    base = Run(
        run_id=make_run_id(),
        product_slug="zip",
        config=config,
        shown_config=config,
        config_hash="a" * 64,
    )
    return replace(base, **changes)


CREATED_DRAFT = EventDraft("RUN_CREATED", {"required_sections": ["docs"], "product_slug": "zip"})


def create_run(store: RunStore, **changes: Any) -> Run:
    return store.create(build_new_run(**changes), [CREATED_DRAFT], NO_TRACE)[0]


def acquire_lease(store: RunStore, run: Run, seconds: float = 60.0) -> RunLease:
    lease = store.acquire(run.run_id, "me", seconds)
    assert lease is not None
    return lease


def test_a_new_run_is_there_with_its_first_event(store: RunStore) -> None:
    run, was_created = store.create(build_new_run(key="k"), [CREATED_DRAFT], TraceIds("1" * 32, "2" * 16))

    assert was_created
    assert store.get(run.run_id) == run
    assert run.state is RunState.CREATED
    assert run.snapshot["section_states"] == {"docs": "NOT_STARTED"}
    (event,) = store.list_events(run.run_id)
    assert (event.type, event.trace.trace_id) == ("RUN_CREATED", "1" * 32)


def test_an_unknown_run_is_not_found(store: RunStore) -> None:
    for ask in (store.get, store.get_snapshot, store.verify):
        with pytest.raises(ToolError) as error:
            ask("r_nowhere")
        assert error.value.code is ErrorCode.RUN_NOT_FOUND


def test_the_same_key_and_configuration_give_the_same_run(store: RunStore) -> None:
    first, _ = store.create(build_new_run(key="k"), [CREATED_DRAFT], NO_TRACE)

    second, was_created = store.create(build_new_run(key="k"), [CREATED_DRAFT], NO_TRACE)

    assert (second.run_id, was_created) == (first.run_id, False)
    assert len(store.list_events(first.run_id)) == 1


def test_the_same_key_with_another_configuration_is_refused(store: RunStore) -> None:
    first = create_run(store, key="k")

    with pytest.raises(ToolError) as error:
        create_run(store, key="k", config_hash="b" * 64)

    assert error.value.code is ErrorCode.INVALID_INPUT
    assert error.value.details == {
        "existing_run_id": first.run_id,
        "existing_hash": "a" * 64,
        "given_hash": "b" * 64,
    }
    assert len(store.list_runs()) == 1


def test_the_same_key_and_request_give_the_same_run_whatever_was_derived(store: RunStore) -> None:
    first = create_run(store, key="k", request_hash="q")

    again, was_created = store.create(
        build_new_run(key="k", request_hash="q", config_hash="b" * 64), [CREATED_DRAFT], NO_TRACE
    )

    assert (again.run_id, was_created) == (first.run_id, False)
    stored_run = store.find_by_key("k")
    assert stored_run is not None
    assert stored_run.run_id == first.run_id
    assert store.find_by_key("other") is None


def test_runs_without_a_key_are_never_the_same(store: RunStore) -> None:
    assert create_run(store).run_id != create_run(store).run_id


def test_a_step_is_recorded_once_with_its_events_and_its_state(store: RunStore) -> None:
    run = create_run(store)
    lease = acquire_lease(store, run)
    change = make_state_event(RunState.CREATED, RunState.CLONED_INPUTS)

    after, events = store.record(lease, [change], NO_TRACE, step=RecordedStep("clone", {"a": 1}, 0.5))
    with pytest.raises(StepRecorded):
        store.record(lease, [EventDraft("INPUTS_CLONED")], NO_TRACE, step=RecordedStep("clone", {}, 0.1))

    assert after.state is RunState.CLONED_INPUTS
    assert store.get(run.run_id).tail == after.tail
    assert [event.type for event in events] == ["RUN_STATE_CHANGED"]
    assert [event.seq for event in store.list_events(run.run_id)] == [1, 2]
    assert list(store.list_steps(run.run_id)) == [RecordedStep("clone", {"a": 1}, 0.5)]
    assert [event.seq for event in store.list_events(run.run_id, after=1)] == [2]


def test_steps_are_told_in_the_order_of_their_records(store: RunStore) -> None:
    run = create_run(store)
    lease = acquire_lease(store, run)
    for name in ("zebra", "apple", "mole"):
        store.record(lease, [EventDraft("X")], NO_TRACE, step=RecordedStep(name, {}, 0.0))

    assert [step.step for step in store.list_steps(run.run_id)] == ["zebra", "apple", "mole"]


def test_an_illegal_change_of_state_writes_nothing(store: RunStore) -> None:
    run = create_run(store)
    lease = acquire_lease(store, run)

    with pytest.raises(IllegalTransition):
        store.record(
            lease,
            [EventDraft("X"), make_state_event(RunState.CREATED, RunState.DONE)],
            NO_TRACE,
            step=RecordedStep("clone", {}, 0.0),
        )

    assert len(store.list_events(run.run_id)) == 1
    assert not store.list_steps(run.run_id)


def test_one_has_the_lease_at_a_time_and_gives_it_back(store: RunStore) -> None:
    run = create_run(store)
    lease = acquire_lease(store, run)

    assert store.acquire(run.run_id, "other", 60) is None
    store.release(lease)
    other = store.acquire(run.run_id, "other", 60)

    assert other is not None
    assert other.epoch > lease.epoch


def test_a_lease_that_ran_out_is_taken_over_and_the_old_holder_cannot_write(
    store_factory: StoreFactory,
) -> None:
    slow, quick = store_factory(), store_factory()
    run = create_run(slow)
    old = acquire_lease(slow, run, seconds=-1)

    new_lease = quick.acquire(run.run_id, "quick", 60)

    assert new_lease is not None
    assert not slow.is_held(old)
    with pytest.raises(LeaseLost):
        slow.renew(old, 60)
    with pytest.raises(LeaseLost):
        slow.record(old, [EventDraft("X")], NO_TRACE, step=RecordedStep("clone", {}, 0.0))
    with pytest.raises(LeaseLost):
        slow.rebuild_snapshot(old)
    slow.release(old)  # it is not ours to release
    assert quick.acquire(run.run_id, "third", 60) is None
    quick.record(new_lease, [EventDraft("X")], NO_TRACE, step=RecordedStep("clone", {}, 0.0))


def test_a_renewed_lease_stays(store: RunStore) -> None:
    run = create_run(store)
    lease = acquire_lease(store, run, seconds=-1)

    store.renew(lease, 60)

    assert store.is_held(lease)
    assert store.acquire(run.run_id, "other", 60) is None


def test_a_cancel_ends_the_run_and_fences_its_driver(store_factory: StoreFactory) -> None:
    driver, other = store_factory(), store_factory()
    run = create_run(driver)
    lease = acquire_lease(driver, run)

    after, events = other.cancel(run.run_id, make_cancellation_events, NO_TRACE)
    again, nothing = other.cancel(run.run_id, make_cancellation_events, NO_TRACE)

    assert after.state is again.state is RunState.CANCELLED
    assert [event.type for event in events] == ["RUN_CANCELLED", "RUN_STATE_CHANGED"]
    assert not nothing
    assert driver.get(run.run_id).finished_at
    assert not driver.is_held(lease)
    with pytest.raises(LeaseLost):
        driver.record(lease, [EventDraft("X")], NO_TRACE)


@pytest.mark.parametrize("end", [RunState.FAILED, RunState.DONE])
def test_what_has_ended_cannot_be_cancelled(store: RunStore, end: RunState) -> None:
    run = create_run(store)
    lease = acquire_lease(store, run)
    walk = [RunState.CREATED, end]
    if end is RunState.DONE:
        walk = [state for state in RunState if state not in {RunState.FIXING, RunState.FAILED, RunState.CANCELLED}]
    for old, new in pairwise(walk):
        store.record(lease, [make_state_event(old, new)], NO_TRACE)

    with pytest.raises(ToolError) as error:
        store.cancel(run.run_id, make_cancellation_events, NO_TRACE)

    assert error.value.code is ErrorCode.ILLEGAL_STATE
    assert store.get(run.run_id).state is end
    assert store.get(run.run_id).finished_at


def test_lists_are_newest_first_filtered_and_paged(store: RunStore) -> None:
    runs = [create_run(store, product_slug="zip" if i % 2 else "pdf") for i in range(6)]
    store.cancel(runs[0].run_id, make_cancellation_events, NO_TRACE)
    newest = [run.run_id for run in reversed(runs)]

    def list_run_ids(**filters: Any) -> list[str]:
        return [listed_run.run_id for listed_run in store.list_runs(**filters)]

    assert list_run_ids() == newest
    assert list_run_ids(product_slug="zip") == newest[::2]
    assert list_run_ids(state="CANCELLED") == [runs[0].run_id]
    assert list_run_ids(product_slug="zip", state="CANCELLED") == []
    first = store.list_runs(limit=4)
    assert [listed_run.run_id for listed_run in first] == newest[:4]
    assert list_run_ids(limit=4, before=first[-1].number) == newest[4:]
    assert first[0].finished_at == ""
    assert store.list_runs(state="CANCELLED")[0].finished_at != ""


def test_the_stored_snapshot_is_told_by_the_log(store: RunStore) -> None:
    run = create_run(store)
    lease = acquire_lease(store, run)
    store.record(lease, [make_state_event(RunState.CREATED, RunState.CLONED_INPUTS)], NO_TRACE)

    assert store.verify(run.run_id)
    assert replay_events(run.run_id, store.list_events(run.run_id)) == store.get_snapshot(run.run_id)


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
    run = create_run(store)
    lease = acquire_lease(store, run)
    store.record(lease, [EventDraft("X"), EventDraft("Y")], NO_TRACE)
    assert store.verify(run.run_id)

    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute(change)
    database.close()

    with pytest.raises(BrokenChainError) as broken:
        store.verify(run.run_id)
    assert broken.value.details["cause_class"] == "EventChainBroken"
    store.close()


@pytest.mark.parametrize("stored_snapshot", ["", "{}", "[]", '{"run_state": 7}', '{"run_id": "x"'])
def test_a_snapshot_that_cannot_be_used_is_told_again_by_the_log(tmp_path: Path, stored_snapshot: str) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    run = create_run(store)
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("UPDATE runs SET snapshot = ?", (stored_snapshot,))
    database.close()

    assert store.get(run.run_id).snapshot == store.get_snapshot(run.run_id) == run.snapshot
    assert not store.verify(run.run_id)
    store.rebuild_snapshot(acquire_lease(store, run))

    assert store.verify(run.run_id)
    store.close()


def test_a_changed_snapshot_is_noticed_and_told_again_by_the_log(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    run = create_run(store)
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("UPDATE runs SET snapshot = replace(snapshot, 'NOT_STARTED', 'DONE')")
    database.close()

    assert not store.verify(run.run_id)
    store.rebuild_snapshot(acquire_lease(store, run))

    assert store.verify(run.run_id)
    assert store.get_snapshot(run.run_id)["section_states"] == {"docs": "NOT_STARTED"}
    store.close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    close_after_test(SqliteStore(tmp_path / "runs.db")).list_runs()
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(ToolError, match="newer version"):
        close_after_test(SqliteStore(tmp_path / "runs.db")).list_runs()


CONCURRENT_STARTS_SCRIPT = """
import sys, threading
from pathlib import Path
from cleats.toolsets.launch.runs.events import NO_TRACE
from cleats.toolsets.launch.store.databases import PostgresStore
from cleats.toolsets.launch.store.databases import SqliteStore
from tests.toolsets.launch.drive.test_store import CREATED_DRAFT, build_new_run

sys.stdin.readline()  # both begin at once
def start():
    store = SqliteStore(Path(sys.argv[1]))
    names.append(store.create(build_new_run(key="one"), [CREATED_DRAFT], NO_TRACE)[0].run_id)
    store.close()

names = []

threads = [threading.Thread(target=start) for _ in range(10)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*names)
"""


def test_twenty_starts_with_one_key_across_two_processes_give_one_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CONCURRENT_STARTS_SCRIPT, str(tmp_path / "runs.db")]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY_ROOT)
        for _ in range(2)
    ]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    run_ids = [line for process in both for line in process.communicate(timeout=60)[0].split()]

    assert [process.returncode for process in both] == [0, 0]
    assert len(run_ids) == 20
    assert len(set(run_ids)) == 1
    store = SqliteStore(tmp_path / "runs.db")
    assert len(store.list_runs()) == 1
    store.close()


def test_a_database_that_is_away_is_told_as_such_and_used_again_when_it_is_back() -> None:
    url = create_database()
    store = PostgresStore(url)
    run = create_run(store)

    with make_unreachable(url):
        faults = [catch_tool_error(lambda: create_run(store)), catch_tool_error(lambda: store.get(run.run_id))]
    again = store.get(run.run_id)
    store.close()

    assert {(error.code, error.retryable) for error in faults} == {(ErrorCode.INTERNAL, True)}
    assert {error.message for error in faults} == {"The database of the runs is unreachable."}
    assert all(error.details["cause_class"] for error in faults)
    assert again == run


def test_who_stalls_in_a_change_and_is_put_out_has_lost_the_database() -> None:
    store = PostgresStore(create_database())
    put_out = psycopg.errors.IdleInTransactionSessionTimeout("terminating connection")

    def stall_in_change() -> None:
        with store._writer.transaction():
            raise put_out

    fault = catch_tool_error(stall_in_change)
    store.close()

    assert (fault.code, fault.retryable) == (ErrorCode.INTERNAL, True)
    assert fault.details == {"cause_class": "IdleInTransactionSessionTimeout"}


def catch_tool_error(work: Callable[[], Any]) -> ToolError:
    with pytest.raises(ToolError) as error:
        work()
    return error.value

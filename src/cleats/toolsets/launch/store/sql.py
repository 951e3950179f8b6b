"""Runs in a database that speaks SQL: everything but how to reach it.

No work is done inside a transaction, so writers wait for each other for a moment only. Statements
are written once, with `?` for a value; `Database` knows what its engine wants instead.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final, Protocol

from cleats.toolsets.launch.events import Draft, Event, Tail, Trace, verify
from cleats.toolsets.launch.snapshot import Snapshot, replay, usable
from cleats.toolsets.launch.states import State
from cleats.toolsets.launch.store.journal import Written, append, begin, to_state
from cleats.toolsets.launch.store.port import (
    Lease,
    LeaseLost,
    Listed,
    NewRun,
    Run,
    Step,
    StepRecorded,
    claimed,
    not_found,
    refuse_cancel,
)

_RUN: Final = (
    "SELECT run_id, number, product_slug, config_hash, request_hash, started_at, finished_at,"
    " epoch, owner, expires, config, shown_config, snapshot, event_count, last_hash FROM runs"
)


class Rows(Protocol):
    """The answer to a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """A connection, inside a transaction or reading one moment."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows: ...

    def now(self) -> float:
        """The time by which leases are measured: one clock for all who share the database."""

    def alone(self, name: str) -> None:
        """Keep everybody else who says the same name waiting until the transaction ends."""

    def add(self, statement: str, values: Sequence[Any]) -> bool:
        """Insert a row; False when there is one with its key."""


class SqlStore(ABC):
    """A store of runs."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Database]:
        """A transaction: all of it when the block ends well, else nothing."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Database]:
        """One moment of the database; nobody waits for it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database. Safe to repeat."""

    def create(self, new: NewRun, drafts: Iterable[Draft], trace: Trace) -> tuple[Run, bool]:
        with self._writing() as database:
            if new.key:
                database.alone(new.key)
                if found := _by_key(database, new.key):
                    return claimed(found, new), False
            written = begin(new, drafts, trace)
            run = written.run
            database.execute(
                "INSERT INTO runs (run_id, idempotency_key, config_hash, request_hash,"
                " product_slug, state, started_at, finished_at, owner, epoch, expires,"
                " event_count, last_hash, config, shown_config, snapshot)"
                " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (
                    run.run_id,
                    new.key or None,
                    run.config_hash,
                    run.request_hash,
                    run.product_slug,
                    run.state.value,
                    run.started_at,
                    run.finished_at,
                    run.owner,
                    run.epoch,
                    run.expires,
                    *run.tail,
                    json.dumps(run.config),
                    json.dumps(run.shown_config),
                    json.dumps(run.snapshot),
                ),
            )
            _add(database, written.events)
            return _run(database, run.run_id), True

    def find(self, key: str) -> Run | None:
        with self._reading() as database:
            return _by_key(database, key)

    def get(self, run_id: str) -> Run:
        with self._reading() as database:
            return _run(database, run_id)

    def snapshot(self, run_id: str) -> Snapshot:
        with self._reading() as database:
            return _snapshot(database, run_id, _kept(database, run_id))

    def list(
        self, *, product_slug: str = "", state: str = "", limit: int = 50, before: int = 0
    ) -> Sequence[Listed]:
        wanted = {"product_slug = ?": product_slug, "state = ?": state, "number < ?": before}
        given = {rule: value for rule, value in wanted.items() if value}
        where = f" WHERE {' AND '.join(given)}" if given else ""
        # Only our own words are put together here; every value is bound.
        query = (
            "SELECT run_id, number, product_slug, state, started_at, finished_at FROM runs"  # noqa: S608
            f"{where} ORDER BY number DESC LIMIT ?"
        )
        with self._reading() as database:
            rows = database.execute(query, (*given.values(), limit)).fetchall()
        return [
            Listed(
                run_id=run_id,
                number=number,
                product_slug=slug,
                state=State(at),
                started_at=started,
                finished_at=finished,
            )
            for run_id, number, slug, at, started, finished in rows
        ]

    def orphans(self, limit: int) -> Sequence[Run]:
        with self._reading() as database:
            rows = database.execute(
                f"{_RUN} WHERE owner <> '' AND expires < ? OR owner = '' AND state = ?"
                " ORDER BY number LIMIT ?",
                (database.now(), State.CREATED.value, limit),
            ).fetchall()
            return [_read(database, row) for row in rows]

    def steps(self, run_id: str) -> Sequence[Step]:
        with self._reading() as database:
            rows = database.execute(
                "SELECT step, output, seconds FROM steps WHERE run_id = ? ORDER BY place", (run_id,)
            ).fetchall()
        return [Step(step, json.loads(output), seconds) for step, output, seconds in rows]

    def events(self, run_id: str, after: int = 0) -> Sequence[Event]:
        with self._reading() as database:
            return _events(database, run_id, after)

    def verify(self, run_id: str) -> bool:
        with self._reading() as database:
            run = _run(database, run_id)
            kept = _kept(database, run_id)
            events = _events(database, run_id, 0)
        verify(run_id, events, run.tail)
        return replay(run_id, events) == _parsed(kept)

    def rebuild(self, lease: Lease) -> None:
        with self._writing() as database:
            run = _locked(database, lease.run_id)
            if run.epoch != lease.epoch:
                raise LeaseLost(lease.run_id)
            told = replay(run.run_id, _events(database, run.run_id, 0))
            _save(database, Written(replace(run, snapshot=told), ()))

    def acquire(self, run_id: str, owner: str, seconds: float) -> Lease | None:
        with self._writing() as database:
            run = _locked(database, run_id)
            now = database.now()
            if run.owner and run.expires > now:
                return None
            database.execute(
                "UPDATE runs SET owner = ?, epoch = ?, expires = ? WHERE run_id = ?",
                (owner, run.epoch + 1, now + seconds, run_id),
            )
            return Lease(run_id, owner, run.epoch + 1)

    def renew(self, lease: Lease, seconds: float) -> None:
        with self._writing() as database:
            changed = database.execute(
                "UPDATE runs SET expires = ? WHERE run_id = ? AND epoch = ?",
                (database.now() + seconds, lease.run_id, lease.epoch),
            )
            if changed.rowcount != 1:
                raise LeaseLost(lease.run_id)

    def held(self, lease: Lease) -> bool:
        with self._reading() as database:
            row = database.execute(
                "SELECT epoch FROM runs WHERE run_id = ?", (lease.run_id,)
            ).fetchone()
        return row is not None and row[0] == lease.epoch

    def release(self, lease: Lease) -> None:
        with self._writing() as database:
            database.execute(
                "UPDATE runs SET owner = '', expires = 0 WHERE run_id = ? AND epoch = ?",
                (lease.run_id, lease.epoch),
            )

    def record(
        self,
        lease: Lease,
        drafts: Iterable[Draft],
        trace: Trace,
        *,
        step: Step | None = None,
    ) -> tuple[Run, Sequence[Event]]:
        with self._writing() as database:
            run = _locked(database, lease.run_id)
            if run.epoch != lease.epoch:
                raise LeaseLost(lease.run_id)
            written = append(run, drafts, trace)
            if step is not None:
                _put(database, lease, step, run.tail.length)
            _save(database, written)
            return written

    def cancel(
        self, run_id: str, drafts: Callable[[Snapshot], Iterable[Draft]], trace: Trace
    ) -> tuple[Run, Sequence[Event]]:
        with self._writing() as database:
            run = _locked(database, run_id)
            if run.state is State.CANCELLED:
                return run, ()
            if run.state in {State.DONE, State.FAILED}:
                raise refuse_cancel(run_id, run.state)
            end = to_state(run.state, State.CANCELLED)
            written = append(run, [*drafts(run.snapshot), end], trace)
            _save(database, written)
            database.execute(
                "UPDATE runs SET owner = '', expires = 0, epoch = epoch + 1 WHERE run_id = ?",
                (run_id,),
            )
            return written


def _by_key(database: Database, key: str) -> Run | None:
    row = database.execute(f"{_RUN} WHERE idempotency_key = ?", (key,)).fetchone()
    return None if row is None else _read(database, row)


def _locked(database: Database, run_id: str) -> Run:
    """A run that nobody else changes before this transaction ends."""
    database.alone(run_id)
    return _run(database, run_id)


def _run(database: Database, run_id: str) -> Run:
    row = database.execute(f"{_RUN} WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        raise not_found(run_id)
    return _read(database, row)


def _kept(database: Database, run_id: str) -> str:
    """The snapshot of a run as it lies there."""
    row = database.execute("SELECT snapshot FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        raise not_found(run_id)
    return str(row[0])


def _snapshot(database: Database, run_id: str, kept: str) -> Snapshot:
    """The snapshot that was kept; one that cannot be used is told again by the log."""
    found = _parsed(kept)
    return replay(run_id, _events(database, run_id, 0)) if found is None else found


def _parsed(kept: str) -> Snapshot | None:
    try:
        found: Snapshot = json.loads(kept)
    except ValueError:
        return None
    return found if usable(found) else None


def _read(database: Database, row: tuple[Any, ...]) -> Run:
    return Run(
        run_id=row[0],
        number=row[1],
        product_slug=row[2],
        config_hash=row[3],
        request_hash=row[4],
        started_at=row[5],
        finished_at=row[6],
        epoch=row[7],
        owner=row[8],
        expires=row[9],
        config=json.loads(row[10]),
        shown_config=json.loads(row[11]),
        snapshot=_snapshot(database, row[0], row[12]),
        tail=Tail(*row[13:]),
    )


def _events(database: Database, run_id: str, after: int) -> list[Event]:
    rows = database.execute(
        "SELECT run_id, seq, event_id, ts, type, payload, trace_id, span_id, parent_span_id,"
        " prev_hash, event_hash FROM events WHERE run_id = ? AND seq > ? ORDER BY seq",
        (run_id, after),
    )
    return [_event(*row) for row in rows.fetchall()]


def _event(  # noqa: PLR0917 - one for each column
    run_id: str,
    seq: int,
    event_id: str,
    ts: str,
    kind: str,
    text: str,
    trace_id: str,
    span_id: str,
    parent: str,
    prev_hash: str,
    event_hash: str,
) -> Event:
    trace = Trace(trace_id, span_id, parent)
    return Event(run_id, seq, event_id, ts, kind, text, trace, prev_hash, event_hash)


def _add(database: Database, events: Iterable[Event]) -> None:
    for e in events:
        database.execute(
            "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            (
                e.run_id,
                e.seq,
                e.event_id,
                e.ts,
                e.type,
                e.text,
                *e.trace,
                e.prev_hash,
                e.event_hash,
            ),
        )


def _put(database: Database, lease: Lease, step: Step, place: int) -> None:
    added = database.add(
        "INSERT INTO steps (run_id, step, place, epoch, seconds, output) VALUES (?,?,?,?,?,?)",
        (lease.run_id, step.step, place, lease.epoch, step.seconds, json.dumps(step.output)),
    )
    if not added:
        raise StepRecorded(step.step)


def _save(database: Database, written: Written) -> None:
    run = written.run
    database.execute(
        "UPDATE runs SET state = ?, finished_at = ?, event_count = ?, last_hash = ?, snapshot = ?"
        " WHERE run_id = ?",
        (run.state.value, run.finished_at, *run.tail, json.dumps(run.snapshot), run.run_id),
    )
    _add(database, written.events)

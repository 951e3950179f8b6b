"""The store of runs in an SQL database: everything except the connection.

Laws:
1. Everything that one call writes (a step, its events, the snapshot, the state) is written together
   or not at all, and is on the disk when the call returns.
2. A step is recorded once: a second record of it writes nothing and raises.
3. Only the holder of the newest lease writes. Taking a lease over, and cancelling, raise the epoch,
   and an older epoch is rejected.
4. An idempotency key has one run, however many processes ask at once.
5. The snapshot is the fold of the events.

Calls block and may be made from any thread. Times are seconds since the epoch. No work is done
inside a transaction, so writers wait for each other only briefly. Statements are written once, with
`?` for a value; `SqlConnection` translates them for its engine.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import format_timestamp
from cleats.toolsets.launch.runs.events import EventDraft, LogTail, RunEvent, TraceIds, verify_chain
from cleats.toolsets.launch.runs.snapshot import Snapshot, is_valid_snapshot, make_empty_snapshot, replay_events
from cleats.toolsets.launch.runs.states import RunState
from cleats.toolsets.launch.store.model import (
    LeaseLost,
    RecordedStep,
    Run,
    RunLease,
    RunSummary,
    SqlConnection,
    StepRecorded,
    append_events,
    check_key_owner,
    make_not_found_error,
    make_state_event,
)

_PLAIN_COLUMNS: Final = (
    *("run_id", "product_slug", "config_hash", "request_hash", "started_at", "finished_at"),
    *("owner", "epoch", "expires"),
)
_JSON_COLUMNS: Final = ("config", "shown_config", "snapshot")
_RUN_COLUMNS: Final = ", ".join(("number", "event_count", "last_hash", *_PLAIN_COLUMNS, *_JSON_COLUMNS))
_SELECT_RUN_SQL: Final = f"SELECT {_RUN_COLUMNS} FROM runs"  # noqa: S608 - only constant names


class RunStore:
    """A store of runs, with one connection to write and one for consistent reads that block no one."""

    def __init__(self, writer: SqlConnection, reader: SqlConnection) -> None:
        self._writer = writer
        self._reader = reader

    def close(self) -> None:
        """Close the database. Safe to repeat."""
        self._writer.close()
        self._reader.close()

    def create(self, new: Run, drafts: Iterable[EventDraft], trace: TraceIds) -> tuple[Run, bool]:
        """Create a run, or return the one that has its key; also return whether it is new.

        Raises:
            ToolError: INVALID_INPUT, the key belongs to a run with another configuration.
        """
        with self._writer.transaction() as database:
            if new.key:
                database.lock_name(new.key)
                if existing := _find_by_key(database, new.key):
                    return check_key_owner(existing, new), False
            started = replace(new, started_at=format_timestamp(time.time()), snapshot=make_empty_snapshot(new.run_id))
            run, events = append_events(started, drafts, trace)
            row = {
                "idempotency_key": new.key or None,
                "state": run.state.value,
                "event_count": run.tail.length,
                "last_hash": run.tail.last_hash,
                **{name: getattr(run, name) for name in _PLAIN_COLUMNS},
                **{name: json.dumps(getattr(run, name)) for name in _JSON_COLUMNS},
            }
            marks = ",".join("?" * len(row))
            database.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))  # noqa: S608
            _insert_events(database, events)
            return _load_run(database, run.run_id), True

    def find_by_key(self, key: str) -> Run | None:
        """Return the run that was started with this key, if there is one."""
        with self._reader.transaction() as database:
            return _find_by_key(database, key)

    def get(self, run_id: str) -> Run:
        """Return a run.

        Raises:
            ToolError: RUN_NOT_FOUND, as every method for one run.
        """
        with self._reader.transaction() as database:
            return _load_run(database, run_id)

    def get_snapshot(self, run_id: str) -> Snapshot:
        return self.get(run_id).snapshot

    def list_runs(
        self, *, product_slug: str = "", state: str = "", limit: int = 50, before: int = 0
    ) -> Sequence[RunSummary]:
        """Return runs, the newest first; `before` is the number of the last listed one."""
        conditions = {"product_slug = ?": product_slug, "state = ?": state, "number < ?": before}
        active_conditions = {condition: value for condition, value in conditions.items() if value}
        where = f" WHERE {' AND '.join(active_conditions)}" if active_conditions else ""
        # Only constant text is concatenated here; every value is bound.
        columns = ("run_id", "number", "product_slug", "started_at", "finished_at")
        query = f"SELECT {', '.join(columns)}, state FROM runs{where} ORDER BY number DESC LIMIT ?"  # noqa: S608
        with self._reader.transaction() as database:
            rows = database.execute(query, (*active_conditions.values(), limit)).fetchall()
        return [RunSummary(state=RunState(row[-1]), **dict(zip(columns, row, strict=False))) for row in rows]

    def list_orphans(self, limit: int) -> Sequence[Run]:
        """Return runs that lost their driver and runs that never had one, the oldest first.

        A driver that ends releases its lease; the lease of a lost driver expires.
        """
        with self._reader.transaction() as database:
            rows = database.execute(
                f"{_SELECT_RUN_SQL} WHERE owner <> '' AND expires < ? OR owner = '' AND state = ?"
                " ORDER BY number LIMIT ?",
                (database.now(), RunState.CREATED.value, limit),
            ).fetchall()
            return [_make_run(database, row) for row in rows]

    def list_steps(self, run_id: str) -> Sequence[RecordedStep]:
        """Return the recorded steps in the order of their records."""
        with self._reader.transaction() as database:
            rows = database.execute(
                "SELECT step, output, seconds FROM steps WHERE run_id = ? ORDER BY place", (run_id,)
            ).fetchall()
        return [RecordedStep(step, json.loads(output), seconds) for step, output, seconds in rows]

    def list_events(self, run_id: str, after: int = 0) -> Sequence[RunEvent]:
        """Return the log, or the part after an event."""
        with self._reader.transaction() as database:
            return _load_events(database, run_id, after)

    def verify(self, run_id: str) -> bool:
        """Verify the log of a run; return whether its snapshot is the fold of the log.

        Raises:
            BrokenChainError: the log was changed.
        """
        with self._reader.transaction() as database:
            row = _load_row(database, run_id)
            events = _load_events(database, run_id, 0)
            verify_chain(run_id, events, _make_run(database, row).tail)
        return replay_events(run_id, events) == _parse_snapshot(row[-1])

    def rebuild_snapshot(self, lease: RunLease) -> None:
        """Rebuild the snapshot from the log.

        Raises:
            LeaseLost: the lease is no longer held, as in every method that takes one.
        """
        with self._writer.transaction() as database:
            run = _lock_leased_run(database, lease)
            snapshot = replay_events(run.run_id, _load_events(database, run.run_id, 0))
            _save_update(database, replace(run, snapshot=snapshot), ())

    def acquire(self, run_id: str, owner: str, seconds: float) -> RunLease | None:
        """Take the lease of a run if it is free; return None while another owner has it."""
        with self._writer.transaction() as database:
            run = _lock_run(database, run_id)
            now = database.now()
            if run.owner and run.expires > now:
                return None
            database.execute(
                "UPDATE runs SET owner = ?, epoch = ?, expires = ? WHERE run_id = ?",
                (owner, run.epoch + 1, now + seconds, run_id),
            )
            return RunLease(run_id, owner, run.epoch + 1)

    def renew(self, lease: RunLease, seconds: float) -> None:
        """Extend a lease."""
        with self._writer.transaction() as database:
            changed = database.execute(
                "UPDATE runs SET expires = ? WHERE run_id = ? AND epoch = ?",
                (database.now() + seconds, lease.run_id, lease.epoch),
            )
            if changed.rowcount != 1:
                raise LeaseLost(lease.run_id)

    def read_clock(self) -> float:
        """Return the time by which leases expire; the clock of this machine may differ."""
        with self._reader.transaction() as database:
            return database.now()

    def is_held(self, lease: RunLease) -> bool:
        """Return whether a lease is still the newest."""
        with self._reader.transaction() as database:
            row = database.execute("SELECT epoch FROM runs WHERE run_id = ?", (lease.run_id,)).fetchone()
        return row is not None and row[0] == lease.epoch

    def release(self, lease: RunLease) -> None:
        """Release a lease. Nothing happens if it is lost already."""
        with self._writer.transaction() as database:
            database.execute(
                "UPDATE runs SET owner = '', expires = 0 WHERE run_id = ? AND epoch = ?", (lease.run_id, lease.epoch)
            )

    def abandon(self, lease: RunLease) -> None:
        """Let a lease expire now, so that the run counts as one that has lost its driver."""
        with self._writer.transaction() as database:
            database.execute("UPDATE runs SET expires = 0 WHERE run_id = ? AND epoch = ?", (lease.run_id, lease.epoch))

    def record(
        self, lease: RunLease, drafts: Iterable[EventDraft], trace: TraceIds, *, step: RecordedStep | None = None
    ) -> tuple[Run, Sequence[RunEvent]]:
        """Write a step, if there is one, the events and their consequences.

        Raises:
            StepRecorded: the step is recorded already.
            IllegalTransition: an event's change of state is not a legal transition.
        """
        with self._writer.transaction() as database:
            run = _lock_leased_run(database, lease)
            written = append_events(run, drafts, trace)
            if step is not None and not database.insert_row(
                "INSERT INTO steps (run_id, step, place, epoch, seconds, output) VALUES (?,?,?,?,?,?)",
                (lease.run_id, step.step, run.tail.length, lease.epoch, step.seconds, json.dumps(step.output)),
            ):
                raise StepRecorded(step.step)
            _save_update(database, *written)
            return written

    def cancel(
        self, run_id: str, drafts: Callable[[Snapshot], Iterable[EventDraft]], trace: TraceIds
    ) -> tuple[Run, Sequence[RunEvent]]:
        """Cancel a run, whichever process drives it: its state and a new epoch, together.

        The events that `drafts` makes from the snapshot come before the change of state. A
        cancelled run stays unchanged.

        Raises:
            ToolError: RUN_NOT_FOUND; ILLEGAL_STATE for a run that is done or has failed.
        """
        with self._writer.transaction() as database:
            run = _lock_run(database, run_id)
            if run.state is RunState.CANCELLED:
                return run, ()
            if run.state in {RunState.DONE, RunState.FAILED}:
                raise ToolError(
                    ErrorCode.ILLEGAL_STATE,
                    f"{run_id} is {run.state} and cannot be cancelled",
                    hint="The run has ended; its artifacts can still be read.",
                    details={"state": run.state.value},
                )
            state_change = make_state_event(run.state, RunState.CANCELLED)
            written = append_events(run, [*drafts(run.snapshot), state_change], trace)
            _save_update(database, *written)
            database.execute("UPDATE runs SET owner = '', expires = 0, epoch = epoch + 1 WHERE run_id = ?", (run_id,))
            return written


def _find_by_key(database: SqlConnection, key: str) -> Run | None:
    row = database.execute(f"{_SELECT_RUN_SQL} WHERE idempotency_key = ?", (key,)).fetchone()
    return None if row is None else _make_run(database, row)


def _lock_run(database: SqlConnection, run_id: str) -> Run:
    """Load a run and lock it until the transaction ends."""
    database.lock_name(run_id)
    return _load_run(database, run_id)


def _lock_leased_run(database: SqlConnection, lease: RunLease) -> Run:
    run = _lock_run(database, lease.run_id)
    if run.epoch != lease.epoch:
        raise LeaseLost(lease.run_id)
    return run


def _load_run(database: SqlConnection, run_id: str) -> Run:
    return _make_run(database, _load_row(database, run_id))


def _load_row(database: SqlConnection, run_id: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = database.execute(f"{_SELECT_RUN_SQL} WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        raise make_not_found_error(run_id)
    return row


def _parse_snapshot(snapshot_text: str) -> Snapshot | None:
    try:
        snapshot: Snapshot = json.loads(snapshot_text)
    except ValueError:
        return None
    return snapshot if is_valid_snapshot(snapshot) else None


def _make_run(database: SqlConnection, row: tuple[Any, ...]) -> Run:
    """Make the run of a row; an invalid snapshot is rebuilt from the log."""
    number, event_count, last_hash, *values, config, shown_config, snapshot_text = row
    fields = dict(zip(_PLAIN_COLUMNS, values, strict=True))
    snapshot = _parse_snapshot(snapshot_text)
    if snapshot is None:
        snapshot = replay_events(fields["run_id"], _load_events(database, fields["run_id"], 0))
    configs = {"config": json.loads(config), "shown_config": json.loads(shown_config)}
    return Run(**fields, **configs, number=number, snapshot=snapshot, tail=LogTail(event_count, last_hash))


def _load_events(database: SqlConnection, run_id: str, after: int) -> list[RunEvent]:
    rows = database.execute(
        "SELECT seq, event_id, ts, type, payload, trace_id, span_id, parent_span_id, prev_hash, event_hash"
        " FROM events WHERE run_id = ? AND seq > ? ORDER BY seq",
        (run_id, after),
    )
    return [
        RunEvent(run_id, seq, event_id, ts, kind, text, TraceIds(*trace), prev_hash, event_hash)
        for seq, event_id, ts, kind, text, *trace, prev_hash, event_hash in rows.fetchall()
    ]


def _insert_events(database: SqlConnection, events: Iterable[RunEvent]) -> None:
    for event in events:
        row = (event.run_id, event.seq, event.event_id, event.ts, event.type, event.text, *event.trace)
        database.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?)", (*row, event.prev_hash, event.event_hash))


def _save_update(database: SqlConnection, run: Run, events: Iterable[RunEvent]) -> None:
    database.execute(
        "UPDATE runs SET state = ?, finished_at = ?, event_count = ?, last_hash = ?, snapshot = ? WHERE run_id = ?",
        (run.state.value, run.finished_at, *run.tail, json.dumps(run.snapshot), run.run_id),
    )
    _insert_events(database, events)

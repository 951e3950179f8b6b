"""The telemetry records of this machine, in a separate small database.

The journal of a run is authoritative: records that are lost here are derived from it again. So the
database is written without waiting for the disk.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

CREATE_TABLES_SQL: Final = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8")

WRITE_TIMEOUT_SECONDS: Final = 5.0
"""Time that one process waits for another that writes."""

MAX_OUTBOX_BYTES: Final = 10 << 20
"""Size of the outbox; the oldest messages are dropped first."""

_TRIM_OUTBOX_SQL: Final = (
    "DELETE FROM outbox WHERE id IN (SELECT id FROM"
    " (SELECT id, sum(length(body)) OVER (ORDER BY id DESC) AS total FROM outbox) WHERE total > ?)"
)
FILTER_COLUMNS: Final = ("run_id", "parent_run_id", "job_type", "agent_name", "status")


@dataclass(frozen=True, slots=True)
class TelemetryCollector:
    """A remote service that receives records."""

    url: str
    token: str = ""
    """The name of the secret that the collector requires; the secret itself is never stored."""


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """A request that waits to be sent."""

    id: int
    token: str
    method: str
    path: str
    body: bytes


class TelemetryLedger:
    """The database of records. Safe for threads and for several processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self.dropped_count = 0
        """The number of messages dropped from the outbox since the start."""

    @contextmanager
    def _open_transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._open_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            connection = sqlite3.connect(
                self._path, timeout=WRITE_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=OFF")
                connection.executescript(CREATE_TABLES_SQL)
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _select(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._open_connection().execute(sql, values).fetchall()

    def get_read_position(self, run_id: str) -> int:
        """Return the position up to which the journal of a run has been turned into records."""
        with self._lock:
            return _read_position(self._open_connection(), run_id)

    def store_records(
        self,
        new_records: Iterable[Mapping[str, Any]],
        updates: Iterable[tuple[str, Mapping[str, Any]]] = (),
        *,
        read_range: tuple[str, int, int] | None = None,
        collector: TelemetryCollector | None = None,
    ) -> bool:
        """Store new records and updates in one transaction, and queue them for a collector.

        `read_range` is a run, the journal position before and the position now. If another process
        has advanced the position in the meantime, nothing is stored and False is returned.
        """
        with self._open_transaction() as database:
            if read_range is not None:
                run_id, before, now = read_range
                if _read_position(database, run_id) != before:
                    return False
                database.execute("INSERT OR REPLACE INTO read VALUES (?, ?)", (run_id, now))
            for record in new_records:
                if _insert_record(database, record):
                    _enqueue_message(database, collector, "POST", "/api/v1/runs", record)
            for event_id, update in updates:
                if _update_record(database, event_id, update):
                    _enqueue_message(database, collector, "PATCH", f"/api/v1/runs/{event_id}", update)
            if collector is not None:
                self.dropped_count += database.execute(_TRIM_OUTBOX_SQL, (MAX_OUTBOX_BYTES,)).rowcount
        return True

    def associate_commit(
        self, event_id: str, commit: Mapping[str, Any], *, collector: TelemetryCollector | None = None
    ) -> bool:
        """Add a commit to a record; return False if the record does not exist."""
        with self._open_transaction() as database:
            record = _find_record(database, event_id)
            if record is None:
                return False
            commits = record.setdefault("commits", [])
            if commit not in commits:
                commits.append(dict(commit))
                _write_record(database, event_id, record)
                _enqueue_message(database, collector, "POST", f"/api/v1/runs/{event_id}/associate-commit", commit)
        return True

    def find(self, event_id: str) -> dict[str, Any] | None:
        with self._lock:
            return _find_record(self._open_connection(), event_id)

    def list_records(self, filters: Mapping[str, str], *, limit: int, offset: int = 0) -> Sequence[dict[str, Any]]:
        """Return the records that match the filters, the newest first."""
        names = [name for name in FILTER_COLUMNS if name in filters]
        where = " AND ".join(f"{name} = ?" for name in names) or "1"
        # Only known column names are inserted.
        sql = f"SELECT body FROM records WHERE {where} ORDER BY start_time DESC, event_id LIMIT ? OFFSET ?"  # noqa: S608
        rows = self._select(sql, [*(filters[name] for name in names), limit, offset])
        return [msgspec.json.decode(body) for (body,) in rows]

    def list_run_records(self, run_id: str) -> Sequence[dict[str, Any]]:
        """Return the record of a run and those below it, in the order of their start."""
        sql = "SELECT body FROM records WHERE run_id = ? OR parent_run_id = ? ORDER BY start_time, event_id"
        return [msgspec.json.decode(body) for (body,) in self._select(sql, (run_id, run_id))]

    def count_records(self) -> dict[str, dict[str, int]]:
        """Return the number of records by job type, agent and status."""
        return {
            column: dict(self._select(f"SELECT {column}, count(*) FROM records GROUP BY 1 ORDER BY 1"))  # noqa: S608
            for column in ("job_type", "agent_name", "status")
        }

    def claim_sender(self, owner: str, now: float, seconds: float) -> bool:
        """Become or stay the process that sends; return False while another process is."""
        with self._open_transaction() as database:
            row = database.execute("SELECT owner, until FROM sender").fetchone()
            if row is not None and row[0] != owner and row[1] > now:
                return False
            database.execute("INSERT OR REPLACE INTO sender VALUES (1, ?, ?)", (owner, now + seconds))
        return True

    def list_collectors(self) -> Sequence[str]:
        """Return the collectors that messages wait for."""
        return [row[0] for row in self._select("SELECT collector FROM outbox GROUP BY 1 ORDER BY min(id)")]

    def list_waiting(self, collector: str, limit: int) -> Sequence[OutboxMessage]:
        """Return the messages that wait for a collector, the oldest first."""
        sql = "SELECT id, token, method, path, body FROM outbox WHERE collector = ? ORDER BY id LIMIT ?"
        return [OutboxMessage(*row) for row in self._select(sql, (collector, limit))]

    def mark_sent(self, message: OutboxMessage) -> None:
        with self._open_transaction() as database:
            database.execute("DELETE FROM outbox WHERE id = ?", (message.id,))


def _read_position(database: sqlite3.Connection, run_id: str) -> int:
    row = database.execute("SELECT seq FROM read WHERE run_id = ?", (run_id,)).fetchone()
    return row[0] if row else 0


def _enqueue_message(
    database: sqlite3.Connection, collector: TelemetryCollector | None, method: str, path: str, body: Mapping[str, Any]
) -> None:
    if collector is not None:
        database.execute(
            "INSERT INTO outbox (collector, token, method, path, body) VALUES (?, ?, ?, ?, ?)",
            (collector.url, collector.token, method, path, msgspec.json.encode(body)),
        )


def _insert_record(database: sqlite3.Connection, record: Mapping[str, Any]) -> bool:
    full_record = {"status": "running", **record}
    columns = ("event_id", "run_id", "parent_run_id", "job_type", "agent_name", "status", "start_time")
    values = [full_record.get(column) for column in columns]
    cursor = database.execute(
        "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*values, msgspec.json.encode(full_record).decode()),
    )
    return cursor.rowcount == 1


def _find_record(database: sqlite3.Connection, event_id: str) -> dict[str, Any] | None:
    row = database.execute("SELECT body FROM records WHERE event_id = ?", (event_id,)).fetchone()
    return None if row is None else msgspec.json.decode(row[0])


def _update_record(database: sqlite3.Connection, event_id: str, update: Mapping[str, Any]) -> bool:
    record = _find_record(database, event_id)
    if record is None:
        return False
    if "end_time" in update and "duration_ms" not in update:
        update = {**update, "duration_ms": _measure_duration_ms(record["start_time"], update["end_time"])}
    for name in ("metrics_json", "context_json"):  # facts are added to, not replaced
        if isinstance(record.get(name), dict) and isinstance(update.get(name), dict):
            update = {**update, name: {**record[name], **update[name]}}
    _write_record(database, event_id, {**record, **update})
    return True


def _write_record(database: sqlite3.Connection, event_id: str, record: Mapping[str, Any]) -> None:
    database.execute(
        "UPDATE records SET status = ?, body = ? WHERE event_id = ?",
        (record["status"], msgspec.json.encode(record).decode(), event_id),
    )


def _measure_duration_ms(started: str, finished: str) -> float:
    """Return a duration in milliseconds, never negative: two machines may have different clocks."""
    try:
        first, last = (datetime.fromisoformat(moment) for moment in (started, finished))
        return max(0.0, round((last - first).total_seconds() * 1000, 3))
    except (TypeError, ValueError):  # one time with and one without a zone, or not a time
        return 0.0

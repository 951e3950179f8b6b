"""The records of this machine, in a small database of their own.

Nothing here is the truth about a run: the journal is, and what was lost here is made again from it.
So the database is written without waiting for the disk.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS records (
  event_id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  parent_run_id TEXT,
  job_type TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  status TEXT NOT NULL,
  start_time TEXT NOT NULL,
  body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_run ON records (run_id);
CREATE INDEX IF NOT EXISTS records_by_parent ON records (parent_run_id);
CREATE INDEX IF NOT EXISTS records_by_time ON records (start_time, event_id);
CREATE TABLE IF NOT EXISTS read (run_id TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  collector TEXT NOT NULL,
  token TEXT NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS sender (one INTEGER PRIMARY KEY, owner TEXT, until REAL);
"""

WAIT: Final = 5.0
"""Seconds that one process waits for another that writes."""

OUTBOX_CAP: Final = 10 << 20
"""Bytes that may wait to be sent; the oldest go first."""

FILTERS: Final = ("run_id", "parent_run_id", "job_type", "agent_name", "status")


@dataclass(frozen=True, slots=True)
class Collector:
    """Somebody elsewhere who wants records."""

    url: str
    token: str = ""
    """The name of the secret that it wants to see; the secret itself is never written down."""


@dataclass(frozen=True, slots=True)
class Message:
    """A request that waits to be sent."""

    id: int
    token: str
    method: str
    path: str
    body: bytes


class Ledger:
    """Safe for threads and for several processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self.dropped = 0
        """Messages that the cap took away since the start."""

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            connection = sqlite3.connect(
                self._path, timeout=WAIT, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=OFF")
                connection.executescript(SCHEMA)
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

    def read_up_to(self, run_id: str) -> int:
        """How far the journal of a run has been turned into records."""
        with self._lock, closing(self._open().execute(_READ, (run_id,))) as rows:
            row = rows.fetchone()
        return row[0] if row else 0

    def keep(
        self,
        begun: Iterable[Mapping[str, Any]],
        ended: Iterable[tuple[str, Mapping[str, Any]]] = (),
        *,
        read: tuple[str, int, int] | None = None,
        to: Collector | None = None,
    ) -> bool:
        """Take in records and what is known of them later, in one go; send them `to` somebody.

        `read` is a run, how far its journal had been read and how far it is now; False, and
        nothing is taken in, when somebody else has read on in the meantime.
        """
        with self._transaction() as database:
            if read is not None and not _moved(database, *read):
                return False
            for record in begun:
                if _insert(database, record):
                    _post(database, to, "POST", "/api/v1/runs", record)
            for event_id, update in ended:
                if _update(database, event_id, update):
                    _post(database, to, "PATCH", f"/api/v1/runs/{event_id}", update)
            if to is not None:
                self.dropped += _trimmed(database)
        return True

    def associate(
        self, event_id: str, commit: Mapping[str, Any], *, to: Collector | None = None
    ) -> bool:
        """Add a commit to a record; False when there is no such record."""
        with self._transaction() as database:
            found = _find(database, event_id)
            if found is None:
                return False
            commits = found.setdefault("commits", [])
            if commit not in commits:
                commits.append(dict(commit))
                _write(database, event_id, found)
                _post(database, to, "POST", f"/api/v1/runs/{event_id}/associate-commit", commit)
        return True

    def find(self, event_id: str) -> dict[str, Any] | None:
        with self._lock:
            return _find(self._open(), event_id)

    def list(
        self, wanted: Mapping[str, str], *, limit: int, offset: int = 0
    ) -> Sequence[dict[str, Any]]:
        """Records by the columns that can be asked for, the newest first."""
        names = [name for name in FILTERS if name in wanted]
        where = " AND ".join(f"{name} = ?" for name in names) or "1"
        sql = (  # the names are ours
            f"SELECT body FROM records WHERE {where} "  # noqa: S608
            "ORDER BY start_time DESC, event_id LIMIT ? OFFSET ?"
        )
        values = [*(wanted[name] for name in names), limit, offset]
        with self._lock, closing(self._open().execute(sql, values)) as rows:
            return [msgspec.json.decode(body) for (body,) in rows.fetchall()]

    def of_run(self, run_id: str) -> Sequence[dict[str, Any]]:
        """The record of a run and those below it, in the order in which they began."""
        with self._lock, closing(self._open().execute(_FAMILY, (run_id, run_id))) as rows:
            return [msgspec.json.decode(body) for (body,) in rows.fetchall()]

    def counts(self) -> dict[str, dict[str, int]]:
        """How many records there are of each kind."""
        made: dict[str, dict[str, int]] = {}
        with self._lock:
            for column in ("job_type", "agent_name", "status"):
                sql = f"SELECT {column}, count(*) FROM records GROUP BY 1 ORDER BY 1"  # noqa: S608
                with closing(self._open().execute(sql)) as rows:
                    made[column] = dict(rows.fetchall())
        return made

    def claim(self, owner: str, now: float, seconds: float) -> bool:
        """Become the one who sends, or stay it; False while another process is."""
        with self._transaction() as database:
            with closing(database.execute("SELECT owner, until FROM sender")) as rows:
                row = rows.fetchone()
            if row is not None and row[0] != owner and row[1] > now:
                return False
            database.execute(
                "INSERT OR REPLACE INTO sender VALUES (1, ?, ?)", (owner, now + seconds)
            )
        return True

    def collectors(self) -> Sequence[str]:
        """Where something is to be sent to."""
        sql = "SELECT collector FROM outbox GROUP BY 1 ORDER BY min(id)"
        with self._lock, closing(self._open().execute(sql)) as rows:
            return [row[0] for row in rows.fetchall()]

    def waiting(self, collector: str, limit: int) -> Sequence[Message]:
        """What waits to be sent to somebody, the oldest first."""
        with self._lock, closing(self._open().execute(_WAITING, (collector, limit))) as rows:
            return [Message(*row) for row in rows.fetchall()]

    def sent(self, message: Message) -> None:
        with self._transaction() as database:
            database.execute("DELETE FROM outbox WHERE id = ?", (message.id,))


_READ: Final = "SELECT seq FROM read WHERE run_id = ?"
_WAITING: Final = (
    "SELECT id, token, method, path, body FROM outbox WHERE collector = ? ORDER BY id LIMIT ?"
)
_OLDEST: Final = "SELECT id, length(body) FROM outbox ORDER BY id LIMIT 1"
_FAMILY: Final = (
    "SELECT body FROM records WHERE run_id = ? OR parent_run_id = ? ORDER BY start_time, event_id"
)
_INSERT: Final = "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


def _post(
    database: sqlite3.Connection,
    to: Collector | None,
    method: str,
    path: str,
    body: Mapping[str, Any],
) -> None:
    if to is not None:
        database.execute(
            "INSERT INTO outbox (collector, token, method, path, body) VALUES (?, ?, ?, ?, ?)",
            (to.url, to.token, method, path, msgspec.json.encode(body)),
        )


def _trimmed(database: sqlite3.Connection) -> int:
    """Keep the outbox below its cap; how many messages that took away."""
    with closing(database.execute("SELECT coalesce(sum(length(body)), 0) FROM outbox")) as rows:
        total = rows.fetchone()[0]
    dropped = 0
    while total > OUTBOX_CAP:
        with closing(database.execute(_OLDEST)) as rows:
            number, size = rows.fetchone()
        database.execute("DELETE FROM outbox WHERE id = ?", (number,))
        dropped += 1
        total -= size
    return dropped


def _moved(database: sqlite3.Connection, run_id: str, before: int, now: int) -> bool:
    with closing(database.execute(_READ, (run_id,))) as rows:
        row = rows.fetchone()
    if (row[0] if row else 0) != before:
        return False
    database.execute("INSERT OR REPLACE INTO read VALUES (?, ?)", (run_id, now))
    return True


def _insert(database: sqlite3.Connection, record: Mapping[str, Any]) -> bool:
    whole = {"status": "running", **record}
    done = database.execute(
        _INSERT,
        (
            whole["event_id"],
            whole["run_id"],
            whole.get("parent_run_id"),
            whole["job_type"],
            whole["agent_name"],
            whole["status"],
            whole["start_time"],
            msgspec.json.encode(whole).decode(),
        ),
    )
    return done.rowcount == 1


def _find(database: sqlite3.Connection, event_id: str) -> dict[str, Any] | None:
    sql = "SELECT body FROM records WHERE event_id = ?"
    with closing(database.execute(sql, (event_id,))) as rows:
        row = rows.fetchone()
    return None if row is None else msgspec.json.decode(row[0])


def _update(database: sqlite3.Connection, event_id: str, update: Mapping[str, Any]) -> bool:
    found = _find(database, event_id)
    if found is None:
        return False
    if "end_time" in update and "duration_ms" not in update:
        update = {**update, "duration_ms": _between(found["start_time"], update["end_time"])}
    for name in ("metrics_json", "context_json"):  # facts are added to, not replaced
        if isinstance(found.get(name), dict) and isinstance(update.get(name), dict):
            update = {**update, name: {**found[name], **update[name]}}
    _write(database, event_id, {**found, **update})
    return True


def _write(database: sqlite3.Connection, event_id: str, whole: Mapping[str, Any]) -> None:
    database.execute(
        "UPDATE records SET status = ?, body = ? WHERE event_id = ?",
        (whole["status"], msgspec.json.encode(whole).decode(), event_id),
    )


def _between(begun: str, ended: str) -> float:
    """Milliseconds, never less than none: two machines may have two clocks."""
    try:
        first, last = (datetime.fromisoformat(each) for each in (begun, ended))
        return max(0.0, round((last - first).total_seconds() * 1000, 3))
    except (TypeError, ValueError):  # with and without a zone, or no moment at all
        return 0.0

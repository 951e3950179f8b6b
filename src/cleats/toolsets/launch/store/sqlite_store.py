"""Runs in one SQLite file that any number of processes on a machine share.

Write-ahead log with full sync: recorded data survives a power cut, and readers never wait for a
writer.
"""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.runs import storage
from cleats.toolsets.launch.store.sql_store import SqlStore

WRITE_TIMEOUT_SECONDS = 20.0
"""Time that a writer waits for other writers. A write takes a millisecond."""

SCHEMA_VERSION: Final = 1

_CREATE_TABLES_SQL: Final = """
CREATE TABLE IF NOT EXISTS runs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL UNIQUE,
  idempotency_key TEXT UNIQUE,
  config_hash TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  product_slug TEXT NOT NULL,
  state TEXT NOT NULL,
  started_at TEXT NOT NULL,
  finished_at TEXT NOT NULL,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  expires REAL NOT NULL,
  event_count INTEGER NOT NULL,
  last_hash TEXT NOT NULL,
  config TEXT NOT NULL,
  shown_config TEXT NOT NULL,
  snapshot TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_by_product ON runs (product_slug, number);
CREATE INDEX IF NOT EXISTS runs_by_state ON runs (state, number);
CREATE TABLE IF NOT EXISTS steps (
  run_id TEXT NOT NULL,
  step TEXT NOT NULL,
  place INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  seconds REAL NOT NULL,
  output TEXT NOT NULL,
  PRIMARY KEY (run_id, step)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
  run_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  ts TEXT NOT NULL,
  type TEXT NOT NULL,
  payload TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  span_id TEXT NOT NULL,
  parent_span_id TEXT NOT NULL,
  prev_hash TEXT NOT NULL,
  event_hash TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
"""


def open_database(path: Path) -> sqlite3.Connection:
    """Open the file and prepare it; several processes may do so at once.

    Raises:
        ToolError: INTERNAL, a newer version has written it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = sqlite3.connect(path, timeout=WRITE_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _prepare_database(database)
    except BaseException:
        database.close()
        raise
    return database


def wrap_sqlite_error(error: sqlite3.Error) -> ToolError:
    """Return an error that explains a fault of the database file and its remedy."""
    cause = getattr(error, "sqlite_errorname", type(error).__name__)
    if cause == "SQLITE_IOERR_SHMSIZE":  # no room for the shared-memory file that readers need
        return storage.make_disk_full_error(cause)
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # the primary error code
        case sqlite3.SQLITE_FULL:
            return storage.make_disk_full_error(cause)
        case sqlite3.SQLITE_BUSY:
            return storage.make_machine_error(
                "Another program holds the file that the runs are kept in.",
                "End what has runs.sqlite open, such as a backup or a database browser, then try "
                "again; nothing was half written.",
                cause,
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return storage.make_machine_error(
                "The file that the runs are kept in is damaged.",
                "Move runs.sqlite away, and the -wal and -shm files beside it; then put back a "
                "copy, or begin with no runs.",
                cause,
                retryable=False,
            )
        case _:
            return storage.make_machine_error(
                "The file that the runs are kept in cannot be used now.",
                "Try again; nothing was half written. If it stays so, look at the data folder.",
                cause,
            )


def _prepare_database(database: sqlite3.Connection) -> None:
    deadline = time.monotonic() + WRITE_TIMEOUT_SECONDS
    while True:
        try:
            # The first process changes the file, and SQLite does not let the others wait for it.
            database.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    database.execute("PRAGMA synchronous = FULL")
    database.execute("BEGIN IMMEDIATE")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == 0:
        for statement in _CREATE_TABLES_SQL.split(";"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    database.execute("COMMIT")
    if version > SCHEMA_VERSION:
        raise storage.make_machine_error(
            "The runs were written by a newer version of Cleats.",
            "Update this one.",
            "NewerStore",
            retryable=False,
        )


log = logging.getLogger(__name__)


class _SqliteConnection:
    """A connection to the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened_stat: os.stat_result | None = None
        self.lock = threading.Lock()

    @cached_property
    def connection(self) -> sqlite3.Connection:
        opened = open_database(self._path)
        self._opened_stat = self._stat_file()
        return opened

    def begin(self, statement: str) -> None:
        """Begin a transaction on the file that exists now.

        The file may have been removed or replaced by a copy. A process that still wrote to the old
        one would record data that nobody else can see and that is lost when the process ends.
        """
        current_stat = self._stat_file()
        is_same_file = current_stat and self._opened_stat and os.path.samestat(current_stat, self._opened_stat)
        if not is_same_file:
            self.close()
        self.execute(statement)

    def _stat_file(self) -> os.stat_result | None:
        try:
            return self._path.stat()
        except FileNotFoundError:
            return None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement, values)

    def close(self) -> None:
        if opened := self.__dict__.pop("connection", None):
            opened.close()

    def now(self) -> float:
        return time.time()

    def lock_name(self, name: str) -> None:
        """Do nothing: SQLite has one writer at a time anyway."""

    def insert_row(self, statement: str, values: Sequence[Any]) -> bool:
        try:
            self.connection.execute(statement, values)
        except sqlite3.IntegrityError:
            return False
        return True


class SqliteStore(SqlStore):
    """The store of one user on one machine. Its file is opened when it is first needed."""

    def __init__(self, path: Path) -> None:
        self._writer = _SqliteConnection(path)
        self._reader = _SqliteConnection(path)

    @contextmanager
    def _open_write(self) -> Iterator[_SqliteConnection]:
        with self._open_transaction(self._writer, "BEGIN IMMEDIATE"):
            yield self._writer

    @contextmanager
    def _open_read(self) -> Iterator[_SqliteConnection]:
        with self._open_transaction(self._reader, "BEGIN"):
            yield self._reader

    @contextmanager
    def _open_transaction(self, file: _SqliteConnection, begin: str) -> Iterator[None]:
        with file.lock, wrap_storage_errors():
            file.begin(begin)
            try:
                yield
                file.execute("COMMIT")
            except BaseException:
                if file.connection.in_transaction:  # a full disk has rolled it back already
                    file.execute("ROLLBACK")
                raise

    def close(self) -> None:
        for file in (self._writer, self._reader):
            with file.lock:
                file.close()


@contextmanager
def wrap_storage_errors() -> Iterator[None]:
    """Convert errors of the database file to errors that a caller can act on."""
    try:
        yield
    except sqlite3.Error as error:
        log.error("store.fail error=%s", error)  # noqa: TRY400 - the location is of no use
        raise wrap_sqlite_error(error) from None
    except OSError as error:
        if (tool_error := storage.wrap_os_error(error)) is None:
            raise
        raise tool_error from None

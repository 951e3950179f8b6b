"""Runs in one SQLite file that any number of processes on a machine share.

Write-ahead log with full sync: recorded data survives a power cut, and readers never wait for a writer.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.runs import storage
from cleats.toolsets.launch.store.model import RUN_TABLES_SQL, SqlConnection
from cleats.toolsets.launch.store.run_store import RunStore

WRITE_TIMEOUT_SECONDS = 20.0
"""Time that a writer waits for other writers. A write takes a millisecond."""

SCHEMA_VERSION: Final = 1

_CREATE_TABLES_SQL: Final = RUN_TABLES_SQL.format(
    prefix="", number_type="INTEGER PRIMARY KEY AUTOINCREMENT", options=" WITHOUT ROWID"
)


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
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary error code
    if code == sqlite3.SQLITE_FULL:
        return storage.make_disk_full_error(cause)
    is_damaged = code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
    return storage.make_machine_error(*_FILE_FAULTS.get(code, _OTHER_FAULT), cause, retryable=not is_damaged)


_BUSY_HINT: Final = (
    "End what has runs.sqlite open, such as a backup or a database browser, then try again; nothing was half written."
)
_DAMAGED_FAULT: Final = (
    "The file that the runs are kept in is damaged.",
    "Move runs.sqlite away, and the -wal and -shm files beside it; then put back a copy, or begin with no runs.",
)
_FILE_FAULTS: Final = {
    sqlite3.SQLITE_BUSY: ("Another program holds the file that the runs are kept in.", _BUSY_HINT),
    sqlite3.SQLITE_CORRUPT: _DAMAGED_FAULT,
    sqlite3.SQLITE_NOTADB: _DAMAGED_FAULT,
}
_OTHER_FAULT: Final = (
    "The file that the runs are kept in cannot be used now.",
    "Try again; nothing was half written. If it stays so, look at the data folder.",
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
            "The runs were written by a newer version of Cleats.", "Update this one.", "NewerStore", retryable=False
        )


log = logging.getLogger(__name__)


class _SqliteConnection(SqlConnection):
    def __init__(self, path: Path, begin_sql: str) -> None:
        super().__init__()
        self._path = path
        self._begin_sql = begin_sql
        self._opened_stat: os.stat_result | None = None

    @cached_property
    def connection(self) -> sqlite3.Connection:
        opened = open_database(self._path)
        self._opened_stat = self._stat_file()
        return opened

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        with self._lock, wrap_storage_errors():
            self._close_replaced_file()
            self.execute(self._begin_sql)
            try:
                yield self
                self.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # a full disk has rolled it back already
                    self.execute("ROLLBACK")
                raise

    def _close_replaced_file(self) -> None:
        """Close the file if it was removed or replaced by a copy.

        A process that still wrote to the old one would record data that nobody else can see and
        that is lost when the process ends.
        """
        current_stat = self._stat_file()
        if not (current_stat and self._opened_stat and os.path.samestat(current_stat, self._opened_stat)):
            self.disconnect()

    def _stat_file(self) -> os.stat_result | None:
        try:
            return self._path.stat()
        except FileNotFoundError:
            return None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement, values)

    def disconnect(self) -> None:
        if opened := self.__dict__.pop("connection", None):
            opened.close()

    def now(self) -> float:
        return time.time()

    def lock_name(self, name: str) -> None:
        """Do nothing: SQLite has one writer at a time anyway."""

    def insert_row(self, statement: str, values: Sequence[Any]) -> bool:
        try:
            self.execute(statement, values)
        except sqlite3.IntegrityError:
            return False
        return True


class SqliteStore(RunStore):
    """The store of one user on one machine. Its file is opened when it is first needed."""

    def __init__(self, path: Path) -> None:
        super().__init__(_SqliteConnection(path, "BEGIN IMMEDIATE"), _SqliteConnection(path, "BEGIN"))


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

"""The databases of runs: a SQLite file for one machine, or a PostgreSQL database for any number of them.

SQLite has a write-ahead log with full sync: recorded data survives a power cut, and readers never wait for a writer.

PostgreSQL has the same tables and laws. A run is locked by its row while it is written, so runs do not wait for each
other; leases are measured by the clock of the database, which all machines share. A broken connection is reopened by
the next call; the call during which it broke fails and can be repeated safely.
"""

import logging
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self
from zlib import crc32

from cleats.contract.errors import ToolError
from cleats.system import postgres
from cleats.system.postgres import UnreachableError
from cleats.toolsets.launch.runs import storage
from cleats.toolsets.launch.store.model import RUN_TABLES_SQL, SqlConnection, StoreUnreachableError
from cleats.toolsets.launch.store.run_store import RunStore

WRITE_TIMEOUT_SECONDS = 20.0
"""Time that a writer waits for other writers. A write takes a millisecond."""

SCHEMA_VERSION: Final = 1

_CREATE_TABLES_SQL: Final = RUN_TABLES_SQL.format(
    prefix="", number_type="INTEGER PRIMARY KEY AUTOINCREMENT", options=" WITHOUT ROWID"
)


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


_BUSY_HINT: Final = "Close the program that has runs.sqlite open, then retry; no partial data was written."
_DAMAGED_FAULT: Final = (
    "The database file of the runs is damaged.",
    "Move runs.sqlite away, and the -wal and -shm files beside it; then restore a backup, or start without runs.",
)
_FILE_FAULTS: Final = {
    sqlite3.SQLITE_BUSY: ("Another program has locked the database file of the runs.", _BUSY_HINT),
    sqlite3.SQLITE_CORRUPT: _DAMAGED_FAULT,
    sqlite3.SQLITE_NOTADB: _DAMAGED_FAULT,
}
_OTHER_FAULT: Final = (
    "The database file of the runs cannot be used.",
    "Retry; no partial data was written. If it fails again, check the data folder.",
)


def _prepare_database(database: sqlite3.Connection) -> None:
    """Create the tables; several processes may do so at once."""
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
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        opened = sqlite3.connect(
            self._path, timeout=WRITE_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare_database(opened)
        except BaseException:
            opened.close()
            raise
        self._opened_stat = self._stat_file()
        return opened

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        with self._lock, wrap_storage_errors():
            # A process that still wrote to a file that was removed or replaced by a copy would record
            # data that nobody else can see and that is lost when the process ends.
            current_stat = self._stat_file()
            if not (current_stat and self._opened_stat and os.path.samestat(current_stat, self._opened_stat)):
                self.disconnect()
            self.execute(self._begin_sql)
            try:
                yield self
                self.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # a full disk has rolled it back already
                    self.execute("ROLLBACK")
                raise

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


CREATE_TABLES_SQL: Final = RUN_TABLES_SQL.format(
    prefix="cleats_", number_type="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", options=""
)
_TABLE_PATTERN: Final = re.compile(r"\b(FROM|INTO|UPDATE) (?=(?:runs|steps|events)\b)")


class _PostgresConnection(SqlConnection):
    def __init__(self, url: str, *, read_only: bool = False) -> None:
        super().__init__()
        self._url = url
        self._read_only = read_only
        self._has_tables = False
        self._connection: postgres.Connection | None = None

    def _connect(self) -> "postgres.Connection":
        if self._connection is None or self._connection.closed:
            self._connection = postgres.connect(self._url)
        return self._connection

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        with self._lock:
            try:
                connection = self._connect()
            except UnreachableError as error:
                raise StoreUnreachableError(type(error).__name__) from None
            loss_types: tuple[type[Exception], ...] = (*postgres.get_connection_errors(), UnreachableError)
            try:
                if not self._has_tables:
                    postgres.create_tables(connection, CREATE_TABLES_SQL)
                    connection.commit()
                    self._has_tables = True
                with connection.transaction():
                    if self._read_only:
                        self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                    yield self
            except loss_types as error:
                with suppress(*loss_types):
                    self.disconnect()
                raise StoreUnreachableError(type(error).__name__) from None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connect().execute(_TABLE_PATTERN.sub(r"\1 cleats_", statement).replace("?", "%s"), values)

    def now(self) -> float:
        return float(self.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()[0])

    def lock_name(self, name: str) -> None:
        # Names that share a hash only wait for each other.
        lock_key = crc32(name.encode()) - (1 << 31)
        self.execute("SELECT pg_advisory_xact_lock(?, ?)", (_LOCK_NAMESPACE, lock_key))

    def insert_row(self, statement: str, values: Sequence[Any]) -> bool:
        return bool(self.execute(f"{statement} ON CONFLICT DO NOTHING", values).rowcount == 1)


class PostgresStore(RunStore):
    """The store of a fleet."""

    def __init__(self, url: str) -> None:
        super().__init__(_PostgresConnection(url), _PostgresConnection(url, read_only=True))


_LOCK_NAMESPACE: Final = crc32(b"cleats run") - (1 << 31)
"""The first half of our advisory locks, so that other applications do not share them."""

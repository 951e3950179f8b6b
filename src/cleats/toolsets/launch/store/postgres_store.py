"""Runs in a PostgreSQL database that any number of machines share.

The same tables and laws as in the SQLite file. A run is locked by its row while it is written, so
runs do not wait for each other; leases are measured by the clock of the database, which all
machines share. A broken connection is reopened by the next call; the call during which it broke
fails and may be repeated.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import postgres
from cleats.system.postgres import UnreachableError
from cleats.toolsets.launch.store.sql_store import SqlCursor, SqlStore

if TYPE_CHECKING:
    from cleats.system.postgres import Connection

CREATE_TABLES_SQL: Final = """
CREATE TABLE IF NOT EXISTS cleats_runs (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE,
  idempotency_key TEXT UNIQUE,
  config_hash TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  product_slug TEXT NOT NULL,
  state TEXT NOT NULL,
  started_at TEXT NOT NULL,
  finished_at TEXT NOT NULL,
  owner TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  expires DOUBLE PRECISION NOT NULL,
  event_count BIGINT NOT NULL,
  last_hash TEXT NOT NULL,
  config TEXT NOT NULL,
  shown_config TEXT NOT NULL,
  snapshot TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS cleats_runs_by_product ON cleats_runs (product_slug, number);
CREATE INDEX IF NOT EXISTS cleats_runs_by_state ON cleats_runs (state, number);
CREATE TABLE IF NOT EXISTS cleats_steps (
  run_id TEXT NOT NULL,
  step TEXT NOT NULL,
  place BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  seconds DOUBLE PRECISION NOT NULL,
  output TEXT NOT NULL,
  PRIMARY KEY (run_id, step)
);
CREATE TABLE IF NOT EXISTS cleats_events (
  run_id TEXT NOT NULL,
  seq BIGINT NOT NULL,
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
);
"""

_SQL_REPLACEMENTS: Final = (
    ("FROM runs", "FROM cleats_runs"),
    ("INTO runs", "INTO cleats_runs"),
    ("UPDATE runs", "UPDATE cleats_runs"),
    ("FROM steps", "FROM cleats_steps"),
    ("INTO steps", "INTO cleats_steps"),
    ("FROM events", "FROM cleats_events"),
    ("INTO events", "INTO cleats_events"),
    ("?", "%s"),
)


class _PostgresConnection:
    """A connection to the server, opened when it is needed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self.lock = threading.Lock()

    def open(self) -> "Connection":
        if self._connection is None or self._connection.closed:
            self._connection = postgres.connect(self._url)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> SqlCursor:
        return self.open().execute(_translate_statement(statement), values)

    def now(self) -> float:
        row = self.open().execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
        assert row is not None  # noqa: S101 - a query without a table has one row
        return float(row[0])

    def lock_name(self, name: str) -> None:
        self.execute("SELECT pg_advisory_xact_lock(?, ?)", (_LOCK_NAMESPACE, _hash_lock_name(name)))

    def insert_row(self, statement: str, values: Sequence[Any]) -> bool:
        return self.execute(f"{statement} ON CONFLICT DO NOTHING", values).rowcount == 1


class PostgresStore(SqlStore):
    """The store of a fleet."""

    def __init__(self, url: str) -> None:
        self._writer = _PostgresConnection(url)
        self._reader = _PostgresConnection(url)
        self._has_tables = False

    @contextmanager
    def _open_write(self) -> Iterator[_PostgresConnection]:
        with self._open_transaction(self._writer):
            yield self._writer

    @contextmanager
    def _open_read(self) -> Iterator[_PostgresConnection]:
        with self._open_transaction(self._reader):
            self._reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield self._reader

    @contextmanager
    def _open_transaction(self, server: _PostgresConnection) -> Iterator[None]:
        with server.lock:
            try:
                connection = server.open()
            except UnreachableError as error:
                raise _make_unreachable_error(error) from None
            loss_types: tuple[type[Exception], ...] = (*postgres.get_connection_errors(), UnreachableError)
            try:
                if not self._has_tables:
                    postgres.create_tables(connection, CREATE_TABLES_SQL)
                    connection.commit()
                    self._has_tables = True
                with connection.transaction():
                    yield
            except loss_types as error:
                with suppress(*loss_types):
                    server.close()
                raise _make_unreachable_error(error) from None

    def close(self) -> None:
        for server in (self._writer, self._reader):
            with server.lock:
                server.close()


_LOCK_NAMESPACE: Final = crc32(b"cleats run") - (1 << 31)
"""The first half of our advisory locks, so that other applications do not share them."""


def _hash_lock_name(name: str) -> int:
    """Return the second half of an advisory lock. Names that share one only wait for each other."""
    return crc32(name.encode()) - (1 << 31)


def _translate_statement(statement: str) -> str:
    for sqlite_text, postgres_text in _SQL_REPLACEMENTS:
        statement = statement.replace(sqlite_text, postgres_text)
    return statement


def _make_unreachable_error(error: Exception) -> ToolError:
    return ToolError(
        ErrorCode.INTERNAL,
        "The database that the runs are kept in cannot be reached.",
        hint="Try again when it is back: nothing was half written, and a run goes on at its last "
        "record. A start without an idempotency_key may have been made; launch_list_runs tells.",
        retryable=True,
        details={"cause_class": type(error).__name__},
    )

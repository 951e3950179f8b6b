"""Runs in a PostgreSQL database that any number of machines share.

The same tables and laws as in the SQLite file. A run is locked by its row while it is written, so runs do not wait for
each other; leases are measured by the clock of the database, which all machines share. A broken connection is reopened
by the next call; the call during which it broke fails and may be repeated.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self
from zlib import crc32

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import postgres
from cleats.system.postgres import UnreachableError
from cleats.toolsets.launch.store.model import RUN_TABLES_SQL, SqlConnection, SqlCursor
from cleats.toolsets.launch.store.run_store import RunStore

if TYPE_CHECKING:
    from cleats.system.postgres import Connection

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
        self._connection: Connection | None = None

    def _connect(self) -> "Connection":
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
                raise _make_unreachable_error(error) from None
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
                raise _make_unreachable_error(error) from None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> SqlCursor:
        return self._connect().execute(_TABLE_PATTERN.sub(r"\1 cleats_", statement).replace("?", "%s"), values)

    def now(self) -> float:
        return float(self.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()[0])

    def lock_name(self, name: str) -> None:
        # Names that share a hash only wait for each other.
        lock_key = crc32(name.encode()) - (1 << 31)
        self.execute("SELECT pg_advisory_xact_lock(?, ?)", (_LOCK_NAMESPACE, lock_key))

    def insert_row(self, statement: str, values: Sequence[Any]) -> bool:
        return self.execute(f"{statement} ON CONFLICT DO NOTHING", values).rowcount == 1


class PostgresStore(RunStore):
    """The store of a fleet."""

    def __init__(self, url: str) -> None:
        super().__init__(_PostgresConnection(url), _PostgresConnection(url, read_only=True))


_LOCK_NAMESPACE: Final = crc32(b"cleats run") - (1 << 31)
"""The first half of our advisory locks, so that other applications do not share them."""


def _make_unreachable_error(error: Exception) -> ToolError:
    return ToolError(
        ErrorCode.INTERNAL,
        "The database that the runs are kept in cannot be reached.",
        hint="Try again when it is back: nothing was half written, and a run goes on at its last "
        "record. A start without an idempotency_key may have been made; launch_list_runs tells.",
        retryable=True,
        details={"cause_class": type(error).__name__},
    )

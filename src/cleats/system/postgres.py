"""A PostgreSQL database that several machines share: connections, tables, safe error messages.

`psycopg` is an extra and imported when a database is configured. Errors raised here never contain
the address, since it usually holds a password.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from zlib import crc32

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.installation import format_install_command

if TYPE_CHECKING:
    import psycopg

    Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

CONNECTION_DEFAULTS: Final[Mapping[str, str | int]] = {
    "connect_timeout": 5,
    "application_name": "cleats",
    # A machine that vanished is noticed in half a minute; the system waits for two hours.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    # Keepalives do not help while something sent is not acknowledged; the system then waits for a quarter of an hour.
    "tcp_user_timeout": 20_000,
}
"""Connection options, with times in seconds, used unless the address sets them; the last one is in milliseconds."""

SESSION_SETTINGS: Final = """
    SELECT set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
           set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '20000', false)
"""
"""The same for the server, which otherwise keeps the locks of a machine that vanished for two hours."""


_CREATED_NAME_PATTERN: Final = re.compile(r"CREATE (?:TABLE|INDEX) IF NOT EXISTS (\w+)")


class UnreachableError(OSError):
    """The database does not answer, or the connection was lost; a retry may help."""


@contextmanager
def open_connection(url: str, *, autocommit: bool = False) -> "Iterator[Connection]":
    """Open a connection; commit when the block succeeds, roll back when it fails.

    Raises:
        UnreachableError: The database does not answer, or the connection was lost.
        ToolError: CAPABILITY_MISSING, `psycopg` is not installed.
    """
    connection = connect(url, autocommit=autocommit)
    try:
        with connection:
            yield connection
    except get_connection_errors() as error:
        raise UnreachableError(f"the connection to the database was lost ({type(error).__name__})") from None


def get_connection_errors() -> "tuple[type[psycopg.Error], ...]":
    """Return the errors that psycopg raises for a lost connection; it has to be installed."""
    import psycopg  # noqa: PLC0415 - an extra

    # A session closed for idling gets this specific error, or just that of a lost connection.
    idle_timeout_error = psycopg.errors.IdleInTransactionSessionTimeout
    return (psycopg.OperationalError, psycopg.InterfaceError, idle_timeout_error)


def connect(url: str, *, autocommit: bool = False) -> "Connection":
    """Return a connection that the caller closes; raises the errors of `open_connection`."""
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError:
        hint = f"Install it: {format_install_command('cleats[fleet]')}"
        raise ToolError(
            ErrorCode.CAPABILITY_MISSING, "A shared database needs the package psycopg.", hint=hint
        ) from None
    try:
        connection = psycopg.connect(add_connection_defaults(url), autocommit=True)
        try:
            connection.execute(SESSION_SETTINGS)
        except BaseException:
            connection.close()
            raise
        connection.autocommit = autocommit
    except psycopg.OperationalError as error:
        raise UnreachableError(f"the database does not answer ({type(error).__name__})") from None
    return connection


def add_connection_defaults(url: str) -> str:
    """Return the address with `CONNECTION_DEFAULTS` for what it does not set; `psycopg` has to be installed."""
    from psycopg import conninfo  # noqa: PLC0415 - an extra

    url_options = conninfo.conninfo_to_dict(url)
    missing_defaults = {name: value for name, value in CONNECTION_DEFAULTS.items() if name not in url_options}
    return conninfo.make_conninfo(url, **missing_defaults)


async def check_database(url: str) -> None:
    """Return when the database answers a query; raises the errors of `open_connection`."""
    from anyio import to_thread  # noqa: PLC0415 - a server starts

    def run_probe() -> None:
        with open_connection(url, autocommit=True) as connection:
            connection.execute("SELECT 1")

    await to_thread.run_sync(run_probe, abandon_on_cancel=True)


def create_tables(connection: "Connection", ddl: str) -> None:
    """Run statements that create tables and indexes, one process at a time, unless all of them exist.

    `IF NOT EXISTS` alone is not enough: two simultaneous first starts collide in the catalogue, and an index that
    exists still waits for every writer of its table, of which one may have vanished, while all others wait for it.
    """
    names = _CREATED_NAME_PATTERN.findall(ddl)
    if not has_relations(connection, *names):
        lock_table_creation(connection)
        connection.execute(ddl)  # no literal, but ours


def has_relations(connection: "Connection", *names: str) -> bool:
    """Return whether all these tables and indexes exist."""
    query = "SELECT bool_and(to_regclass(name) IS NOT NULL) FROM unnest(%s::text[]) AS name"
    row = connection.execute(query, (list(names),)).fetchone()
    return row is not None and bool(row[0])


def lock_table_creation(connection: "Connection") -> None:
    """Let no other process create tables before this transaction ends."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (crc32(b"cleats tables"),))

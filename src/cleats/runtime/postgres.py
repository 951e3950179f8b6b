"""A PostgreSQL that several machines share: connections, tables made once, errors that can be told.

`psycopg` is an extra and imported when a database is configured. What leaves here as an error
never has the address in it: that holds a password more often than not.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from zlib import crc32

from cleats.contract.errors import ErrorCode, ToolError

if TYPE_CHECKING:
    import psycopg

    Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

OURS: Final[Mapping[str, str | int]] = {
    "connect_timeout": 5,
    "application_name": "cleats",
    # A machine that vanished is noticed in half a minute; the system waits for two hours.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""How we connect, in seconds, unless the address says otherwise."""


class UnreachableError(OSError):
    """The database does not answer, or went away in the middle; trying again may help."""


@contextmanager
def connected(url: str, *, autocommit: bool = False) -> "Iterator[Connection]":
    """A connection whose work is committed when the block ends well, and undone when not.

    Raises:
        UnreachableError: it does not answer, or went away.
        ToolError: CAPABILITY_MISSING, `psycopg` is not installed.
    """
    connection = connect(url, autocommit=autocommit)
    try:
        with connection:
            yield connection
    except losses() as error:
        raise UnreachableError(f"the database went away ({type(error).__name__})") from None


def losses() -> "tuple[type[psycopg.Error], ...]":
    """What the library raises when the database is gone; it has to be installed."""
    import psycopg  # noqa: PLC0415 - an extra

    # Who was put out for stalling hears so by a name of its own, or only that nobody is there.
    put_out = psycopg.errors.IdleInTransactionSessionTimeout
    return (psycopg.OperationalError, psycopg.InterfaceError, put_out)


def connect(url: str, *, autocommit: bool = False) -> "Connection":
    """A connection that the caller closes; the errors of `connected`."""
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError:
        raise ToolError(
            ErrorCode.CAPABILITY_MISSING,
            "A shared database needs the package psycopg.",
            hint="Install cleats[fleet].",
        ) from None
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
        ours = {name: value for name, value in OURS.items() if name not in given}
        return psycopg.connect(psycopg.conninfo.make_conninfo(url, **ours), autocommit=autocommit)
    except psycopg.OperationalError as error:
        raise UnreachableError(f"the database does not answer ({type(error).__name__})") from None


async def answers(url: str) -> None:
    """Return when the database takes questions; the errors of `connected`."""
    from anyio import to_thread  # noqa: PLC0415 - a server starts

    def ask() -> None:
        with connected(url, autocommit=True) as connection:
            connection.execute("SELECT 1")

    await to_thread.run_sync(ask, abandon_on_cancel=True)


def make_tables(connection: "Connection", ddl: str) -> None:
    """Run statements that make what is missing, one process at a time.

    `IF NOT EXISTS` alone does not do: two first starts at once collide in the catalogue.
    """
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (crc32(b"cleats tables"),))
    connection.execute(ddl)  # no literal, but ours

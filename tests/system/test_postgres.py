"""Tests of the database of a fleet, as the toolsets that need it reach it."""

import anyio
import psycopg
import pytest

from cleats import app
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings
from cleats.system.postgres import UnreachableError, create_tables, open_connection
from tests.support.postgres import create_database, make_unreachable


@pytest.mark.parametrize("name", ["code", "launch"])
def test_a_toolset_with_a_database_is_ready_while_that_answers(name: str) -> None:
    url = create_database()
    [embedded] = app.load_toolsets(Settings(), [name], ServerStatus())
    [shared_toolset] = app.load_toolsets(Settings(database_url=url), [name], ServerStatus())
    assert embedded.ready is None
    assert shared_toolset.ready is not None

    anyio.run(shared_toolset.ready)
    with make_unreachable(url), pytest.raises(UnreachableError):
        anyio.run(shared_toolset.ready)
    anyio.run(shared_toolset.ready)


@pytest.mark.parametrize("error_type", [psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout])
def test_who_is_put_out_in_the_middle_has_lost_the_database_however_it_is_told(
    error_type: type[psycopg.Error],
) -> None:
    url = create_database()

    def raise_in_connection() -> None:
        with open_connection(url):
            raise error_type("terminating connection")

    with pytest.raises(UnreachableError, match=f"was lost .{error_type.__name__}"):
        raise_in_connection()


@pytest.mark.parametrize(
    ("more", "application_name"), [("", "cleats"), ("&application_name=night%20shift", "night shift")]
)
def test_the_address_may_say_how_to_connect(more: str, application_name: str) -> None:
    with open_connection(create_database() + more) as connection:
        row = connection.execute("SELECT current_setting('application_name')").fetchone()

    assert row == (application_name,)


def test_a_start_does_not_wait_for_a_writer_when_its_tables_exist() -> None:
    url = create_database()
    ddl = "CREATE TABLE IF NOT EXISTS t (n INT); CREATE INDEX IF NOT EXISTS t_by_n ON t (n)"
    with open_connection(url) as connection:
        create_tables(connection, ddl)

    with open_connection(url) as writer:
        writer.execute("INSERT INTO t VALUES (1)")
        with open_connection(url) as starting:
            starting.execute("SET lock_timeout = '100ms'")
            create_tables(starting, ddl)


def test_a_start_creates_the_tables_and_indexes_that_are_missing() -> None:
    url = create_database()
    ddl = "CREATE TABLE IF NOT EXISTS t (n INT)"
    with open_connection(url) as connection:
        create_tables(connection, ddl)
        create_tables(connection, f"{ddl}; CREATE INDEX IF NOT EXISTS t_by_n ON t (n)")
        row = connection.execute("SELECT to_regclass('t_by_n') IS NOT NULL").fetchone()

    assert row == (True,)

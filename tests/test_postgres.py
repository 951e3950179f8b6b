"""The database of a fleet, as the toolsets that need it reach it."""

import anyio
import psycopg
import pytest

from cleats import app
from cleats.runtime.postgres import UnreachableError, connected
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings
from tests.postgres import away, database


@pytest.mark.parametrize("name", ["code", "launch"])
def test_a_toolset_with_a_database_is_ready_while_that_answers(name: str) -> None:
    url = database()
    [embedded] = app.toolsets(Settings(), [name], Vitals())
    [shared] = app.toolsets(Settings(database_url=url), [name], Vitals())
    assert embedded.ready is None
    assert shared.ready is not None

    anyio.run(shared.ready)
    with away(url), pytest.raises(UnreachableError):
        anyio.run(shared.ready)
    anyio.run(shared.ready)


@pytest.mark.parametrize(
    "told", [psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout]
)
def test_who_is_put_out_in_the_middle_has_lost_the_database_however_it_is_told(
    told: type[psycopg.Error],
) -> None:
    url = database()

    def work() -> None:
        with connected(url):
            raise told("terminating connection")

    with pytest.raises(UnreachableError, match=f"went away .{told.__name__}"):
        work()


@pytest.mark.parametrize(
    ("more", "named"), [("", "cleats"), ("&application_name=night%20shift", "night shift")]
)
def test_the_address_may_say_how_to_connect(more: str, named: str) -> None:
    with connected(database() + more) as connection:
        row = connection.execute("SELECT current_setting('application_name')").fetchone()

    assert row == (named,)

"""The database of a fleet, as the toolsets that need it reach it."""

import anyio
import pytest

from cleats import app
from cleats.runtime.postgres import UnreachableError
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

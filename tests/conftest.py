"""Fixtures for all tests."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from cleats.runtime.background_writer import PROCESS_JOURNAL
from tests.support import postgres
from tests.support.held_locks import close_test_resources

collect_ignore = [] if find_spec("playwright") else ["browser"]
"""`make browser` installs what the tests in a browser need."""

if TYPE_CHECKING:
    from tests.support.shell import Shell

# The time to generate an example depends on the machine, not on the property, so there is no
# deadline. The examples are the same in every run, so that a failure is caused by the change at
# hand; `pytest --hypothesis-profile=explore` searches for new ones.
settings.register_profile("laws", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("explore", settings.get_profile("laws"), derandomize=False, max_examples=1000)
settings.load_profile("laws")

# Hypothesis also draws constants from the loaded modules of this project. Which modules are loaded
# depends on the tests that a worker ran before, so this source is disabled.
providers._get_local_constants = Constants


def pytest_sessionfinish() -> None:
    postgres.stop_server()
    discard_log_lines()


def discard_log_lines() -> None:
    """Write the last log lines of calls in this process to nowhere, so that a report ends with its summary."""
    stderr = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            PROCESS_JOURNAL.close()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


@pytest.fixture(autouse=True)
def _close_test_resources() -> Iterator[None]:
    yield
    close_test_resources()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def shell(tmp_path: Path) -> "Shell":
    from tests.support.shell import Shell  # noqa: PLC0415 - its settings are made from the profile above

    return Shell(tmp_path)

"""Fixtures that every test may use."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from tests import postgres
from tests.held import let_go

if TYPE_CHECKING:
    from tests.shell import Shell

# How long an example takes to make says more about the machine than about the law. The examples
# are the same in every run, so that a failure belongs to the change at hand; new ones are looked
# for with `pytest --hypothesis-profile=explore`.
settings.register_profile(
    "laws", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile(
    "explore", settings.get_profile("laws"), derandomize=False, max_examples=1000
)
settings.load_profile("laws")

# Hypothesis also draws numbers and texts that it reads in those of our modules that are loaded, and
# which are depends on the tests that a worker had before.
providers._get_local_constants = Constants


def pytest_sessionfinish() -> None:
    postgres.stop()


@pytest.fixture(autouse=True)
def _what_a_test_opened_is_closed() -> Iterator[None]:
    yield
    let_go()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def shell(tmp_path: Path) -> "Shell":
    from tests.shell import Shell  # noqa: PLC0415 - its settings are made from the profile above

    return Shell(tmp_path)

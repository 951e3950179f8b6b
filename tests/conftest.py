"""Fixtures that every test may use."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

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


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def shell(tmp_path: Path) -> "Shell":
    from tests.shell import Shell  # noqa: PLC0415 - its settings are made from the profile above

    return Shell(tmp_path)

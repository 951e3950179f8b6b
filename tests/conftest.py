"""Fixtures that every test may use."""

from pathlib import Path

import pytest

from tests.shell import Shell


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)

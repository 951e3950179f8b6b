"""Waiting for something to become true, with a limit."""

import time
from collections.abc import Callable

LIMIT = 90.0
"""Seconds before a wait is given up: far beyond what it takes, also on a busy machine."""


def until(condition: Callable[[], object], *, limit: float = LIMIT) -> None:
    """Poll until the condition holds; fail when it never does."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)

"""A wait with a timeout for a condition to become true."""

import time
from collections.abc import Callable

WAIT_TIMEOUT_SECONDS = 90.0
"""Seconds before a wait fails: far more than any wait takes, even on a busy machine."""


def wait_until(condition: Callable[[], object], *, limit: float = WAIT_TIMEOUT_SECONDS) -> None:
    """Poll until the condition holds; fail if it does not in time."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)

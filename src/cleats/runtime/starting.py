"""Signals to a server that does not serve yet, or no more. Light, because it comes first."""

import signal
from collections.abc import Callable


def on_signals(leave: Callable[[], None]) -> None:
    """Leave on SIGINT and SIGTERM, for as long as nobody else listens for them."""

    def heard(_number: int, _frame: object) -> None:
        leave()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, heard)

"""Signal handling while a server starts or stops. Light, because it is imported first."""

import signal
from collections.abc import Callable


def handle_signals(on_signal: Callable[[], None]) -> None:
    """Call `on_signal` on SIGINT and SIGTERM, until other handlers replace it."""

    def handle_signal(_number: int, _frame: object) -> None:
        on_signal()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle_signal)

"""Signal handling while a server starts. Light, because it is imported before everything else."""

import os
import signal
import sys


def end_on_signals() -> None:
    """End this process with a message and exit code 0 on SIGINT and SIGTERM, until other handlers replace it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end_process)


def _end_process(number: int, _frame: object) -> None:
    # Logging may not be configured yet, and another thread may hold a lock of it.
    os.write(2, f"serve.end reason={signal.Signals(number).name}, before the server was ready\n".encode())
    sys.exit(0)  # noqa: TID251 - a server that nobody uses yet

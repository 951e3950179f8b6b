"""How a server is asked to stop: SIGINT and SIGTERM become one event."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)

ECHO = 0.5
"""Seconds in which a second signal is the first one again: what starts a server for somebody often
passes on what the terminal has sent to both."""


class Shutdown:
    """Set once, by a signal or by hand. The first signal asks; the second interrupts."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.reason = ""

    def ask(self, reason: str) -> None:
        """Take no more work, finish what is in flight, and leave."""
        if not self.asked.is_set():
            self.reason = reason
            self.asked.set()


@contextmanager
def on_signals() -> Iterator[Shutdown]:
    """Listen for the signals while the block runs; then whoever listened before does so again.

    A moment after the first one the default handlers are back, so that an impatient second Ctrl-C
    ends a server which does not.
    """
    shutdown = Shutdown()
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    echoing: list[asyncio.TimerHandle] = []

    def release() -> None:
        for each in SIGNALS:
            loop.remove_signal_handler(each)

    def ask(number: signal.Signals) -> None:
        if not echoing:
            echoing.append(loop.call_later(ECHO, release))
        shutdown.ask(number.name)

    try:
        for number in SIGNALS:
            loop.add_signal_handler(number, ask, number)
    except NotImplementedError:  # Windows: the loop has no signal support, Ctrl-C still interrupts
        pass
    try:
        yield shutdown
    finally:
        for timer in echoing:
            timer.cancel()
        for number, handler in before.items():
            with _ignored():
                loop.remove_signal_handler(number)
                signal.signal(number, handler or signal.SIG_DFL)


@contextmanager
def _ignored() -> Iterator[None]:
    try:
        yield
    except (NotImplementedError, RuntimeError):
        return

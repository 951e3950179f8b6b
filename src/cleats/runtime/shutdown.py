"""Shutdown requests: SIGINT and SIGTERM become one event."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

SHUTDOWN_SIGNALS = (signal.SIGINT, signal.SIGTERM)

SIGNAL_ECHO_SECONDS = 0.5
"""Time in which a second signal counts as the first one: a wrapper process often forwards the
signal that the terminal has sent to both."""


class Shutdown:
    """A shutdown request, set once. The first signal requests, the second one interrupts."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.reason = ""

    def request(self, reason: str) -> None:
        """Request that the server accepts no more work, finishes open calls, and exits."""
        if not self.requested.is_set():
            self.reason = reason
            self.requested.set()


@contextmanager
def watch_signals() -> Iterator[Shutdown]:
    """Watch for the signals while the block runs; then restore the previous handlers.

    Shortly after the first signal the default handlers are restored, so that a second Ctrl-C ends a
    server that does not stop.
    """
    shutdown = Shutdown()
    loop = asyncio.get_running_loop()
    previous_handlers = {number: signal.getsignal(number) for number in SHUTDOWN_SIGNALS}
    release_timers: list[asyncio.TimerHandle] = []

    def remove_handlers() -> None:
        for number in SHUTDOWN_SIGNALS:
            loop.remove_signal_handler(number)

    def request_shutdown(number: signal.Signals) -> None:
        if not release_timers:
            release_timers.append(loop.call_later(SIGNAL_ECHO_SECONDS, remove_handlers))
        shutdown.request(number.name)

    try:
        for number in SHUTDOWN_SIGNALS:
            loop.add_signal_handler(number, request_shutdown, number)
    except NotImplementedError:  # Windows: the loop has no signal support, Ctrl-C still interrupts
        pass
    try:
        yield shutdown
    finally:
        for timer in release_timers:
            timer.cancel()
        for number, handler in previous_handlers.items():
            with _suppress_unsupported():
                loop.remove_signal_handler(number)
                signal.signal(number, handler or signal.SIG_DFL)


@contextmanager
def _suppress_unsupported() -> Iterator[None]:
    try:
        yield
    except (NotImplementedError, RuntimeError):
        return

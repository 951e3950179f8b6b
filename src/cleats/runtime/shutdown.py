"""Shutdown: SIGINT and SIGTERM become one event, and a process ends even if a thread does not."""

import asyncio
import atexit
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

log = logging.getLogger(__name__)

SHUTDOWN_SIGNALS = (signal.SIGINT, signal.SIGTERM)

SIGNAL_ECHO_SECONDS = 0.5
"""Time in which a second signal counts as the first one: a wrapper process often forwards the
signal that the terminal has sent to both."""

THREAD_EXIT_SECONDS = 1.0
"""Time that the threads of ended calls get to notice that they have ended, when the process exits."""


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

    with suppress(NotImplementedError):  # Windows: the loop has no signal support, Ctrl-C still interrupts
        for number in SHUTDOWN_SIGNALS:
            loop.add_signal_handler(number, request_shutdown, number)
    try:
        yield shutdown
    finally:
        for timer in release_timers:
            timer.cancel()
        for number, handler in previous_handlers.items():
            with suppress(NotImplementedError, RuntimeError):
                loop.remove_signal_handler(number)
                signal.signal(number, handler or signal.SIG_DFL)


def exit_despite_threads(exit_code: int) -> None:
    """Exit now if a thread does not end; Python would wait for it without limit.

    A call that has ended leaves its thread behind, which stops at its next check. One that waits for
    a dead file system, or computes in a library, has none.
    """
    deadline = time.monotonic() + THREAD_EXIT_SECONDS
    threads = [thread for thread in threading.enumerate() if not thread.daemon]
    threads.remove(threading.current_thread())
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if not any(thread.is_alive() for thread in threads):
        return
    log.warning("exit.threads count=%d: exiting without waiting for them", sum(thread.is_alive() for thread in threads))
    atexit._run_exitfuncs()  # noqa: SLF001 - the only way to run them before `os._exit`
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(exit_code)

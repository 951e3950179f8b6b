"""Lines that leave without anyone waiting for them: the log on stderr and the span file.

A client that never drains our stderr must not stop the server, and neither must a slow disk. So
lines are collected and handed, a batch at a time, to one thread that writes them. When that
thread cannot keep up, whole batches are dropped and counted.
"""

import asyncio
import atexit
import logging
import os
import queue
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

BATCH = 0.05
"""Seconds that a line may wait for company; waking a thread costs as much as ten lines."""

BACKLOG = 256
"""Batches kept for a reader that has stopped reading."""

PARTING = 0.5
"""Seconds given to the last lines, when the process ends, by a stderr that takes no more."""

LAST_WAIT = 5.0
"""Seconds given to them by one that does: a busy machine, or disk, may need a few."""

Outlet: TypeAlias = Callable[[bytes], None]


class Journal:
    """One thread, any number of outlets. Every method is cheap and none raises."""

    def __init__(self) -> None:
        self.dropped = 0
        self._lines: list[tuple[Outlet, bytes]] = []
        self._batches: queue.SimpleQueue[list[tuple[Outlet, bytes]] | threading.Event]
        self._batches = queue.SimpleQueue()
        self._scheduled = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def line(self, outlet: Outlet, line: bytes) -> None:
        """Take one line, newline included."""
        with self._lock:
            self._lines.append((outlet, line))
            if self._scheduled:
                return
            self._scheduled = True
            self._start()
        try:
            asyncio.get_running_loop().call_later(BATCH, self.flush)
        except RuntimeError:  # no loop in this thread: nobody to batch for
            self.flush()

    def flush(self) -> None:
        """Hand over what has gathered."""
        with self._lock:
            lines, self._lines = self._lines, []
            self._scheduled = False
        if self._batches.qsize() >= BACKLOG:
            self.dropped += len(lines)
        elif lines:
            self._batches.put(lines)

    def close(self) -> None:
        """Write the last lines, but do not wait long for a reader that is gone."""
        if self._thread is None and not self._lines and self._batches.empty():
            return
        self.flush()
        written = threading.Event()
        self._batches.put(written)
        if self._thread is None:
            self._work(until=written)
        end = time.monotonic() + LAST_WAIT
        while not written.wait(PARTING) and takes_more() and time.monotonic() < end:
            pass

    def _start(self) -> None:
        """Start the thread; a process that is about to end has none any more, and `close` writes.

        Before the first lines are due: Python starts no thread for a process that ends meanwhile.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="journal", daemon=True)
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _work(self, until: threading.Event | None = None) -> None:
        while until is None or not until.is_set():
            batch = self._batches.get()
            if isinstance(batch, threading.Event):
                batch.set()
                continue
            gathered: dict[Outlet, list[bytes]] = {}
            for outlet, line in batch:
                gathered.setdefault(outlet, []).append(line)
            for outlet, lines in gathered.items():
                with suppress(OSError, ValueError):
                    outlet(b"".join(lines))


def stderr(batch: bytes) -> None:
    """The outlet for log lines: file descriptor 2, whatever has been done to `sys.stderr`."""
    view = memoryview(batch)
    while view:
        view = view[os.write(2, view) :]


def takes_more() -> bool:
    """Whether stderr is read, or need not be: the pipe of a reader that is gone is full."""
    try:
        return bool(select.select((), (2,), (), 0)[1])
    except (OSError, ValueError):  # it is closed; or Windows, which asks sockets only
        return False


JOURNAL = Journal()
"""The process has one stderr, so it has one journal."""

atexit.register(JOURNAL.close)


class StderrHandler(logging.Handler):
    """Standard logging, through the journal."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            JOURNAL.line(stderr, self.format(record).encode(errors="replace") + b"\n")
        except Exception:  # noqa: BLE001 - logging must never fail a call
            self.handleError(record)


def log_to_stderr(level: str) -> None:
    """Send the process's log, from a level upwards, to stderr through the journal."""
    logging.basicConfig(
        handlers=[StderrHandler()],
        level=level.upper(),
        format="%(asctime)s %(levelname).1s %(name)s %(message)s",
    )

"""Lines written without anyone waiting for them: the log on stderr and the span file.

A client that never drains our stderr must not stop the server, and neither must a slow disk. So
lines are collected and passed, a batch at a time, to one thread that writes them. When that thread
cannot keep up, whole batches are dropped and counted.
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

BATCH_DELAY_SECONDS = 0.05
"""The time that a line may wait for others; waking a thread costs as much as ten lines."""

MAX_QUEUED_BATCHES = 256
"""The number of batches kept for a reader that has stopped reading."""

STALLED_CLOSE_SECONDS = 0.5
"""Time allowed for the last lines, when the process ends, if stderr accepts no more."""

MAX_CLOSE_SECONDS = 5.0
"""Time allowed for the last lines if stderr accepts them: a busy machine or disk may need a few seconds."""

LineSink: TypeAlias = Callable[[bytes], None]


class Journal:
    """A thread that writes lines to any number of sinks. Every method is cheap and none raises."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget every line and the thread; a forked process has neither."""
        self.dropped = 0
        self._lines: list[tuple[LineSink, bytes]] = []
        self._batches: queue.SimpleQueue[list[tuple[LineSink, bytes]] | threading.Event]
        self._batches = queue.SimpleQueue()
        self._scheduled = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add_line(self, sink: LineSink, line: bytes) -> None:
        """Queue one line, including its newline."""
        with self._lock:
            self._lines.append((sink, line))
            if self._scheduled:
                return
            self._scheduled = True
            self._start_thread()
        try:
            asyncio.get_running_loop().call_later(BATCH_DELAY_SECONDS, self.flush)
        except RuntimeError:  # no loop in this thread: nobody to batch for
            self.flush()

    def flush(self) -> None:
        """Pass the collected lines to the writing thread."""
        with self._lock:
            lines, self._lines = self._lines, []
            self._scheduled = False
        if self._batches.qsize() >= MAX_QUEUED_BATCHES:
            self.dropped += len(lines)
        elif lines:
            self._batches.put(lines)

    def close(self) -> None:
        """Write the last lines, but do not wait long for a reader that is gone."""
        if self._thread is None and not self._lines and self._batches.empty():
            return
        self.flush()
        all_written = threading.Event()
        self._batches.put(all_written)
        if self._thread is None:
            self._write_batches(until=all_written)
        deadline = time.monotonic() + MAX_CLOSE_SECONDS
        while not all_written.wait(STALLED_CLOSE_SECONDS) and is_stderr_writable() and time.monotonic() < deadline:
            pass

    def _start_thread(self) -> None:
        """Start the thread, unless the process is about to end; then `close` writes the lines.

        Called before the first lines are due, because Python starts no thread while a process ends.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._write_batches, name="journal", daemon=True)
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _write_batches(self, until: threading.Event | None = None) -> None:
        while until is None or not until.is_set():
            batch = self._batches.get()
            if isinstance(batch, threading.Event):
                batch.set()
                continue
            lines_by_sink: dict[LineSink, list[bytes]] = {}
            for sink, line in batch:
                lines_by_sink.setdefault(sink, []).append(line)
            for sink, lines in lines_by_sink.items():
                with suppress(OSError, ValueError):
                    sink(b"".join(lines))


def write_to_stderr(batch: bytes) -> None:
    """Write a batch to file descriptor 2, regardless of what happened to `sys.stderr`."""
    remaining = memoryview(batch)
    while remaining:
        remaining = remaining[os.write(2, remaining) :]


def is_stderr_writable() -> bool:
    """Return True if stderr accepts more; the pipe of a reader that is gone is full."""
    try:
        return bool(select.select((), (2,), (), 0)[1])
    except (OSError, ValueError):  # it is closed; or Windows, which asks sockets only
        return False


PROCESS_JOURNAL = Journal()
"""The journal of the process, which has one stderr and therefore one journal."""

atexit.register(PROCESS_JOURNAL.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS_JOURNAL.reset)


class StderrHandler(logging.Handler):
    """A handler of standard logging that writes through the journal."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            PROCESS_JOURNAL.add_line(write_to_stderr, self.format(record).encode(errors="replace") + b"\n")
        except Exception:  # noqa: BLE001 - logging must never fail a call
            self.handleError(record)


def log_to_stderr(level: str) -> None:
    """Send the log of the process, from this level upwards, to stderr through the journal."""
    logging.basicConfig(
        handlers=[StderrHandler()], level=level.upper(), format="%(asctime)s %(levelname).1s %(name)s %(message)s"
    )

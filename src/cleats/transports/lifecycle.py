"""Readiness announcements: a file for scripts to wait for, and a line on stderr."""

import asyncio
import errno
import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cleats.runtime.background_writer import PROCESS_JOURNAL, write_to_stderr
from cleats.runtime.telemetry import escape_log_word
from cleats.system.atomic_files import replace_file
from cleats.transports.stdio import Wire

log = logging.getLogger(__name__)


@contextmanager
def announce_ready(path: str, facts: Mapping[str, str]) -> Iterator[None]:
    """Announce these facts, among them a `timestamp`, while the block runs: the server is ready.

    The file holds `<pid> <timestamp>`. If it cannot be written, the server logs a warning and serves all the same: the
    file is only a convenience.
    """
    line = " ".join(f"{name}={escape_log_word(value)}" for name, value in facts.items())
    file = Path(path)
    content = f"{os.getpid()} {facts['timestamp']}\n"
    written = _write_ready_file(file, content)
    _print_line(f"mcp:ready mode=stdio {line}")
    try:
        yield
    finally:
        with suppress(OSError):
            if written and file.read_text(encoding="utf-8") == content:  # another server may have written its own
                file.unlink()
        _print_line(f"mcp:shutdown mode=stdio {line}")


def _write_ready_file(file: Path, content: str) -> bool:
    try:
        with suppress(FileNotFoundError):
            mode = file.lstat().st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                return False  # such as /dev/null, which must not be replaced
        file.parent.mkdir(parents=True, exist_ok=True)
        # Nobody reads a partial file, and a link that somebody left in a shared folder is replaced.
        replace_file(file, content.encode(), mode=0o644, synced=False)
    except OSError as error:
        log.warning("ready.file path=%s not written: %s", file, error.strerror)
        return False
    return True


def _print_line(line: str) -> None:
    PROCESS_JOURNAL.add_line(write_to_stderr, line.encode(errors="replace") + b"\n")
    PROCESS_JOURNAL.flush()


PEER_CHECK_SECONDS = 0.05
"""The interval between two checks whether a peer whose input ended still listens."""

CLEANUP_TIMEOUT_SECONDS = 5.0
"""The time that cancelled work may take to clean up; work that ignores its cancellation is abandoned."""


async def finish_work(
    wire: Wire, list_tasks: Callable[[], set[asyncio.Task[Any]]], stop: Callable[[], None], *, timeout_seconds: float
) -> None:
    """Wait for the work while the peer listens; stop the rest when the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    while (tasks := list_tasks()) and not wire.is_broken and loop.time() < deadline:
        await asyncio.wait(tasks, timeout=PEER_CHECK_SECONDS)
    if tasks:
        log.warning("drain.cut requests=%d after=%gs", len(tasks), timeout_seconds)
        stop()
        await asyncio.wait(tasks, timeout=CLEANUP_TIMEOUT_SECONDS)


async def flush_wire(wire: Wire, *, timeout_seconds: float | None) -> None:
    """Wait until the peer has taken every answer, at most `timeout_seconds`."""
    try:
        async with asyncio.timeout(timeout_seconds):
            await wire.wait_flushed()
    except TimeoutError:
        log.warning("drain.cut reason=unread after=%gs", timeout_seconds)

"""Definitions shared by all commands, whether run by `process` or by `blocking`.

Kept light, because an index builder that waits for git needs no event loop.
"""

from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple, Self

GRACE_SECONDS = 2.0
"""Time between asking a tree to stop and killing it."""

MAX_OUTPUT_BYTES = 8 * 1024 * 1024
"""The part of each stream that is kept, from its end, because the end explains a failure."""

DRAIN_TIMEOUT_SECONDS = 5.0
"""Time to read what a terminated tree left in its pipes. They are at their end already, unless a
process survived the kill and holds them open."""


class CompletedCommand(NamedTuple):
    """The result of a command. A negative exit code is the signal that ended it."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    """True if a stream exceeded the limit and has lost its beginning."""


class StartError(Exception):
    """Raised when a command cannot be started: missing, not executable, or no such folder."""

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(f"cannot start {command!r}: {reason}")
        self.command = command
        self.reason = reason

    @classmethod
    def from_os_error(cls, command: str, error: OSError) -> Self:
        reason = error.strerror or str(error)
        return cls(command, f"{reason}: {error.filename}" if error.filename else reason)


@cache
def find_supervisor() -> str:
    """Return the path of the supervisor, compiled if possible: that saves 3 ms per command."""
    # Imported only to have it compiled, and only here, because it cannot run on Windows.
    from cleats.system.processes import supervisor  # noqa: PLC0415

    source = Path(supervisor.__file__)
    compiled = Path(cache_from_source(source))
    # If Python may not write compiled files, an existing one may be outdated.
    if compiled.exists() and compiled.stat().st_mtime >= source.stat().st_mtime:
        return str(compiled)
    return str(source)

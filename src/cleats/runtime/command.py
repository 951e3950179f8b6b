"""What all commands have in common, whether `process` waits for them or `blocking`.

Kept light, because a builder that waits for git needs no event loop.
"""

from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple, Self

GRACE = 2.0
"""Seconds between asking a tree to stop and killing it."""

OUTPUT_LIMIT = 8 * 1024 * 1024
"""Bytes kept of each stream. The end is what explains a failure, so the end is kept."""

DRAIN = 5.0
"""Seconds to read what an ended tree left in its pipes. Their end has come already, unless
somebody survived the kill and holds them open."""


class Completed(NamedTuple):
    """What a command left behind. An exit code below zero is the signal that ended it."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    """Whether a stream was longer than the limit, and so has lost its beginning."""


class StartError(Exception):
    """Raised when a command cannot be started: missing, not executable, or no such folder."""

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(f"cannot start {command!r}: {reason}")
        self.command = command
        self.reason = reason

    @classmethod
    def because(cls, command: str, error: OSError) -> Self:
        reason = error.strerror or str(error)
        return cls(command, f"{reason}: {error.filename}" if error.filename else reason)


@cache
def find_supervisor() -> str:
    """Find the supervisor, compiled if possible: that saves every command 3 ms."""
    # Imported only to have it compiled, and only here, because Windows could not.
    from cleats.runtime import supervisor  # noqa: PLC0415

    source = Path(supervisor.__file__)
    compiled = Path(cache_from_source(source))
    # Python may not be allowed to write compiled files; then this one may be an old one.
    if compiled.exists() and compiled.stat().st_mtime >= source.stat().st_mtime:
        return str(compiled)
    return str(source)

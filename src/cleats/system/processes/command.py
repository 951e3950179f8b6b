"""The parts shared by all commands, whether run by `process` or by `blocking`.

Not on Windows, which has no supervisor, a command is started by one (`supervisor.py`): a child
process that holds the other end of a socket, the lifeline. The command goes over it as a message,
together with the command's ends of its pipes.

Kept light, because an index builder that waits for git needs no event loop.
"""

import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if sys.platform != "win32":
    # Importing `socket` creates enums of all its constants, which takes as long as a git command.
    from _socket import SCM_RIGHTS, SOL_SOCKET

if TYPE_CHECKING:
    from _socket import socket

IS_WINDOWS: Final = sys.platform == "win32"

GRACE_SECONDS = 2.0
"""Time between asking a tree to stop and killing it."""

MAX_OUTPUT_BYTES = 8 * 1024 * 1024
"""The part of each stream that is kept, from its end, because the end explains a failure."""

DRAIN_TIMEOUT_SECONDS = 5.0
"""Time to read what a terminated tree left in its pipes. They are at their end already, unless a
process survived the kill and holds them open."""


SUPERVISOR_TIMEOUT_SECONDS = 15.0
"""Time beyond the grace period for the supervisor to finish. It gives up on processes that cannot be killed after five
seconds; if it takes longer than this, it has itself been stopped, or the tree grows as fast as it is killed."""

LIFELINE_DESCRIPTOR: Final = 3
"""The number of the lifeline's descriptor in the supervisor."""


class CompletedCommand(NamedTuple):
    """The result of a command. A negative exit code is the signal that ended it."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    """True if a stream exceeded the limit and has lost its beginning."""

    @classmethod
    def from_tails(cls, exit_code: int, stdout: "OutputTail", stderr: "OutputTail") -> Self:
        truncated = stdout.truncated or stderr.truncated
        return cls(exit_code, stdout.get_bytes(), stderr.get_bytes(), truncated)


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


class OutputTail:
    """The end of a stream, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.truncated = False
        self._limit = limit
        self._kept = bytearray()

    def append(self, chunk: bytes) -> None:
        self._kept += chunk
        if (excess := len(self._kept) - self._limit) > 0:
            self.truncated = True
            del self._kept[:excess]

    def get_bytes(self) -> bytes:
        return bytes(self._kept)


class CommandPipes:
    """The pipes of a command. Without `has_stdin` it reads an empty file; stderr may be inherited."""

    def __init__(self, *, has_stdin: bool, has_stderr: bool) -> None:
        self.our_ends: dict[int, str] = {}
        """Our ends by descriptor: `stdin`, `stdout`, `stderr`."""
        self._command_ends: list[int] = []
        try:
            if has_stdin:
                read_descriptor, write_descriptor = os.pipe()
                self._command_ends.append(read_descriptor)
                self.our_ends[write_descriptor] = "stdin"
            else:
                self._command_ends.append(os.open(os.devnull, os.O_RDONLY))
            for name in ("stdout", "stderr")[: 1 + has_stderr]:
                read_descriptor, write_descriptor = os.pipe()
                self._command_ends.append(write_descriptor)
                self.our_ends[read_descriptor] = name
        except OSError:
            self.close()
            raise

    def send_header(self, lifeline: "socket", payload: bytes) -> None:
        """Announce a command to its supervisor, with its streams; the payload has to follow."""
        streams = [*self._command_ends, 2][:3]
        packed_descriptors = b"".join(stream.to_bytes(4, sys.byteorder) for stream in streams)
        lifeline.sendmsg([len(payload).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, packed_descriptors)])
        self.close_command_ends()

    def close_command_ends(self) -> None:
        while self._command_ends:
            os.close(self._command_ends.pop())

    def close(self) -> None:
        self.close_command_ends()
        for descriptor in self.our_ends:
            os.close(descriptor)
        self.our_ends.clear()


def encode_command(argv: Sequence[str], env: Mapping[str, str] | None, grace: float, cwd: Path | None) -> bytes:
    """Encode a command for its supervisor."""
    pairs = None if env is None else {os.fsencode(key): os.fsencode(value) for key, value in env.items()}
    return marshal.dumps(([os.fsencode(word) for word in argv], pairs, grace, os.fsencode(cwd or "")))


def spawn_supervisor(lifeline: int) -> int:
    """Start a supervisor at the other end of a socket; return its pid."""
    # -I and -S exclude what the environment and the site would add to Python, and a new session
    # shields it from a Ctrl-C at our terminal. Only the supervisor's end of the lifeline is
    # passed on: a copy of our end, in any child, would outlive us and prevent the end of file.
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", find_supervisor(), str(LIFELINE_DESCRIPTOR)],
        os.environ,  # noqa: TID251 - handed on, as every command gets it
        file_actions=[
            (os.POSIX_SPAWN_DUP2, lifeline, LIFELINE_DESCRIPTOR),
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
        ],
        setsid=True,
    )


def reap_supervisor(pid: int, *, waits: bool) -> int | None:
    """Return the exit code of a supervisor, or None if it still runs."""
    try:
        ended, status = os.waitpid(pid, 0 if waits else os.WNOHANG)
    except ChildProcessError:  # this process ignores its children
        return 0
    return os.waitstatus_to_exitcode(status) if ended else None


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

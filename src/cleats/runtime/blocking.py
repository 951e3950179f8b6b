"""Commands for a thread without an event loop, which waits for them: `process` for builders.

The promises are those of `process`. A build asks git again and again, and a supervisor takes five
times as long to start as git to answer; so within `attended` the commands of a thread share one,
which runs them one after the other. Nothing here loads an event loop: that alone would take a
small build as long as all that it asks.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cleats.runtime.command import OUTPUT_LIMIT, Completed, StartError

if TYPE_CHECKING:
    from cleats.runtime.attendant import Attendant, Command

__all__ = ["CommandError", "Completed", "StartError", "attended", "in_thread", "reading", "run"]

T = TypeVar("T")
R = TypeVar("R")

WINDOWS = sys.platform == "win32"

_attendant: "ContextVar[Attendant | None]" = ContextVar("attendant", default=None)


class CommandError(Exception):
    """Raised where the answer of a command ends that has failed."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


@contextmanager
def attended() -> Iterator[None]:
    """Let all commands of this thread share a supervisor, which ends with the block."""
    if WINDOWS:
        yield
        return
    from cleats.runtime.attendant import Attendant  # noqa: PLC0415 - not on Windows

    with _under(Attendant()):
        yield


@contextmanager
def _under(attendant: "Attendant") -> Iterator[None]:
    before = _attendant.set(attendant)
    try:
        yield
    finally:
        _attendant.reset(before)
        attendant.close()


async def in_thread(work: Callable[[T], R], given: T) -> R:
    """Await work that waits for commands; a cancel ends the one it waits for, and all later."""
    from anyio import to_thread  # noqa: PLC0415 - whoever awaits has it

    if WINDOWS:
        return await to_thread.run_sync(work, given, abandon_on_cancel=True)
    from cleats.runtime.attendant import Attendant  # noqa: PLC0415 - not on Windows

    attendant = Attendant()

    def main() -> R:
        with _under(attendant):
            return work(given)

    try:
        return await to_thread.run_sync(main, abandon_on_cancel=True)
    finally:
        attendant.stop()


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float | None = None,
    output_limit: int = OUTPUT_LIMIT,
) -> Completed:
    """Run a command to its end; leave no descendant behind, however this call ends.

    `env` replaces the whole environment. Without `stdin` the command reads an empty file.

    Raises:
        StartError: the command cannot be started.
        TimeoutError: it took longer than `timeout` seconds, and was ended.
    """
    if WINDOWS:
        return _looped(timeout, argv, cwd=cwd, env=env, stdin=stdin, output_limit=output_limit)
    kept = {"stdout": bytearray(), "stderr": bytearray()}
    truncated = False
    with _started(argv, cwd, env, stdin, has_stderr=True) as command:
        for name, piece in command.heard(timeout):
            kept[name] += piece
            if (excess := len(kept[name]) - output_limit) > 0:
                truncated = True
                del kept[name][:excess]
        out, err = map(bytes, kept.values())
        return Completed(command.exit_code, out, err, truncated)


@contextmanager
def reading(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None, silence: float
) -> Iterator[Iterator[bytes]]:
    """Read a long answer piece by piece; leaving the block ends the command. Its stderr is ours.

    The pieces end with `CommandError` when the command fails, and with `TimeoutError` when it says
    nothing for so many seconds.

    Raises:
        StartError: the command cannot be started.
    """
    if WINDOWS:
        done = _looped(None, argv, cwd=cwd, env=env, output_limit=1 << 30)
        yield _answer(iter([done.stdout]), done)
        return
    with _started(argv, cwd, env, None, has_stderr=False) as command:
        yield _answer((piece for _, piece in command.heard(silence, renewed=True)), command)


def _answer(pieces: Iterator[bytes], command: "Completed | Command") -> Iterator[bytes]:
    yield from pieces
    if command.exit_code:
        raise CommandError(command.exit_code)


@contextmanager
def _started(
    argv: Sequence[str],
    cwd: Path | None,
    env: Mapping[str, str] | None,
    stdin: bytes | None,
    *,
    has_stderr: bool,
) -> Iterator["Command"]:
    from cleats.runtime.attendant import Command  # noqa: PLC0415 - not on Windows

    attendant = _attendant.get()
    if attendant is None or attendant.is_busy:
        with attended(), _started(argv, cwd, env, stdin, has_stderr=has_stderr) as command:
            yield command
        return
    try:
        command = Command(attendant, argv, stdin, has_stderr=has_stderr)
    except OSError as error:
        raise StartError.because(argv[0], error) from error
    try:
        command.start(cwd, env)
        yield command
    finally:
        command.end()


def _looped(timeout: float | None, argv: Sequence[str], **how: Any) -> Completed:
    """Wait for the road of event loops: it knows how to end a tree without a supervisor."""
    import anyio  # noqa: PLC0415 - only here

    from cleats.runtime import process  # noqa: PLC0415

    async def main() -> Completed:
        with anyio.fail_after(timeout):
            return await process.run(argv, **how)

    return anyio.run(main)

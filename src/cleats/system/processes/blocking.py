"""Blocking work for threads without an event loop: the counterpart of `process` for builders.

The guarantees are those of `process`. A build runs git again and again, and a supervisor takes five times as long to
start as git takes to answer; so within `shared_supervisor` the commands of a thread share one, which runs them one
after the other. Nothing here loads an event loop: in a small build that alone would take as long as all its commands.

A call that works in a thread uses `run_in_thread`. When the call ends, its commands end too, and
the thread itself at its next command or `raise_if_stopped`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cleats.system.processes.command import (
    GRACE_SECONDS,
    IS_WINDOWS,
    MAX_OUTPUT_BYTES,
    CompletedCommand,
    OutputTail,
    StartError,
)

if TYPE_CHECKING:
    from anyio import CapacityLimiter

    from cleats.system.processes.shared_supervisor import SharedSupervisor, SupervisedCommand

__all__ = ["CommandError", "CompletedCommand", "StartError", "run_command", "run_in_thread", "shared_supervisor"]

R = TypeVar("R")

_current_supervisor: "ContextVar[SharedSupervisor | None]" = ContextVar("supervisor", default=None)
_current_work: "ContextVar[_ThreadWork | None]" = ContextVar("thread_work", default=None)


class WorkStopped(BaseException):
    """Raised in a thread whose caller has gone; no `except Exception` on the way keeps it working."""


class _ThreadWork:
    """Work in a thread, and whether its caller has gone."""

    __slots__ = ("is_stopped",)

    def __init__(self) -> None:
        self.is_stopped = False


def is_stopped() -> bool:
    """Return whether the caller of the work in this thread has gone. Cheap enough for inner loops."""
    work = _current_work.get()
    return work is not None and work.is_stopped


def raise_if_stopped() -> None:
    """Let the work in this thread end here if its caller has gone.

    Raises:
        WorkStopped: nobody waits for the result any more.
    """
    if is_stopped():
        raise WorkStopped


class CommandError(Exception):
    """Raised at the end of the output of a command that has failed."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


def shared_supervisor() -> AbstractContextManager[None]:
    """Let all commands of this thread share a supervisor, which ends with the block."""
    return _use_supervisor(_create_supervisor())


def _create_supervisor(grace: float = GRACE_SECONDS) -> "SharedSupervisor | None":
    if IS_WINDOWS:
        return None
    from cleats.system.processes.shared_supervisor import SharedSupervisor  # noqa: PLC0415 - not on Windows

    return SharedSupervisor(grace)


@contextmanager
def _use_supervisor(supervisor: "SharedSupervisor | None") -> Iterator[None]:
    token = _current_supervisor.set(supervisor)
    try:
        yield
    finally:
        _current_supervisor.reset(token)
        if supervisor is not None:
            supervisor.close()


async def run_in_thread(
    work: Callable[..., R],
    *arguments: Any,
    grace: float = GRACE_SECONDS,
    limiter: "CapacityLimiter | None" = None,
) -> R:
    """Run blocking work in a thread. Cancelling it terminates its commands, and the work soon after.

    The cancelled caller goes on at once; a command that ignores SIGTERM has `grace` more seconds.
    With a limiter, the work waits for its turn; a cancelled one gives its turn back when the thread has ended.
    """
    from anyio import to_thread  # noqa: PLC0415 - an async caller has loaded it already

    thread_work, supervisor = _ThreadWork(), _create_supervisor(grace)

    def run_work() -> R:
        _current_work.set(thread_work)  # the context is a copy for this thread
        with _use_supervisor(supervisor):
            return work(*arguments)

    try:
        return await to_thread.run_sync(run_work, abandon_on_cancel=True, limiter=limiter)
    finally:
        thread_work.is_stopped = True
        if supervisor is not None:
            supervisor.stop()


def run_command(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float | None = None,
    output_limit: int = MAX_OUTPUT_BYTES,
) -> CompletedCommand:
    """Run a command to its end; leave no descendant behind, however this call ends.

    `env` replaces the whole environment. Without `stdin` the command reads an empty file.

    Raises:
        StartError: The command cannot be started.
        TimeoutError: It took longer than `timeout` seconds, and was terminated.
    """
    if IS_WINDOWS:
        return _run_on_event_loop(timeout, argv, cwd=cwd, env=env, stdin=stdin, output_limit=output_limit)
    tails = {"stdout": OutputTail(output_limit), "stderr": OutputTail(output_limit)}
    with _start_command(argv, cwd, env, stdin, has_stderr=True) as command:
        for name, piece in command.read_output(timeout):
            tails[name].append(piece)
        return CompletedCommand.from_tails(command.exit_code, **tails)


@contextmanager
def stream_output(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None, silence_timeout: float
) -> Iterator[Iterator[bytes]]:
    """Stream a long output piece by piece; leaving the block terminates the command.

    Its stderr is inherited. The pieces end with `CommandError` if the command fails, and with
    `TimeoutError` if it writes nothing for `silence_timeout` seconds.

    Raises:
        StartError: The command cannot be started.
    """
    if IS_WINDOWS:
        completed = _run_on_event_loop(None, argv, cwd=cwd, env=env, output_limit=1 << 30)
        yield _check_exit_code(iter([completed.stdout]), completed)
        return
    with _start_command(argv, cwd, env, None, has_stderr=False) as command:
        yield _check_exit_code(
            (piece for _, piece in command.read_output(silence_timeout, renew_timeout=True)), command
        )


def _check_exit_code(pieces: Iterator[bytes], command: "CompletedCommand | SupervisedCommand") -> Iterator[bytes]:
    yield from pieces
    if command.exit_code:
        raise CommandError(command.exit_code)


@contextmanager
def _start_command(
    argv: Sequence[str],
    cwd: Path | None,
    env: Mapping[str, str] | None,
    stdin: bytes | None,
    *,
    has_stderr: bool,
) -> Iterator["SupervisedCommand"]:
    from cleats.system.processes.shared_supervisor import SupervisedCommand  # noqa: PLC0415 - not on Windows

    raise_if_stopped()
    supervisor = _current_supervisor.get()
    if supervisor is None or supervisor.is_busy:
        nested = shared_supervisor() if supervisor is None else _use_supervisor(supervisor.create_nested())
        with nested, _start_command(argv, cwd, env, stdin, has_stderr=has_stderr) as command:
            yield command
        return
    try:
        command = SupervisedCommand(supervisor, argv, stdin, has_stderr=has_stderr)
    except OSError as error:
        raise StartError.from_os_error(argv[0], error) from error
    try:
        command.start(cwd, env)
        yield command
    except Exception:
        raise_if_stopped()  # the command has failed because it was terminated
        raise
    finally:
        command.end()
    raise_if_stopped()


def _run_on_event_loop(timeout: float | None, argv: Sequence[str], **options: Any) -> CompletedCommand:
    """Run the command on an event loop, which can terminate a tree without a supervisor."""
    import anyio  # noqa: PLC0415 - only here

    from cleats.system.processes import process  # noqa: PLC0415

    async def run_process() -> CompletedCommand:
        with anyio.fail_after(timeout):
            return await process.run(argv, **options)

    return anyio.run(run_process)

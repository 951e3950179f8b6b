"""Workers: a separate process for a piece of work, and the messages that it exchanges with its caller.

The order is sent to stdin. The process writes lines of JSON to stdout, which nothing else can write
to: any number of `progress`, then `done` or `error`.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError

Ordered = TypeVar("Ordered", bound=Struct)
P = TypeVar("P")
T = TypeVar("T")


class WorkerExit(NamedTuple):
    """The end of a worker process. A negative exit code is the signal that ended it."""

    exit_code: int
    last_line: bytes
    stderr: bytes


@contextmanager
def open_channel() -> Iterator[Callable[[bytes], None]]:
    """Yield a function that writes a line to the caller of this process.

    Everything else that this process prints goes to stderr.
    """
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)

        def write_line(line: bytes) -> None:
            channel.write(line + b"\n")
            channel.flush()

        yield write_line


async def run_worker(
    module: str, order: bytes, on_line: Callable[[bytes], None], grace: float, env: Mapping[str, str] | None = None
) -> WorkerExit:
    """Run a module in another process, whose lifetime ends with this call; pass on its lines.

    If the call is cancelled, the process has `grace` seconds to stop by itself.
    """
    from cleats.system.processes import process  # noqa: PLC0415 - the worker itself does not need it

    # -P: never import modules from the current folder, which may be a checkout.
    argv = [sys.executable, "-P", "-m", module]
    completed = await process.run(
        argv,
        env=env,
        stdin=order,
        grace=grace,
        on_output=lambda stream, line: on_line(line) if stream == "stdout" else None,
    )
    last_line = completed.stdout.rstrip(b"\n").rsplit(b"\n", 1)[-1]
    return WorkerExit(completed.exit_code, last_line, completed.stderr)


class TaskFailure(Struct, frozen=True):
    """An error in transit to the caller."""

    code: str
    message: str
    hint: str = ""
    retryable: bool = False


class TaskMessage(Struct, Generic[P, T], frozen=True, omit_defaults=True):
    """One line of output of a worker process."""

    progress: P | None = None
    done: T | None = None
    error: TaskFailure | None = None


def run_task(task_type: type[Ordered], work: Callable[[Ordered, Callable[[Any], None]], Any]) -> None:
    """Run the task read from stdin, and write progress and outcome as lines to stdout."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=task_type)
    with open_channel() as write_line:

        def write_message(message: TaskMessage[Any, Any]) -> None:
            write_line(msgspec.json.encode(message))

        try:
            result = work(task, lambda progress: write_message(TaskMessage(progress=progress)))
        except ToolError as error:
            failure = TaskFailure(error.code.name, error.message, error.hint, error.retryable)
            write_message(TaskMessage(error=failure))
        else:
            write_message(TaskMessage(done=result))


async def send_task(  # noqa: PLR0917 - called by position
    module: str,
    task: Struct,
    result_type: type[T],
    progress_type: type[P],
    on_progress: Callable[[P], None],
    worker_name: str,
    grace: float,
) -> T:
    """Run a task in another process, whose lifetime ends with this call.

    If the call is cancelled, the process has `grace` seconds to stop by itself.

    Raises:
        ToolError: The task failed, or the process died.
    """
    decode = msgspec.json.Decoder(TaskMessage[progress_type, result_type]).decode  # type: ignore[valid-type]

    def decode_message(text: bytes) -> TaskMessage[P, T] | None:
        try:
            return decode(text)
        except msgspec.MsgspecError:
            return None  # output of a library

    def forward_progress(line: bytes) -> None:
        if (message := decode_message(line)) is not None and message.progress is not None:
            on_progress(message.progress)

    worker = await run_worker(module, msgspec.json.encode(task), forward_progress, grace)
    message = decode_message(worker.last_line)
    if message is not None and message.done is not None:
        return message.done
    if message is not None and message.error is not None:
        failure = message.error
        raise ToolError(ErrorCode[failure.code], failure.message, hint=failure.hint, retryable=failure.retryable)
    code = worker.exit_code
    raise ToolError(
        ErrorCode.INTERNAL,
        f"The {worker_name} ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}. "
        "An earlier index, if any, is still used.",
        hint="Retry; the server's log has its output.",
        retryable=True,
        details={"stderr": worker.stderr.decode(errors="replace")[-2000:]},
    )

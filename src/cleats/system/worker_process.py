"""Worker tasks: work in a separate process, and the messages that it exchanges with its caller.

The task is sent to stdin. The process writes lines of JSON to stdout, each an object with one key:
any number of `progress`, then `done` or `error`.
"""

import os
import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.index.progress import BuildProgress, ProgressCallback

Ordered = TypeVar("Ordered", bound=Struct)
T = TypeVar("T")


class TaskFailure(Struct, frozen=True):
    """An error in transit to the caller."""

    code: str
    message: str
    hint: str = ""
    retryable: bool = False

    @classmethod
    def from_error(cls, error: ToolError) -> "TaskFailure":
        return cls(error.code.name, error.message, error.hint, error.retryable)

    def to_error(self) -> ToolError:
        return ToolError(ErrorCode[self.code], self.message, hint=self.hint, retryable=self.retryable)


class TaskMessage(Struct, Generic[T], frozen=True, omit_defaults=True):
    """One line of output of a worker process."""

    progress: BuildProgress | None = None
    done: T | None = None
    error: TaskFailure | None = None


def run_task(task_type: type[Ordered], work: Callable[[Ordered, ProgressCallback], Any]) -> None:
    """Run the task read from stdin, and write progress and outcome as lines to stdout."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=task_type)
    # Other output of this process must not be mistaken for one of our messages.
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)

        def write_message(message: TaskMessage[Any]) -> None:
            channel.write(msgspec.json.encode(message) + b"\n")
            channel.flush()

        try:
            result = work(task, lambda progress: write_message(TaskMessage(progress=progress)))
        except ToolError as error:
            write_message(TaskMessage(error=TaskFailure.from_error(error)))
        else:
            write_message(TaskMessage(done=result))


async def send_task(  # noqa: PLR0917 - called by position
    module: str,
    task: Struct,
    result_type: type[T],
    on_progress: Callable[[BuildProgress], None],
    worker_name: str,
    grace: float,
) -> T:
    """Run a task in another process, whose lifetime ends with this call.

    If the call is cancelled, the process has `grace` seconds to stop by itself.

    Raises:
        ToolError: The task failed, or the process died.
    """
    from cleats.system.processes import process  # noqa: PLC0415 - the worker itself does not need it

    decode = msgspec.json.Decoder(TaskMessage[result_type]).decode  # type: ignore[valid-type]

    def decode_message(text: bytes) -> TaskMessage[T] | None:
        try:
            return decode(text)
        except msgspec.MsgspecError:
            return None  # output of a library

    def forward_progress(stream: str, text: bytes) -> None:
        if stream == "stdout" and (message := decode_message(text)) is not None and message.progress is not None:
            on_progress(message.progress)

    # -P: never import modules from the current folder, which may be a checkout.
    argv = [sys.executable, "-P", "-m", module]
    encoded_task = msgspec.json.encode(task)
    completed = await process.run(argv, stdin=encoded_task, grace=grace, on_output=forward_progress)
    message = decode_message(completed.stdout.splitlines()[-1]) if completed.stdout else None
    if message is not None and message.done is not None:
        return message.done
    if message is not None and message.error is not None:
        raise message.error.to_error()
    raise ToolError(
        ErrorCode.INTERNAL,
        f"The {worker_name} ended with {_describe_exit(completed.exit_code)}. "
        "An earlier index, if there is one, still answers.",
        hint="Call it again; the server's log has what it wrote.",
        retryable=True,
        details={"stderr": completed.stderr.decode(errors="replace")[-2000:]},
    )


def _describe_exit(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"

"""Work in a process of its own, and what it and whoever waits for it say to each other.

The order goes to its stdin. On stdout come lines of JSON, each an object with one key: `progress`
as often as there is any, and at the end `done` or `error`.
"""

import os
import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.indexing.progress import Progress, Report

Ordered = TypeVar("Ordered", bound=Struct)
T = TypeVar("T")


class Failure(Struct, frozen=True):
    """An error on its way to the caller."""

    code: str
    message: str
    hint: str = ""
    retryable: bool = False

    @classmethod
    def of(cls, error: ToolError) -> "Failure":
        return cls(error.code.name, error.message, error.hint, error.retryable)

    def error(self) -> ToolError:
        return ToolError(
            ErrorCode[self.code], self.message, hint=self.hint, retryable=self.retryable
        )


class Line(Struct, Generic[T], frozen=True, omit_defaults=True):
    """One line of such a process."""

    progress: Progress | None = None
    done: T | None = None
    error: Failure | None = None


def carry_out(kind: type[Ordered], work: Callable[[Ordered, Report], Any]) -> None:
    """Do what the order on stdin says, and tell it line by line."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=kind)
    # Whatever else is printed in this process must not look like one of our lines.
    with os.fdopen(os.dup(1), "wb") as channel:
        os.dup2(2, 1)

        def say(line: Line[Any]) -> None:
            channel.write(msgspec.json.encode(line) + b"\n")
            channel.flush()

        try:
            done = work(order, lambda at: say(Line(progress=at)))
        except ToolError as error:
            say(Line(error=Failure.of(error)))
        else:
            say(Line(done=done))


async def send(  # noqa: PLR0917 - read as one sentence where it is called
    module: str,
    order: Struct,
    kind: type[T],
    on_progress: Callable[[Progress], None],
    who: str,
    grace: float,
) -> T:
    """Have a module carry out an order in another process, which ends with this call.

    When the call is cut short, the process has `grace` seconds to stop by itself.

    Raises:
        ToolError: it could not be done, or the process died.
    """
    from cleats.runtime import process  # noqa: PLC0415 - who carries it out needs none

    decode = msgspec.json.Decoder(Line[kind]).decode  # type: ignore[valid-type]

    def read(text: bytes) -> Line[T] | None:
        try:
            return decode(text)
        except msgspec.MsgspecError:
            return None  # a library has something to say

    def listen(stream: str, text: bytes) -> None:
        if stream == "stdout" and (line := read(text)) is not None and line.progress is not None:
            on_progress(line.progress)

    # -P: it may be started in a checkout, whose modules are not ours.
    argv = [sys.executable, "-P", "-m", module]
    given = msgspec.json.encode(order)
    ended = await process.run(argv, stdin=given, grace=grace, on_output=listen)
    line = read(ended.stdout.splitlines()[-1]) if ended.stdout else None
    if line is not None and line.done is not None:
        return line.done
    if line is not None and line.error is not None:
        raise line.error.error()
    raise ToolError(
        ErrorCode.INTERNAL,
        f"The {who} ended with {_ending(ended.exit_code)}. "
        "An earlier index, if there is one, still answers.",
        hint="Call it again; the server's log has what it wrote.",
        retryable=True,
        details={"stderr": ended.stderr.decode(errors="replace")[-2000:]},
    )


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"

"""A build in a process of its own, and the lines it speaks.

The order goes to its stdin. On stdout come lines of JSON, each an object with one key: `progress`
as often as there is any, and at the end `report` or `error`.
"""

import sys
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime import process
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.indexing.report import BuildReport

MODULE = "cleats.toolsets.code.indexing"


class Order(Struct, frozen=True):
    """What to build, and where it is kept."""

    root: str
    cache_dir: str
    options: Options


class Failure(Struct, frozen=True):
    """An error on its way from the builder to the caller."""

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


class Line(Struct, frozen=True, omit_defaults=True):
    """One line of a builder."""

    progress: Progress | None = None
    report: BuildReport | None = None
    error: Failure | None = None


_line = msgspec.json.Decoder(Line).decode


async def run(order: Order, on_progress: Callable[[Progress], None]) -> BuildReport:
    """Build in another process, which ends with this call however it ends.

    Raises:
        ToolError: it could not be done, or the builder died.
    """

    def listen(stream: str, text: bytes) -> None:
        if stream == "stdout" and (line := _read(text)) is not None and line.progress is not None:
            on_progress(line.progress)

    # -P: the builder may be started in a checkout, whose modules are not ours.
    argv = [sys.executable, "-P", "-m", MODULE]
    done = await process.run(argv, stdin=msgspec.json.encode(order), on_output=listen)
    line = _read(done.stdout.splitlines()[-1]) if done.stdout else None
    if line is not None and line.report is not None:
        return line.report
    if line is not None and line.error is not None:
        raise line.error.error()
    raise ToolError(
        ErrorCode.INTERNAL,
        f"The builder ended with {_ending(done.exit_code)}. The last index still answers.",
        hint="Build again; the server's log has what it wrote.",
        retryable=True,
        details={"stderr": done.stderr.decode(errors="replace")[-2000:]},
    )


def _read(text: bytes) -> Line | None:
    try:
        return _line(text)
    except msgspec.MsgspecError:
        return None  # a library has something to say


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def spoken(**said: Any) -> bytes:
    """A line for whoever listens."""
    return msgspec.json.encode(Line(**said)) + b"\n"

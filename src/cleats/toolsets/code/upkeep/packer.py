"""Packing in a process of its own, and the lines it speaks.

The order goes to its stdin. On stdout come lines of JSON, each an object with one key: `progress`
as often as there is any, and at the end `done` or `error`.
"""

import sys
from collections.abc import Callable

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime import process
from cleats.toolsets.code.indexing.lines import Failure
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.upkeep.packing import Order, Packed

MODULE = "cleats.toolsets.code.upkeep"


class Line(Struct, frozen=True, omit_defaults=True):
    """One line of a packer."""

    progress: Progress | None = None
    done: Packed | None = None
    error: Failure | None = None


_line = msgspec.json.Decoder(Line).decode


async def run(order: Order, on_progress: Callable[[Progress], None]) -> Packed:
    """Pack in another process, which ends with this call however it ends.

    Raises:
        ToolError: it could not be done, or the packer died.
    """

    def listen(stream: str, text: bytes) -> None:
        if stream == "stdout" and (line := _read(text)) is not None and line.progress is not None:
            on_progress(line.progress)

    # -P: it may be started in a checkout, whose modules are not ours.
    argv = [sys.executable, "-P", "-m", MODULE]
    ended = await process.run(argv, stdin=msgspec.json.encode(order), on_output=listen)
    line = _read(ended.stdout.splitlines()[-1]) if ended.stdout else None
    if line is not None and line.done is not None:
        return line.done
    if line is not None and line.error is not None:
        raise line.error.error()
    raise ToolError(
        ErrorCode.INTERNAL,
        f"The packer ended with exit code {ended.exit_code}. The last index still answers.",
        hint="Call it again; the server's log has what it wrote.",
        retryable=True,
        details={"stderr": ended.stderr.decode(errors="replace")[-2000:]},
    )


def _read(text: bytes) -> Line | None:
    try:
        return _line(text)
    except msgspec.MsgspecError:
        return None  # a library has something to say

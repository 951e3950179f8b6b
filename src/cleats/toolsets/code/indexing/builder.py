"""A build in a process of its own."""

import sys
from collections.abc import Callable

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime import process
from cleats.toolsets.code.indexing.lines import Line, Order
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.indexing.report import BuildReport

MODULE = "cleats.toolsets.code.indexing"


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
        f"The builder ended with {_ending(done.exit_code)}. "
        "An earlier index, if there is one, still answers.",
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

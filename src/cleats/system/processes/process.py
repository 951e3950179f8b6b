"""Commands that cannot outlive their caller.

The only module that starts or terminates processes. Leaving the scope is the only way to stop a
command early, so a timeout, a cancelled call and a shutdown all do the same: SIGTERM to the
command's group, a grace period, SIGKILL. No tool can override this.

Nothing is left behind on Linux, where `tree` reaches every descendant, even if this process is
itself killed. On other systems that holds for the command's group, and on Windows for the processes
still connected to the command when it is terminated.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Literal, TypeAlias

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from cleats.system.processes.command import (
    DRAIN_TIMEOUT_SECONDS,
    GRACE_SECONDS,
    MAX_OUTPUT_BYTES,
    CompletedCommand,
    OutputTail,
    StartError,
)
from cleats.system.processes.tree import SupervisedTree, WindowsTree, await_shielded, start_tree

__all__ = ["GRACE_SECONDS", "ChildProcess", "CompletedCommand", "StartError", "run", "start_command"]

MAX_LINE_BYTES = 64 * 1024
"""The length after which a line is passed on unfinished, so that an endless line cannot fill the memory."""

READ_CHUNK_BYTES = 1 << 16

StreamName: TypeAlias = Literal["stdout", "stderr"]
OutputCallback: TypeAlias = Callable[[StreamName, bytes], None]


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A running command, which ends with the block that started it."""

    pid: int
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    _tree: SupervisedTree | WindowsTree

    async def wait(self) -> int:
        """Wait for the command to exit by itself; return its exit code."""
        return await self._tree.wait()


async def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    grace: float = GRACE_SECONDS,
    on_output: OutputCallback | None = None,
    output_limit: int = MAX_OUTPUT_BYTES,
) -> CompletedCommand:
    """Run a command to its end; leave no descendant behind, however this call ends.

    `env` replaces the whole environment. Without `stdin` the command reads an empty file. `on_output` gets each line as
    it comes, without its line end, and nothing once the call is cancelled; it must not raise.

    Raises:
        StartError: The command cannot be started.
    """
    stdin_kind = DEVNULL if stdin is None else PIPE
    stdout_collector = OutputCollector("stdout", output_limit, on_output)
    stderr_collector = OutputCollector("stderr", output_limit, on_output)
    async with start_tree(argv, cwd, env, grace, stdin_kind, PIPE) as tree, anyio.create_task_group() as streams:
        streams.start_soon(stdout_collector.drain, tree.stdout)
        streams.start_soon(stderr_collector.drain, tree.stderr)
        if stdin is not None:
            streams.start_soon(_write_stdin, tree.stdin, stdin)
        exit_code = await tree.wait()
        await await_shielded(tree.terminate())
        streams.cancel_scope.deadline = anyio.current_time() + DRAIN_TIMEOUT_SECONDS
    return CompletedCommand.from_tails(exit_code, stdout_collector.tail, stderr_collector.tail)


@asynccontextmanager
async def start_command(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    grace: float = GRACE_SECONDS,
) -> AsyncIterator[ChildProcess]:
    """Start a command to talk to; leaving the block terminates it and all its descendants.

    `env` replaces the whole environment; stderr is inherited. To let the command end by itself,
    close its stdin and `wait` before leaving the block.

    Raises:
        StartError: The command cannot be started.
    """
    async with start_tree(argv, cwd, env, grace, PIPE, None) as tree:
        yield ChildProcess(tree.pid, tree.stdin, tree.stdout, tree)


class OutputCollector:
    """Collects one stream of a command: passes on its lines, and keeps its end."""

    def __init__(self, name: StreamName, limit: int, on_output: OutputCallback | None) -> None:
        self.tail = OutputTail(limit)
        self._name = name
        self._on_output = on_output
        self._partial_line = b""

    async def drain(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(READ_CHUNK_BYTES):
            self.tail.append(chunk)
            if self._on_output is not None:
                await self._emit_lines(chunk, self._on_output)
        if self._on_output is not None and self._partial_line:
            self._on_output(self._name, self._partial_line)

    async def _emit_lines(self, chunk: bytes, on_output: OutputCallback) -> None:
        *lines, self._partial_line = (self._partial_line + chunk).split(b"\n")
        if len(self._partial_line) > MAX_LINE_BYTES:
            lines.append(self._partial_line)
            self._partial_line = b""
        for line in lines:
            # The callback for the previous line may have cancelled this call.
            await checkpoint_if_cancelled()
            on_output(self._name, line)


async def _write_stdin(stream: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(OSError):  # the command need not read to the end
        stream.write(data)
        await stream.drain()
    stream.close()

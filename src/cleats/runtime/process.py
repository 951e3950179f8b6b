"""Commands that cannot outlive their caller.

The only module to start or end a process with. Leaving the scope is the only way to stop a
command early, so a timeout, a cancelled call and a shutdown all take the same road: SIGTERM to
the command's group, a grace period, SIGKILL. No tool has a road of its own.

Nothing is left behind on Linux, where `tree` reaches every descendant, also when this process is
itself killed. On other systems that holds for the command's group, and on Windows for what still
hangs together when the command is ended.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

from cleats.runtime.command import DRAIN, GRACE, OUTPUT_LIMIT, Completed, StartError
from cleats.runtime.pipes import OnOutput, Output
from cleats.runtime.tree import Order, Tree, finish, given, grow

__all__ = ["GRACE", "OUTPUT_LIMIT", "Child", "Completed", "OnOutput", "StartError", "run", "start"]


@dataclass(frozen=True, slots=True)
class Child:
    """A running command, which ends with the block that started it."""

    pid: int
    stdin: ByteSendStream
    stdout: ByteReceiveStream
    _tree: Tree

    async def wait(self) -> int:
        """Wait for the command to exit by itself; return its exit code."""
        return await self._tree.wait()


async def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    grace: float = GRACE,
    on_output: OnOutput | None = None,
    output_limit: int = OUTPUT_LIMIT,
) -> Completed:
    """Run a command to its end; leave no descendant behind, however this call ends.

    `env` replaces the whole environment. Without `stdin` the command reads an empty file.
    `on_output` gets each line as it comes, without its line end, and nothing once the call is
    cancelled; it must not raise.

    Raises:
        StartError: the command cannot be started.
    """
    order = Order(argv, cwd, env, grace, stdin=DEVNULL if stdin is None else PIPE, stderr=PIPE)
    out = Output("stdout", output_limit, on_output)
    err = Output("stderr", output_limit, on_output)
    async with grow(order) as tree, anyio.create_task_group() as streams:
        streams.start_soon(out.drain, given(tree.stdout))
        streams.start_soon(err.drain, given(tree.stderr))
        if stdin is not None:
            streams.start_soon(_feed, given(tree.stdin), stdin)
        exit_code = await tree.wait()
        await finish(tree.end())
        streams.cancel_scope.deadline = anyio.current_time() + DRAIN
    return Completed(exit_code, out.kept, err.kept, out.truncated or err.truncated)


@asynccontextmanager
async def start(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    grace: float = GRACE,
) -> AsyncIterator[Child]:
    """Start a command to talk to; leaving the block ends it and all its descendants.

    `env` replaces the whole environment; stderr is ours. To let the command end by itself,
    close its stdin and `wait` before the block is left.

    Raises:
        StartError: the command cannot be started.
    """
    async with grow(Order(argv, cwd, env, grace, stdin=PIPE, stderr=None)) as tree:
        yield Child(tree.pid, given(tree.stdin), given(tree.stdout), tree)


async def _feed(stream: ByteSendStream, data: bytes) -> None:
    async with stream:
        with suppress(anyio.BrokenResourceError):  # nobody has to read to the end
            await stream.send(data)

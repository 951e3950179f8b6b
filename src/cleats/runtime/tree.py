"""A command with all its descendants: how it is started, and how it ends.

Private to `process`, which says what is promised. On POSIX each command runs under a supervisor
(`supervisor.py`), a child of ours that holds the other end of a socket, the lifeline. We end the
tree by closing our side, and if this process is killed the kernel closes it for us. On Linux that
ends every descendant, whatever group, session or environment it has moved to; elsewhere it ends
the group. On Windows `taskkill /T /F` ends the tree while the command lives; what has outlived
the command is out of our reach there.
"""

import asyncio
import logging
import marshal
import os
import signal
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, TypeVar, cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from cleats.runtime.command import StartError, find_supervisor
from cleats.runtime.pipes import Reader, Writer

log = logging.getLogger(__name__)

PATIENCE = 15.0
"""Seconds beyond the grace period for the supervisor to be done. It gives up on processes that
cannot be killed after five; later than this, it has itself been stopped, or is fighting a tree
that grows as fast as it dies."""

T = TypeVar("T")

WINDOWS = sys.platform == "win32"

NO_SUCH_PROCESS = 128
"""What `taskkill` returns for a process that has already exited."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to start, and which of its streams are ours."""

    argv: Sequence[str]
    cwd: Path | None
    env: Mapping[str, str] | None
    grace: float
    stdin: int
    stderr: int | None


class Tree(ABC):
    """A command and its descendants."""

    pid = 0
    stdin: ByteSendStream | None = None
    stdout: ByteReceiveStream | None = None
    stderr: ByteReceiveStream | None = None

    def __init__(self, order: Order) -> None:
        self._order = order
        self._command = order.argv[0]

    @abstractmethod
    async def open(self) -> None:
        """Start the process, or raise `OSError` and leave nothing to close."""

    @abstractmethod
    async def begin(self) -> None:
        """Wait until the command runs, or raise `StartError`."""

    @abstractmethod
    async def wait(self) -> int:
        """Wait for the command; return its exit code."""

    @abstractmethod
    async def end(self) -> None:
        """End everyone, and return when nobody is left. Once is enough."""

    @abstractmethod
    async def close(self) -> None:
        """End everyone, and let go of the streams."""


@asynccontextmanager
async def grow(order: Order) -> AsyncIterator[Tree]:
    """Start a command; leaving the block ends it and all its descendants."""
    tree = OnWindows(order) if WINDOWS else Supervised(order)
    try:
        try:
            await finish(tree.open())
        except OSError as error:
            raise StartError.because(order.argv[0], error) from error
        await tree.begin()
        yield tree
    finally:
        await finish(tree.close())


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Await some work to its end, and let a cancel through only then.

    A shield alone stops anyio's cancels, but not those of asyncio, and a call may end by either.
    """
    task = asyncio.ensure_future(work)
    interrupt: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as cancel:
                interrupt = cancel
    task.result()
    if interrupt is not None:
        raise interrupt


def given(value: T | None) -> T:
    """Tell the type checker that something is there, because it was ordered."""
    return cast("T", value)


class Supervised(Tree):
    """A tree whose supervisor ends it for us, and reports on it."""

    _lifeline: asyncio.StreamWriter
    _reports: asyncio.StreamReader

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._supervisor: Popen[bytes] | None = None
        self._reading = anyio.Lock()
        self._failure = 0
        self._exit_code: int | None = None
        self._ended = False

    async def open(self) -> None:
        payload = pack(self._order)
        ours, theirs = socket.socketpair()
        self._reports, self._lifeline = await asyncio.open_unix_connection(sock=ours)
        try:
            with theirs:
                started = self._supervisor = launch(self._order, theirs.fileno(), len(payload))
        except OSError:
            self._lifeline.close()
            raise
        self._lifeline.write(payload)
        self.stdin = await Writer.open(started.stdin) if started.stdin else None
        self.stdout = await Reader.open(started.stdout) if started.stdout else None
        self.stderr = await Reader.open(started.stderr) if started.stderr else None

    async def begin(self) -> None:
        await self._read_report()
        if self._failure:
            raise StartError(self._command, os.strerror(self._failure))
        if not self.pid:
            raise StartError(self._command, "its supervisor does not run")

    async def wait(self) -> int:
        async with self._reading:
            while self._exit_code is None and await self._read_report():
                pass
        # Without a supervisor nobody will know the code, and `end` is going to kill.
        return -signal.SIGKILL if self._exit_code is None else self._exit_code

    async def end(self) -> None:
        if self._ended or self._supervisor is None:
            return
        self._ended = True
        with suppress(OSError):  # when the other side is gone already
            if not self._lifeline.is_closing():
                self._lifeline.write_eof()
        with anyio.move_on_after(self._order.grace + PATIENCE) as patience:
            async with self._reading:
                while await self._read_report():
                    pass
        if patience.cancelled_caught:
            self._supervisor.kill()
        # Its end of the lifeline closes a moment before it can be reaped.
        while (code := self._supervisor.poll()) is None:  # noqa: ASYNC110 - there is no event
            await anyio.sleep(0.001)
        if code != 0:
            self._stand_in(self._supervisor.pid, code)
        self._lifeline.close()

    async def close(self) -> None:
        await self.end()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                await stream.aclose()

    def _stand_in(self, lost: int, code: int) -> None:
        # The supervisor was killed: by a kernel short of memory, or by the command itself. The
        # group is all that we still reach, and without the parent a grace cannot be waited out.
        log.error("supervisor.lost pid=%d code=%d command=%d", lost, code, self.pid)
        if self.pid == 0:  # not started; and group 0 would be our own
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        except PermissionError:
            log.exception("kill.fail pids=%d", self.pid)

    async def _read_report(self) -> bool:
        try:
            line = await self._reports.readuntil()
        except (asyncio.IncompleteReadError, OSError):
            return False
        match line.decode().split():
            case ["started", pid]:
                self.pid = int(pid)
            case ["failed", number]:
                self._failure = int(number)
            case ["exited", code]:
                self._exit_code = int(code)
            case ["survived", *pids]:
                log.error("kill.fail pids=%s", ",".join(pids))
        return True


def launch(order: Order, lifeline: int, size: int) -> Popen[bytes]:
    # -I and -S keep away what the environment and the site would add to Python, and a session of
    # its own a Ctrl-C at our terminal. Only the supervisor's end of the lifeline is passed on: a
    # copy of ours, in any child, would outlive us, and the end of file would never come.
    return Popen(
        [sys.executable, "-I", "-S", find_supervisor(), str(lifeline), str(size)],
        bufsize=0,
        stdin=order.stdin,
        stdout=PIPE,
        stderr=order.stderr,
        cwd=order.cwd,
        start_new_session=True,
        pass_fds=(lifeline,),
    )


def pack(order: Order) -> bytes:
    """Write down what the supervisor has to do."""
    argv = [os.fsencode(word) for word in order.argv]
    env = order.env
    pairs = None if env is None else {os.fsencode(k): os.fsencode(v) for k, v in env.items()}
    return marshal.dumps((argv, pairs, order.grace))


class OnWindows(Tree):
    """A tree that is known by its root only."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._process: Process | None = None

    async def open(self) -> None:
        order = self._order
        process = self._process = await anyio.open_process(
            order.argv,
            stdin=order.stdin,
            stdout=PIPE,
            stderr=order.stderr,
            cwd=order.cwd,
            env=order.env,
        )
        self.pid = process.pid
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    async def begin(self) -> None:
        pass  # a process that was started runs

    async def wait(self) -> int:
        return await given(self._process).wait()

    async def end(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        argv = ["taskkill", "/pid", str(self.pid), "/T", "/F"]
        done = await anyio.run_process(argv, check=False)
        if done.returncode not in {0, NO_SUCH_PROCESS}:
            log.error("kill.fail pids=%d reason=%r", self.pid, done.stderr)
            self._process.kill()  # the least that can be done, and it lets us go on
        await self._process.wait()

    async def close(self) -> None:
        await self.end()
        if self._process is not None:
            await self._process.aclose()

"""Commands that cannot outlive their caller.

The only module that starts or signals a process. Leaving the scope is the only way to stop a
command early, so a timeout, a cancelled call and a shutdown all take the same road: SIGTERM to
the command's group, a grace period, SIGKILL. No tool has a road of its own.

On POSIX each command runs under a supervisor (`supervisor.py`), a child of ours that holds the
other end of a socket, the lifeline. We end the tree by closing our side, and if this process is
killed the kernel closes it for us. On Linux that ends every descendant, whatever group, session
or environment it has moved to; elsewhere it ends the group. On Windows `taskkill /T /F` ends the
tree while the command lives; what has outlived the command is out of our reach there.
"""

import asyncio
import logging
import marshal
import os
import signal
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, Literal, TypeAlias, TypeVar, cast

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process, UNIXSocketStream
from anyio.lowlevel import checkpoint_if_cancelled
from anyio.streams.buffered import BufferedByteReceiveStream

log = logging.getLogger(__name__)

GRACE = 2.0
"""Seconds between asking a tree to stop and killing it."""

OUTPUT_LIMIT = 8 * 1024 * 1024
"""Bytes kept of each stream. The end is what explains a failure, so the end is kept."""

_LINE_LIMIT = 64 * 1024
"""Bytes after which a line is passed on unfinished, lest one without an end fill the memory."""

_PATIENCE = 15.0
"""Seconds beyond the grace period for the supervisor to be done. It gives up on processes that
cannot be killed after five; later than this, it has itself been stopped, or is fighting a tree
that grows as fast as it dies."""

_DRAIN = 5.0
"""Seconds to read what an ended tree left in its pipes. Their end has come already, unless
somebody survived the kill and holds them open."""

_WINDOWS = sys.platform == "win32"

_NO_SUCH_PROCESS = 128
"""What `taskkill` returns for a process that has already exited."""

T = TypeVar("T")
Stream: TypeAlias = Literal["stdout", "stderr"]
OnOutput: TypeAlias = Callable[[Stream, bytes], None]


class StartError(Exception):
    """Raised when a command cannot be started: missing, not executable, or no such folder."""

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(f"cannot start {command!r}: {reason}")
        self.command = command
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command left behind. An exit code below zero is the signal that ended it."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    """Whether a stream was longer than the limit, and so has lost its beginning."""


@dataclass(frozen=True, slots=True)
class Child:
    """A running command, which ends with the block that started it."""

    pid: int
    stdin: ByteSendStream
    stdout: ByteReceiveStream
    _tree: "_Tree"

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
    order = _Order(argv, cwd, env, grace, stdin=DEVNULL if stdin is None else PIPE, stderr=PIPE)
    out = _Output("stdout", output_limit, on_output)
    err = _Output("stderr", output_limit, on_output)
    async with _start(order) as tree, anyio.create_task_group() as streams:
        streams.start_soon(out.drain, _given(tree.process.stdout))
        streams.start_soon(err.drain, _given(tree.process.stderr))
        if stdin is not None:
            streams.start_soon(_feed, _given(tree.process.stdin), stdin)
        exit_code = await tree.wait()
        await _finish(tree.end())
        streams.cancel_scope.deadline = anyio.current_time() + _DRAIN
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
    async with _start(_Order(argv, cwd, env, grace, stdin=PIPE, stderr=None)) as tree:
        yield Child(tree.pid, _given(tree.process.stdin), _given(tree.process.stdout), tree)


class _Output:
    """One stream of a command: hands on its lines, and keeps its end."""

    def __init__(self, name: Stream, limit: int, on_output: OnOutput | None) -> None:
        self.truncated = False
        self._name = name
        self._limit = limit
        self._on_output = on_output
        self._kept = bytearray()
        self._line = b""

    @property
    def kept(self) -> bytes:
        return bytes(self._kept)

    async def drain(self, stream: ByteReceiveStream) -> None:
        async for chunk in stream:
            self._keep(chunk)
            if self._on_output is not None:
                await self._hand_on(chunk, self._on_output)
        if self._on_output is not None and self._line:
            self._on_output(self._name, self._line)

    def _keep(self, chunk: bytes) -> None:
        self._kept += chunk
        if (excess := len(self._kept) - self._limit) > 0:
            self.truncated = True
            del self._kept[:excess]

    async def _hand_on(self, chunk: bytes, on_output: OnOutput) -> None:
        *lines, self._line = (self._line + chunk).split(b"\n")
        if len(self._line) > _LINE_LIMIT:
            lines.append(self._line)
            self._line = b""
        for line in lines:
            # The line before may have been the reason to cancel us.
            await checkpoint_if_cancelled()
            on_output(self._name, line)


async def _feed(stream: ByteSendStream, data: bytes) -> None:
    async with stream:
        with suppress(anyio.BrokenResourceError, OSError):  # nobody has to read to the end
            await stream.send(data)


async def _finish(work: Coroutine[Any, Any, None]) -> None:
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


def _given(value: T | None) -> T:
    """Tell the type checker that this is there: a pipe that we asked for."""
    return cast("T", value)


@dataclass(frozen=True, slots=True)
class _Order:
    argv: Sequence[str]
    cwd: Path | None
    env: Mapping[str, str] | None
    grace: float
    stdin: int
    stderr: int | None


@asynccontextmanager
async def _start(order: _Order) -> AsyncIterator["_Tree"]:
    tree = _OnWindows(order) if _WINDOWS else _Supervised(order)
    try:
        await _finish(tree.open())
        await tree.begin()
        yield tree
    finally:
        await _finish(tree.close())


class _Tree(ABC):
    """A command and its descendants."""

    pid = 0

    def __init__(self, order: _Order) -> None:
        self._order = order
        self._command = order.argv[0]
        self._process: Process | None = None

    @property
    def process(self) -> Process:
        """What we started and have to wait for: the command, or its supervisor."""
        return _given(self._process)

    @abstractmethod
    async def open(self) -> None:
        """Start the process, or raise `StartError`."""

    @abstractmethod
    async def begin(self) -> None:
        """Wait until the command runs, or raise `StartError`."""

    @abstractmethod
    async def wait(self) -> int:
        """Wait for the command; return its exit code."""

    @abstractmethod
    async def end(self) -> None:
        """End everyone and return when nobody is left. Once is enough."""

    async def close(self) -> None:
        if self._process is not None:
            await self.end()
            await self._process.aclose()

    async def _launch(self, argv: Sequence[str], **options: Any) -> None:
        order = self._order
        try:
            self._process = await anyio.open_process(
                argv, stdin=order.stdin, stdout=PIPE, stderr=order.stderr, cwd=order.cwd, **options
            )
        except OSError as error:
            raise StartError(self._command, f"{error.strerror}: {error.filename}") from error


class _Supervised(_Tree):
    """A tree whose supervisor ends it for us, and reports on it."""

    _lifeline: UNIXSocketStream
    _reports: BufferedByteReceiveStream

    def __init__(self, order: _Order) -> None:
        super().__init__(order)
        self._payload = _pack(order)
        self._reading = anyio.Lock()
        self._failure = 0
        self._exit_code: int | None = None
        self._ended = False

    async def open(self) -> None:
        ours, theirs = socket.socketpair()
        self._lifeline = await UNIXSocketStream.from_socket(ours)
        self._reports = BufferedByteReceiveStream(self._lifeline)
        # -I and -S keep away what the environment and the site would add to Python, and a session
        # of its own a Ctrl-C at our terminal. Only their end of the lifeline is passed on: a copy
        # of ours, in any child, would outlive us, and the end of file would never come.
        argv = [sys.executable, "-I", "-S", _supervisor()]
        argv += [str(theirs.fileno()), str(len(self._payload))]
        try:
            with theirs:
                await self._launch(argv, start_new_session=True, pass_fds=(theirs.fileno(),))
        except StartError:
            await self._lifeline.aclose()
            raise

    async def begin(self) -> None:
        with suppress(anyio.BrokenResourceError):
            await self._lifeline.send(self._payload)
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
        if self._ended:
            return
        self._ended = True
        with suppress(OSError):
            await self._lifeline.send_eof()
        with anyio.move_on_after(self._order.grace + _PATIENCE) as patience:
            async with self._reading:
                while await self._read_report():
                    pass
        if patience.cancelled_caught:
            self.process.kill()
        if await self.process.wait() != 0:
            self._stand_in()
        await self._lifeline.aclose()

    def _stand_in(self) -> None:
        # The supervisor was killed: by a kernel short of memory, or by the command itself. The
        # group is all that we still reach, and without the parent a grace cannot be waited out.
        lost, code = self.process.pid, self.process.returncode
        log.error("supervisor.lost pid=%d code=%s command=%d", lost, code, self.pid)
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
            line = await self._reports.receive_until(b"\n", 4096)
        except (anyio.IncompleteRead, anyio.BrokenResourceError):
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


@cache
def _supervisor() -> str:
    """Find the supervisor, compiled if possible: that saves every command 3 ms."""
    # Imported only to have it compiled, and only here, because Windows could not.
    from cleats.runtime import supervisor  # noqa: PLC0415

    source = Path(supervisor.__file__)
    compiled = Path(cache_from_source(source))
    # Python may not be allowed to write compiled files; then this one may be an old one.
    if compiled.exists() and compiled.stat().st_mtime >= source.stat().st_mtime:
        return str(compiled)
    return str(source)


def _pack(order: _Order) -> bytes:
    argv = [os.fsencode(word) for word in order.argv]
    env = order.env
    pairs = None if env is None else {os.fsencode(k): os.fsencode(v) for k, v in env.items()}
    return marshal.dumps((argv, pairs, order.grace))


class _OnWindows(_Tree):
    async def open(self) -> None:
        await self._launch(self._order.argv, env=self._order.env)
        self.pid = self.process.pid

    async def begin(self) -> None:
        pass  # a process that was started runs

    async def wait(self) -> int:
        return await self.process.wait()

    async def end(self) -> None:
        if self.process.returncode is not None:
            return
        argv = ["taskkill", "/pid", str(self.pid), "/T", "/F"]
        done = await anyio.run_process(argv, check=False)
        if done.returncode not in {0, _NO_SUCH_PROCESS}:
            log.error("kill.fail pids=%d reason=%r", self.pid, done.stderr)
            self.process.kill()  # the least that can be done, and it lets us go on
        await self.process.wait()

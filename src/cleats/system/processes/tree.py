"""A command with all its descendants: starting it and terminating it.

Private to `process`, which documents the guarantees. On POSIX each command runs under a supervisor
(`supervisor.py`), a child process that holds the other end of a socket, the lifeline. Closing our
side terminates the tree, and if this process is killed the kernel closes it for us. On Linux that
terminates every descendant, regardless of its group, session or environment; elsewhere it
terminates the group. On Windows `taskkill /T /F` terminates the tree while the command is alive;
descendants that outlive the command cannot be reached there.
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

from cleats.system.processes.command import StartError, find_supervisor
from cleats.system.processes.pipes import PipeReader, PipeWriter

log = logging.getLogger(__name__)

SUPERVISOR_TIMEOUT_SECONDS = 15.0
"""Time beyond the grace period for the supervisor to finish. It gives up on processes that cannot
be killed after five seconds; if it takes longer than this, it has itself been stopped, or the tree
grows as fast as it is killed."""

T = TypeVar("T")

IS_WINDOWS = sys.platform == "win32"

NO_SUCH_PROCESS_EXIT_CODE = 128
"""The exit code of `taskkill` for a process that has already exited."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command to start, and how its streams are connected."""

    argv: Sequence[str]
    cwd: Path | None
    env: Mapping[str, str] | None
    grace: float
    stdin: int
    stderr: int | None


class ProcessTree(ABC):
    """A command and its descendants."""

    pid = 0
    stdin: ByteSendStream | None = None
    stdout: ByteReceiveStream | None = None
    stderr: ByteReceiveStream | None = None

    def __init__(self, spec: CommandSpec) -> None:
        self._spec = spec
        self._command = spec.argv[0]

    @abstractmethod
    async def open(self) -> None:
        """Start the process, or raise `OSError` and leave nothing to close."""

    @abstractmethod
    async def wait_until_started(self) -> None:
        """Wait until the command runs, or raise `StartError`."""

    @abstractmethod
    async def wait(self) -> int:
        """Wait for the command; return its exit code."""

    @abstractmethod
    async def terminate(self) -> None:
        """Terminate all processes, and return when none is left. Safe to repeat."""

    @abstractmethod
    async def close(self) -> None:
        """Terminate all processes, and close the streams."""


@asynccontextmanager
async def start_tree(spec: CommandSpec) -> AsyncIterator[ProcessTree]:
    """Start a command; leaving the block terminates it and all its descendants."""
    tree = WindowsTree(spec) if IS_WINDOWS else SupervisedTree(spec)
    try:
        try:
            await await_shielded(tree.open())
        except OSError as error:
            raise StartError.from_os_error(spec.argv[0], error) from error
        await tree.wait_until_started()
        yield tree
    finally:
        await await_shielded(tree.close())


async def await_shielded(work: Coroutine[Any, Any, None]) -> None:
    """Await some work to its end, and only then let a cancellation through.

    A shield alone stops the cancellations of anyio, but not those of asyncio, and a call may end by
    either.
    """
    task = asyncio.ensure_future(work)
    cancellation: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancellation = error
    task.result()
    if cancellation is not None:
        raise cancellation


def assume_present(value: T | None) -> T:
    """Tell the type checker that an optional value is present."""
    return cast("T", value)


class SupervisedTree(ProcessTree):
    """A tree whose supervisor terminates it for us, and reports on it."""

    _lifeline: asyncio.StreamWriter
    _reports: asyncio.StreamReader

    def __init__(self, spec: CommandSpec) -> None:
        super().__init__(spec)
        self._supervisor: Popen[bytes] | None = None
        self._report_lock = anyio.Lock()
        self._start_errno = 0
        self._exit_code: int | None = None
        self._is_terminated = False

    async def open(self) -> None:
        payload = encode_spec(self._spec)
        our_socket, supervisor_socket = socket.socketpair()
        self._reports, self._lifeline = await asyncio.open_unix_connection(sock=our_socket)
        try:
            with supervisor_socket:
                supervisor = self._supervisor = spawn_supervisor(self._spec, supervisor_socket.fileno(), len(payload))
        except OSError:
            self._lifeline.close()
            raise
        self._lifeline.write(payload)
        self.stdin = await PipeWriter.open(supervisor.stdin) if supervisor.stdin else None
        self.stdout = await PipeReader.open(supervisor.stdout) if supervisor.stdout else None
        self.stderr = await PipeReader.open(supervisor.stderr) if supervisor.stderr else None

    async def wait_until_started(self) -> None:
        await self._read_report()
        if self._start_errno:
            raise StartError(self._command, os.strerror(self._start_errno))
        if not self.pid:
            raise StartError(self._command, "its supervisor does not run")

    async def wait(self) -> int:
        async with self._report_lock:
            while self._exit_code is None and await self._read_report():
                pass
        # Without a supervisor the code is unknown, and `terminate` is going to kill.
        return -signal.SIGKILL if self._exit_code is None else self._exit_code

    async def terminate(self) -> None:
        if self._is_terminated or self._supervisor is None:
            return
        self._is_terminated = True
        with suppress(OSError):  # when the other side is gone already
            if not self._lifeline.is_closing():
                self._lifeline.write_eof()
        with anyio.move_on_after(self._spec.grace + SUPERVISOR_TIMEOUT_SECONDS) as timeout_scope:
            async with self._report_lock:
                while await self._read_report():
                    pass
        if timeout_scope.cancelled_caught:
            self._supervisor.kill()
        # Its end of the lifeline closes a moment before the process can be reaped.
        while (code := self._supervisor.poll()) is None:  # noqa: ASYNC110 - there is no event
            await anyio.sleep(0.001)
        if code != 0:
            self._kill_group(self._supervisor.pid, code)
        self._lifeline.close()

    async def close(self) -> None:
        await self.terminate()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                await stream.aclose()

    def _kill_group(self, supervisor_pid: int, code: int) -> None:
        # The supervisor was killed: by a kernel short of memory, or by the command itself. Only
        # the group can still be reached, and without its parent a grace period cannot be awaited.
        log.error("supervisor.lost pid=%d code=%d command=%d", supervisor_pid, code, self.pid)
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
                self._start_errno = int(number)
            case ["exited", code]:
                self._exit_code = int(code)
            case ["survived", *pids]:
                log.error("kill.fail pids=%s", ",".join(pids))
        return True


def spawn_supervisor(spec: CommandSpec, lifeline: int, size: int) -> Popen[bytes]:
    # -I and -S exclude what the environment and the site would add to Python, and a new session
    # shields it from a Ctrl-C at our terminal. Only the supervisor's end of the lifeline is
    # passed on: a copy of our end, in any child, would outlive us and prevent the end of file.
    return Popen(
        [sys.executable, "-I", "-S", find_supervisor(), str(lifeline), str(size)],
        bufsize=0,
        stdin=spec.stdin,
        stdout=PIPE,
        stderr=spec.stderr,
        cwd=spec.cwd,
        start_new_session=True,
        pass_fds=(lifeline,),
    )


def encode_spec(spec: CommandSpec) -> bytes:
    """Encode the command for the supervisor."""
    argv = [os.fsencode(word) for word in spec.argv]
    env = spec.env
    pairs = None if env is None else {os.fsencode(key): os.fsencode(value) for key, value in env.items()}
    return marshal.dumps((argv, pairs, spec.grace))


class WindowsTree(ProcessTree):
    """A tree of which only the root is known."""

    def __init__(self, spec: CommandSpec) -> None:
        super().__init__(spec)
        self._process: Process | None = None

    async def open(self) -> None:
        spec = self._spec
        process = self._process = await anyio.open_process(
            spec.argv,
            stdin=spec.stdin,
            stdout=PIPE,
            stderr=spec.stderr,
            cwd=spec.cwd,
            env=spec.env,
        )
        self.pid = process.pid
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    async def wait_until_started(self) -> None:
        pass  # a process that was started runs

    async def wait(self) -> int:
        return await assume_present(self._process).wait()

    async def terminate(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        argv = ["taskkill", "/pid", str(self.pid), "/T", "/F"]
        completed = await anyio.run_process(argv, check=False)
        if completed.returncode not in {0, NO_SUCH_PROCESS_EXIT_CODE}:
            log.error("kill.fail pids=%d reason=%r", self.pid, completed.stderr)
            self._process.kill()  # at least the root, so that the wait below ends
        await self._process.wait()

    async def close(self) -> None:
        await self.terminate()
        if self._process is not None:
            await self._process.aclose()

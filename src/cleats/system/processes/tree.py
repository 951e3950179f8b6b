"""A command with all its descendants: starting it and terminating it.

Private to `process`, which documents the guarantees. On POSIX each command has its own supervisor. Closing our side of
the lifeline terminates the tree, and if this process is killed the kernel closes it for us. On Linux that terminates
every descendant, regardless of its group, session or environment; elsewhere it terminates the group. On Windows
`taskkill /T /F` terminates the tree while the command is alive; descendants that outlive the command cannot be reached
there.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

import anyio

from cleats.system.processes.command import (
    IS_WINDOWS,
    SUPERVISOR_TIMEOUT_SECONDS,
    CommandPipes,
    StartError,
    encode_command,
    reap_supervisor,
    spawn_supervisor,
)

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 16 << 20
"""The longest line that can be read from a command at once: a listing of hundreds of tools is one line."""

NO_SUCH_PROCESS_EXIT_CODE = 128
"""The exit code of `taskkill` for a process that has already exited."""


@asynccontextmanager
async def start_tree(
    argv: Sequence[str], *options: Any, **streams: Any
) -> "AsyncIterator[SupervisedTree | WindowsTree]":
    """Start a command; leaving the block terminates it and all its descendants."""
    tree = (WindowsTree if IS_WINDOWS else SupervisedTree)(argv, *options, **streams)
    try:
        try:
            await await_shielded(tree.open())
        except OSError as error:
            raise StartError.from_os_error(argv[0], error) from error
        await tree.wait_until_started()
        yield tree
    finally:
        await await_shielded(tree.close())


async def await_shielded(work: Coroutine[Any, Any, None]) -> None:
    """Await some work to its end, and only then let a cancellation through.

    A shield alone stops the cancellations of anyio, but not those of asyncio, and a call may end by either.
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


# The pipes are our own, because those of an event loop may not be pipes: uvloop gives a command sockets, and a script
# that writes to /dev/stderr cannot open one.


async def _open_reader(descriptor: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    reader = asyncio.StreamReader(MAX_MESSAGE_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    return reader, transport


async def _open_writer(descriptor: int) -> tuple[asyncio.StreamWriter, asyncio.BaseTransport]:
    loop, unused = asyncio.get_running_loop(), asyncio.StreamReader()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(unused), os.fdopen(descriptor, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, unused, loop), transport


@dataclass
class CommandTree:
    """A command with its descendants, and how its streams are connected."""

    argv: Sequence[str]
    cwd: Path | None
    env: Mapping[str, str] | None
    grace: float
    stdin_kind: int
    stderr_kind: int | None

    def __post_init__(self) -> None:
        self.pid = 0
        self.stdin: asyncio.StreamWriter
        self.stdout: asyncio.StreamReader
        self.stderr: asyncio.StreamReader


class SupervisedTree(CommandTree):
    """A command and its descendants, whose supervisor terminates them for us, and reports on them."""

    _lifeline: asyncio.StreamWriter
    _reports: asyncio.StreamReader

    def __post_init__(self) -> None:
        super().__post_init__()
        self._supervisor = 0
        self._report_lock = anyio.Lock()
        self._start_failure = ""
        self._exit_code: int | None = None
        self._is_terminated = False
        self._transports: list[asyncio.BaseTransport] = []

    async def open(self) -> None:
        """Start the process and open those of its streams that are pipes, or raise `OSError` and leave nothing."""
        payload = encode_command(self.argv, self.env, self.grace, self.cwd)
        our_socket, supervisor_socket = socket.socketpair()
        self._reports, self._lifeline = await asyncio.open_unix_connection(sock=our_socket)
        try:
            with supervisor_socket:
                pipes = CommandPipes(has_stdin=self.stdin_kind == PIPE, has_stderr=self.stderr_kind == PIPE)
                try:
                    self._supervisor = spawn_supervisor(supervisor_socket.fileno())
                    pipes.send_header(our_socket, payload)
                except OSError:
                    pipes.close()
                    raise
        except OSError:
            self._lifeline.close()
            raise
        self._lifeline.write(payload)
        for descriptor, name in pipes.our_ends.items():
            stream, transport = await (_open_writer if name == "stdin" else _open_reader)(descriptor)
            setattr(self, name, stream)
            self._transports.append(transport)

    async def wait_until_started(self) -> None:
        """Wait until the command runs, or raise `StartError`."""
        await self._read_report()
        if not self.pid:
            raise StartError(self.argv[0], self._start_failure or "its supervisor process is not running")

    async def wait(self) -> int:
        """Wait for the command; return its exit code."""
        async with self._report_lock:
            while self._exit_code is None and await self._read_report():
                pass
        # Without a supervisor the code is unknown, and `terminate` is going to kill.
        return -signal.SIGKILL if self._exit_code is None else self._exit_code

    async def terminate(self) -> None:
        """Terminate all processes, and return when none is left. Safe to repeat."""
        if self._is_terminated or not self._supervisor:
            return
        self._is_terminated = True
        with suppress(OSError):  # when the other side is gone already
            if not self._lifeline.is_closing():
                self._lifeline.write_eof()
        with anyio.move_on_after(self.grace + SUPERVISOR_TIMEOUT_SECONDS) as timeout_scope:
            async with self._report_lock:
                while await self._read_report():
                    pass
        if timeout_scope.cancelled_caught:
            os.kill(self._supervisor, signal.SIGKILL)
        # Its end of the lifeline closes a moment before the process can be reaped.
        while (code := reap_supervisor(self._supervisor, waits=False)) is None:  # noqa: ASYNC110 - there is no event
            await anyio.sleep(0.001)
        if code != 0:
            self._kill_group(self._supervisor, code)
        self._lifeline.close()

    async def close(self) -> None:
        await self.terminate()
        for transport in self._transports:
            transport.close()

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
            case ["failed", number, *folder]:
                reason = os.strerror(int(number))
                self._start_failure = f"{reason}: {self.cwd}" if folder else reason
            case ["exited", code]:
                self._exit_code = int(code)
            case ["survived", *pids]:
                log.error("kill.fail pids=%s", ",".join(pids))
        return True


class WindowsTree(CommandTree):
    """A command of which only the root is known; its methods are those of `SupervisedTree`."""

    _process: asyncio.subprocess.Process | None = None

    async def open(self) -> None:
        streams: Any = {"stdin": self.stdin_kind, "stdout": PIPE, "stderr": self.stderr_kind}
        process: Any = await asyncio.create_subprocess_exec(
            *self.argv, **streams, cwd=self.cwd, env=self.env, limit=MAX_MESSAGE_BYTES
        )
        self._process, self.pid = process, process.pid
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    async def wait_until_started(self) -> None:
        pass  # a process that was started runs

    async def wait(self) -> int:
        assert self._process is not None  # noqa: S101 - for the type checker
        return await self._process.wait()

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
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

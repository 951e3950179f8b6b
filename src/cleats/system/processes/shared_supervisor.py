"""A supervisor that runs one command after the other, and the pipes of the running one.

Private to `blocking`, which documents the guarantees. Not for Windows, which has no supervisor.
"""

import errno
import os
import select
import time
from _socket import SHUT_WR, socketpair  # not `socket`, as in `command`
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleats.system.processes.command import (
    DRAIN_TIMEOUT_SECONDS,
    GRACE_SECONDS,
    SUPERVISOR_TIMEOUT_SECONDS,
    CommandPipes,
    StartError,
    encode_command,
    reap_supervisor,
    spawn_supervisor,
)

if TYPE_CHECKING:
    from logging import Logger

READ_CHUNK_BYTES: Final = 1 << 16

KILLED_EXIT_CODE: Final = -9
"""The exit code of a command whose supervisor was killed, since the real one is lost."""


class SharedSupervisor:
    """A supervisor, spawned for its first command. Runs one command at a time."""

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self.is_busy = False
        self.is_stopped = False
        self.grace = grace
        self._pid = 0
        self._partial_report = b""
        self._nested: SharedSupervisor | None = None

    def create_nested(self) -> "SharedSupervisor":
        """Create a supervisor for a command beside the running one; stopping this one stops both."""
        self._nested = SharedSupervisor(self.grace)
        if self.is_stopped:
            self._nested.stop()
        return self._nested

    def send_command(self, payload: bytes, pipes: CommandPipes) -> None:
        """Have a command started, with the other ends of these pipes as its streams."""
        if self.is_stopped:
            raise InterruptedError(errno.EINTR, "the caller no longer waits for it")
        if not self._pid:
            self._spawn()
        pipes.send_header(self._lifeline, payload)
        self._lifeline.sendall(payload)
        if self.is_stopped:  # between the first look and now, when there was nothing to stop yet
            self.stop()

    def _spawn(self) -> None:
        self._lifeline, supervisor_socket = socketpair()
        self._partial_report = b""
        try:
            self._pid = spawn_supervisor(supervisor_socket.fileno())
        finally:
            supervisor_socket.close()

    def fileno(self) -> int:
        return self._lifeline.fileno()

    def read_reports(self) -> Iterator[list[str]]:
        """Yield the reports received so far, waiting for the first; an empty one if it is gone."""
        while True:
            try:
                received = self._lifeline.recv(4096)
            except ConnectionResetError:
                received = b""
            if not received:
                yield []
                return
            *lines, self._partial_report = (self._partial_report + received).split(b"\n")
            if lines:
                yield from (line.decode().split() for line in lines)
                return

    def stop(self) -> None:
        """Terminate whatever runs, for good; a waiting thread notices. Callable from any thread."""
        self.is_stopped = True
        if self._nested is not None:
            self._nested.stop()
        if self._pid:
            with suppress(OSError):  # when the other side is gone already
                self._lifeline.shutdown(SHUT_WR)

    def close(self) -> None:
        """Terminate whatever runs, and wait for the supervisor to end. Safe to repeat."""
        if not self._pid:
            return
        with suppress(OSError):
            self._lifeline.shutdown(SHUT_WR)
        pid, self._pid = self._pid, 0
        self._lifeline.settimeout(self.grace + SUPERVISOR_TIMEOUT_SECONDS)
        try:
            while all(map(_log_survivors, self.read_reports())):
                pass
        except TimeoutError:
            os.kill(pid, 9)
        self._lifeline.close()
        reap_supervisor(pid, waits=True)


def _get_logger() -> "Logger":
    import logging  # noqa: PLC0415 - there is hardly ever anything to say, and it takes 5 ms

    return logging.getLogger(__name__)


def _log_survivors(report: Sequence[str]) -> bool:
    if report[:1] == ["survived"]:
        _get_logger().error("kill.fail pids=%s", ",".join(report[1:]))
    return bool(report)


class SupervisedCommand:
    """One command of a shared supervisor with its pipes. Leaving it early terminates both."""

    def __init__(
        self, supervisor: SharedSupervisor, argv: Sequence[str], stdin_data: bytes | None, *, has_stderr: bool
    ) -> None:
        self.exit_code = KILLED_EXIT_CODE
        self._supervisor = supervisor
        self._argv = argv
        self._stdin_data = stdin_data
        self._is_done = False
        self._pid = 0
        supervisor.is_busy = True
        try:
            self._pipes = CommandPipes(has_stdin=stdin_data is not None, has_stderr=has_stderr)
        except OSError:
            supervisor.is_busy = False
            raise
        self._our_streams = self._pipes.our_ends
        for stream, name in self._our_streams.items():
            os.set_blocking(stream, name != "stdin")

    def start(self, cwd: Path | None, env: Mapping[str, str] | None) -> None:
        """Start the command, and wait until it runs.

        Raises:
            StartError: It cannot be started.
        """
        try:
            self._supervisor.send_command(encode_command(self._argv, env, self._supervisor.grace, cwd), self._pipes)
        except OSError as error:
            raise StartError.from_os_error(self._argv[0], error) from error
        while not self._pid:
            for report in self._supervisor.read_reports():
                self._handle_report(report)

    def _handle_report(self, report: Sequence[str]) -> None:
        match report:
            case ["started", pid]:
                self._pid = int(pid)
            case ["failed", number, *_]:
                self._is_done = True
                raise StartError(self._argv[0], os.strerror(int(number)))
            case ["exited", code]:
                self.exit_code = int(code)
            case ["done"]:
                self._is_done = True
            case ["survived", *pids]:
                _get_logger().error("kill.fail pids=%s", ",".join(pids))
            case _ if not self._pid:
                raise StartError(self._argv[0], "its supervisor process is not running")
            case _:
                self._kill_group()

    def _kill_group(self) -> None:
        if not self._supervisor.is_stopped:
            # The supervisor was killed; only the group can still be reached.
            _get_logger().error("supervisor.lost command=%d", self._pid)
            with suppress(ProcessLookupError):
                os.killpg(self._pid, 9)
        self._supervisor.close()
        self._is_done = True

    def read_output(self, timeout: float | None, *, renew_timeout: bool = False) -> Iterator[tuple[str, bytes]]:
        """Yield stream name and output, until the command has ended and everything is read.

        Raises:
            TimeoutError: It took longer; with `renew_timeout`, than that between two pieces.
        """
        poll = select.poll()
        for stream, name in self._our_streams.items():
            poll.register(stream, select.POLLOUT if name == "stdin" else select.POLLIN)
        poll.register(self._supervisor, select.POLLIN)
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._our_streams or not self._is_done:
            ready = poll.poll(self._poll_timeout(deadline))
            if not ready and self._is_done:
                return  # a process survived the kill and holds the pipes open
            if not ready:
                raise TimeoutError
            for stream, _ in ready:
                if piece := self._transfer_data(stream, poll):
                    yield self._our_streams[stream], piece
            if renew_timeout and timeout is not None:
                deadline = time.monotonic() + timeout

    def _poll_timeout(self, deadline: float | None) -> float | None:
        if self._is_done:
            return DRAIN_TIMEOUT_SECONDS * 1000
        return None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000

    def _transfer_data(self, stream: int, poll: select.poll) -> bytes:
        """Transfer available data through one of the pipes; return the command's output."""
        match self._our_streams.get(stream):
            case None:
                for report in self._supervisor.read_reports():
                    self._handle_report(report)
                if self._is_done:
                    poll.unregister(stream)
                return b""
            case "stdin":
                self._write_stdin(stream, poll)
                return b""
        piece = os.read(stream, READ_CHUNK_BYTES)
        if not piece:
            self._close_stream(stream, poll)
        return piece

    def _write_stdin(self, stream: int, poll: select.poll) -> None:
        try:
            sent = os.write(stream, (self._stdin_data or b"")[:READ_CHUNK_BYTES]) if self._stdin_data else 0
        except BrokenPipeError:  # the command need not read to the end
            self._stdin_data = b""
        else:
            self._stdin_data = (self._stdin_data or b"")[sent:]
        if not self._stdin_data:
            self._close_stream(stream, poll)

    def _close_stream(self, stream: int, poll: select.poll) -> None:
        poll.unregister(stream)
        del self._our_streams[stream]
        os.close(stream)

    def end(self) -> None:
        """Release the command; if it has not finished, terminate it and the supervisor."""
        if not self._is_done:
            self._supervisor.close()
        self._supervisor.is_busy = False
        self._pipes.close()

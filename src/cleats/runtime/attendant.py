"""A supervisor that runs one command after the other, and the pipes of the one that runs.

Private to `blocking`, which says what is promised. Not for Windows, which has no supervisor.
"""

import errno
import marshal
import os
import select
import sys
import time

# `socket` makes enums of all its numbers, which takes as long as git to answer.
from _socket import SCM_RIGHTS, SHUT_WR, SOL_SOCKET, socketpair
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleats.runtime.command import DRAIN, GRACE, StartError, find_supervisor

if TYPE_CHECKING:
    from logging import Logger

PATIENCE: Final = 15.0
"""Seconds beyond the grace period for the supervisor to be done, as in `tree`."""

PIECE: Final = 1 << 16
LIFELINE: Final = 3
"""The supervisor's descriptor for it."""

KILLED: Final = -9
"""The exit code of a command whose supervisor was killed, since nobody will ever know."""


class Attendant:
    """A supervisor, from its first command on. For one command at a time."""

    def __init__(self) -> None:
        self.is_busy = False
        self.is_stopped = False
        self._pid = 0
        self._said = b""

    def order(self, payload: bytes, streams: Sequence[int]) -> None:
        """Have a command started, with these for its three streams."""
        if self.is_stopped:
            raise InterruptedError(errno.EINTR, "nobody waits for it any more")
        if not self._pid:
            self._start()
        passed = b"".join(stream.to_bytes(4, sys.byteorder) for stream in streams)
        size = len(payload).to_bytes(4, "big")
        self._lifeline.sendmsg([size], [(SOL_SOCKET, SCM_RIGHTS, passed)])
        self._lifeline.sendall(payload)

    def _start(self) -> None:
        self._lifeline, theirs = socketpair()
        self._said = b""
        try:
            # Only the supervisor's end of the lifeline is passed on: a copy of ours, in any child,
            # would outlive us, and the end of file would never come.
            self._pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", find_supervisor(), str(LIFELINE), "0"],
                os.environ,  # noqa: TID251 - handed on, as every command gets it
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), LIFELINE),
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
                    (os.POSIX_SPAWN_DUP2, 0, 1),
                ],
            )
        finally:
            theirs.close()

    def fileno(self) -> int:
        return self._lifeline.fileno()

    def reports(self) -> Iterator[list[str]]:
        """What it has to say by now, and an empty line when it is gone. Waits for the first."""
        while True:
            try:
                heard = self._lifeline.recv(4096)
            except ConnectionResetError:
                heard = b""
            if not heard:
                yield []
                return
            *lines, self._said = (self._said + heard).split(b"\n")
            if lines:
                yield from (line.decode().split() for line in lines)
                return

    def stop(self) -> None:
        """End whatever runs, for good; whoever waits for it sees that. For any thread."""
        self.is_stopped = True
        if self._pid:
            with suppress(OSError):  # when the other side is gone already
                self._lifeline.shutdown(SHUT_WR)

    def close(self) -> None:
        """End whatever runs, and wait for the supervisor's end. Safe to repeat."""
        if not self._pid:
            return
        with suppress(OSError):
            self._lifeline.shutdown(SHUT_WR)
        pid, self._pid = self._pid, 0
        self._lifeline.settimeout(GRACE + PATIENCE)
        try:
            while all(map(_noted, self.reports())):
                pass
        except TimeoutError:
            os.kill(pid, 9)
        self._lifeline.close()
        os.waitpid(pid, 0)


def _log() -> "Logger":
    import logging  # noqa: PLC0415 - there is hardly ever anything to say, and it takes 5 ms

    return logging.getLogger(__name__)


def _noted(report: Sequence[str]) -> bool:
    if report[:1] == ["survived"]:
        _log().error("kill.fail pids=%s", ",".join(report[1:]))
    return bool(report)


class Command:
    """One command of an attendant, started, with its pipes. Leaving it early ends all."""

    def __init__(
        self, attendant: Attendant, argv: Sequence[str], given: bytes | None, *, has_stderr: bool
    ) -> None:
        self.exit_code = KILLED
        self._attendant = attendant
        self._argv = argv
        self._given = given
        self._is_done = False
        self._pid = 0
        self._ours: dict[int, str] = {}
        self._theirs: list[int] = []
        attendant.is_busy = True
        try:
            self._open(has_stderr=has_stderr)
        except OSError:
            self._close()
            raise

    def _open(self, *, has_stderr: bool) -> None:
        if self._given is None:
            self._theirs.append(os.open(os.devnull, os.O_RDONLY))
        else:
            reading, writing = os.pipe()
            self._theirs.append(reading)
            self._ours[writing] = "stdin"
            os.set_blocking(writing, False)
        for name in ("stdout", "stderr")[: 1 + has_stderr]:
            reading, writing = os.pipe()
            self._theirs.append(writing)
            self._ours[reading] = name

    def start(self, cwd: Path | None, env: Mapping[str, str] | None) -> None:
        """Wait until it runs.

        Raises:
            StartError: it cannot be started.
        """
        pairs = None if env is None else {os.fsencode(k): os.fsencode(v) for k, v in env.items()}
        argv = [os.fsencode(word) for word in self._argv]
        order = marshal.dumps((argv, pairs, GRACE, os.fsencode(cwd or "")))
        try:
            self._attendant.order(order, [*self._theirs, 2][:3])
        except OSError as error:
            raise StartError.because(self._argv[0], error) from error
        while self._theirs:
            os.close(self._theirs.pop())
        while not self._pid:
            for report in self._attendant.reports():
                self._hear(report)

    def _hear(self, report: Sequence[str]) -> None:
        match report:
            case ["started", pid]:
                self._pid = int(pid)
            case ["failed", number]:
                self._is_done = True
                raise StartError(self._argv[0], os.strerror(int(number)))
            case ["exited", code]:
                self.exit_code = int(code)
            case ["done"]:
                self._is_done = True
            case ["survived", *pids]:
                _log().error("kill.fail pids=%s", ",".join(pids))
            case _ if not self._pid:
                raise StartError(self._argv[0], "its supervisor does not run")
            case _:
                self._stand_in()

    def _stand_in(self) -> None:
        if not self._attendant.is_stopped:
            # The supervisor was killed; the group is all that we still reach.
            _log().error("supervisor.lost command=%d", self._pid)
            with suppress(ProcessLookupError):
                os.killpg(self._pid, 9)
        self._attendant.close()
        self._is_done = True

    def heard(self, timeout: float | None, *, renewed: bool = False) -> Iterator[tuple[str, bytes]]:
        """What it says, with the name of the stream, until it has ended and all is read.

        Raises:
            TimeoutError: it took longer; with `renewed`, than that from one piece to the next.
        """
        poll = select.poll()
        for stream, name in self._ours.items():
            poll.register(stream, select.POLLOUT if name == "stdin" else select.POLLIN)
        poll.register(self._attendant, select.POLLIN)
        until = None if timeout is None else time.monotonic() + timeout
        while self._ours or not self._is_done:
            ready = poll.poll(self._patience(until))
            if not ready and self._is_done:
                return  # somebody survived the kill and holds the pipes open
            if not ready:
                raise TimeoutError
            for stream, _ in ready:
                if piece := self._moved(stream, poll):
                    yield self._ours[stream], piece
            if renewed and timeout is not None:
                until = time.monotonic() + timeout

    def _patience(self, until: float | None) -> float | None:
        if self._is_done:
            return DRAIN * 1000
        return None if until is None else max(0.0, until - time.monotonic()) * 1000

    def _moved(self, stream: int, poll: select.poll) -> bytes:
        """Move what can be moved through one of the pipes; return what the command said."""
        match self._ours.get(stream):
            case None:
                for report in self._attendant.reports():
                    self._hear(report)
                if self._is_done:
                    poll.unregister(stream)
                return b""
            case "stdin":
                self._feed(stream, poll)
                return b""
        piece = os.read(stream, PIECE)
        if not piece:
            self._drop(stream, poll)
        return piece

    def _feed(self, stream: int, poll: select.poll) -> None:
        try:
            sent = os.write(stream, (self._given or b"")[:PIECE]) if self._given else 0
        except BrokenPipeError:  # nobody has to read to the end
            self._given = b""
        else:
            self._given = (self._given or b"")[sent:]
        if not self._given:
            self._drop(stream, poll)

    def _drop(self, stream: int, poll: select.poll) -> None:
        poll.unregister(stream)
        del self._ours[stream]
        os.close(stream)

    def end(self) -> None:
        """Let go of it; if it is not done, end it and the attendant with it."""
        if not self._is_done:
            self._attendant.close()
        self._close()

    def _close(self) -> None:
        self._attendant.is_busy = False
        for stream in (*self._ours, *self._theirs):
            os.close(stream)
        self._ours.clear()
        self._theirs.clear()

"""The process's stdin and stdout as a wire of bytes that nothing else can touch.

While a wire is held, file descriptor 0 reads nothing and 1 leads to stderr, so that a stray
`print` or a child's output can never break a frame. Reads are callbacks and writes never block:
what the peer does not read is buffered, and past a limit we stop reading from the peer.
"""

import asyncio
import os
import select
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Protocol, TypeAlias

CHUNK = 256 * 1024
"""Bytes asked for in one read; four pipes full, so a burst is one wake-up."""

HIGH_WATER = 16 << 20
"""Unread bytes after which we read no more from a peer that does not read from us."""

Receive: TypeAlias = Callable[[bytes], None]
"""Called with each chunk of bytes; with none of them at the end."""


class Wire(Protocol):
    """A duplex stream of bytes. stdio is one, a test's in-memory pair is another."""

    def receive(self, callback: Receive) -> None:
        """Start reading."""

    def write(self, data: bytes) -> None:
        """Send bytes, now or as soon as the peer takes them."""

    def stop(self) -> None:
        """Read no more."""

    @property
    def broken(self) -> bool:
        """Whether the peer has stopped listening for good."""

    async def flushed(self) -> None:
        """Wait until everything written has left, or the peer is gone."""


class StdioWire:
    """A wire over two file descriptors, which it does not close."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        self._in = in_fd
        self._out = out_fd
        self._loop = asyncio.get_running_loop()
        self._callback: Receive = lambda _chunk: None
        self._reading = False
        self._held = False
        self._stopped = False
        self._unsent = bytearray()
        self._broken = False
        self._flushed: list[asyncio.Future[None]] = []
        self._resumed = threading.Event()
        self._thread: threading.Thread | None = None
        # Files and terminals take what they are given; only pipes and sockets can be full.
        mode = os.fstat(out_fd).st_mode
        self._can_wait = sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
        if self._can_wait:
            os.set_blocking(out_fd, False)
        self._watches = self._can_wait and stat.S_ISFIFO(mode)

    def receive(self, callback: Receive) -> None:
        self._callback = callback
        if self._watches:
            # Nothing can be read from our end of this pipe, so the only news is that its other
            # end was closed. (A socket may be stdin as well, and is not watched.)
            self._loop.add_reader(self._out, self._deserted)
        self._resume()

    def stop(self) -> None:
        self._stopped = True
        self._pause()

    def pause(self) -> None:
        """Read nothing for now; what the peer sends waits in the pipe, and then at the peer."""
        self._held = True
        self._pause()

    def resume(self) -> None:
        """Read on, unless the peer still owes us the reading of too many answers."""
        self._held = False
        if len(self._unsent) <= HIGH_WATER:
            self._resume()

    @property
    def broken(self) -> bool:
        if not self._broken and self._can_wait:
            poller = select.poll()
            poller.register(self._out, 0)
            self._broken = any(event & select.POLLERR for _, event in poller.poll(0))
        return self._broken

    def write(self, data: bytes) -> None:
        if self._broken:
            return
        if not self._unsent:
            data = data[self._send(data) :]
            if not data or self._broken:
                return
            self._loop.add_writer(self._out, self._writable)
        self._unsent += data
        if len(self._unsent) > HIGH_WATER:
            self._pause()

    async def flushed(self) -> None:
        if self._unsent and not self._broken:
            done = self._loop.create_future()
            self._flushed.append(done)
            await done

    def close(self) -> None:
        """Let go of the descriptors and leave them as they were."""
        self.stop()
        if self._watches:
            self._loop.remove_reader(self._out)
        if self._unsent:
            self._loop.remove_writer(self._out)
        if self._can_wait:
            with suppress(OSError):
                os.set_blocking(self._out, True)

    def _send(self, data: bytes | bytearray) -> int:
        try:
            if self._can_wait:
                return os.write(self._out, data)
            view = memoryview(data)
            while view:
                view = view[os.write(self._out, view) :]
            return len(data)
        except BlockingIOError:
            return 0
        except OSError:  # EPIPE and its kin: nobody will ever read this
            self._deserted()
            return 0

    def _deserted(self) -> None:
        """The peer has stopped listening: there is no point in hearing what else it wants."""
        if self._watches:
            self._watches = False
            self._loop.remove_reader(self._out)
        self._broken = True
        if not self._stopped:
            self.stop()
            self._loop.call_soon(self._callback, b"")

    def _writable(self) -> None:
        sent = self._send(self._unsent)
        del self._unsent[:sent]
        if self._unsent and not self._broken:
            return
        self._unsent.clear()
        self._loop.remove_writer(self._out)
        self._resume()
        for done in self._flushed:
            if not done.done():
                done.set_result(None)
        self._flushed.clear()

    def _resume(self) -> None:
        if self._reading or self._held or self._stopped:
            return
        self._reading = True
        if self._thread is not None:
            self._resumed.set()
            return
        try:
            self._loop.add_reader(self._in, self._readable)
        except (OSError, NotImplementedError):  # a regular file; or Windows, which has no readiness
            self._resumed.set()
            self._thread = threading.Thread(target=self._read_blocking, name="stdin", daemon=True)
            self._thread.start()

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            self._resumed.clear()
            if self._thread is None:
                self._loop.remove_reader(self._in)

    def _readable(self) -> None:
        try:
            chunk = os.read(self._in, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.stop()
        self._callback(chunk)

    def _read_blocking(self) -> None:
        chunk = b"\n"
        while chunk and not self._stopped:
            self._resumed.wait()
            try:
                chunk = os.read(self._in, CHUNK)
            except OSError:
                chunk = b""
            with suppress(RuntimeError):  # the loop is closed: the server is gone
                self._loop.call_soon_threadsafe(self._deliver, chunk)

    def _deliver(self, chunk: bytes) -> None:
        if not self._stopped:
            if not chunk:
                self.stop()
            self._callback(chunk)


@contextmanager
def claimed() -> Iterator[tuple[int, int]]:
    """Take fd 0 and 1 away from everyone else; give them back at the end.

    Claim before anything is imported that might print.
    """
    with suppress(AttributeError):  # there is no sys.stdout when fd 1 came closed
        sys.stdout.flush()
    _keep_open(0, os.O_RDONLY)
    _keep_open(1, os.O_WRONLY)
    _keep_open(2, os.O_WRONLY)
    in_fd, out_fd = _above_standard(0), _above_standard(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield in_fd, out_fd
    finally:
        with suppress(AttributeError, OSError, ValueError):
            sys.stdout.flush()
        os.dup2(in_fd, 0)
        os.dup2(out_fd, 1)
        for fd in (nothing, in_fd, out_fd):
            os.close(fd)


@asynccontextmanager
async def stdio_wire(in_fd: int, out_fd: int) -> AsyncIterator[StdioWire]:
    """A wire over claimed descriptors for as long as the block runs."""
    wire = StdioWire(in_fd, out_fd)
    try:
        yield wire
    finally:
        wire.close()


def _keep_open(fd: int, mode: int) -> None:
    """Let a standard descriptor that came closed lead nowhere, instead of to the next file."""
    try:
        os.fstat(fd)
    except OSError:
        nowhere = os.open(os.devnull, mode)
        if nowhere != fd:
            os.dup2(nowhere, fd)
            os.close(nowhere)


def _above_standard(fd: int) -> int:
    """A duplicate that is not itself a standard descriptor and does not reach children."""
    if sys.platform == "win32":
        return os.dup(fd)
    import fcntl  # noqa: PLC0415 - not on Windows

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)

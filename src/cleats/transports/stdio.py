"""The process's stdin and stdout as an exclusive wire of bytes.

While a wire is claimed, file descriptor 0 reads nothing and 1 leads to stderr, so that a stray `print` or a child's
output can never break a frame. Reads are callbacks and writes never block: output that the peer does not read is
buffered, and past a limit we stop reading from the peer.
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

READ_CHUNK_BYTES = 256 * 1024
"""The size of one read; four full pipes, so that a burst needs one wake-up."""

HIGH_WATER_BYTES = 16 << 20
"""The amount of unsent output above which we stop reading from the peer."""

ReceiveCallback: TypeAlias = Callable[[bytes], None]
"""A function called with each chunk of bytes, and with an empty chunk at the end."""


class Wire(Protocol):
    """A duplex stream of bytes, such as stdio or a test's in-memory pair."""

    def receive(self, callback: ReceiveCallback) -> None:
        """Start reading, or go on after a pause, with this callback."""

    def write(self, data: bytes) -> None:
        """Send bytes now, or as soon as the peer accepts them."""

    def pause(self) -> None:
        """Pause reading; the peer's data waits in the pipe, and then at the peer."""

    def resume(self) -> None:
        """Resume reading, unless too much output is still unsent."""

    def stop(self) -> None:
        """Stop reading."""

    @property
    def is_broken(self) -> bool:
        """True if the peer has stopped listening for good."""

    async def wait_flushed(self) -> None:
        """Wait until everything written has been sent or the peer is gone."""


class StdioWire:
    """A wire over two file descriptors, which it does not close."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        self._in_fd, self._out_fd = in_fd, out_fd
        self._loop = asyncio.get_running_loop()
        self._callback: ReceiveCallback = lambda _chunk: None
        self._reading = self._paused = self._stopped = self._broken = False
        self._unsent = bytearray()
        self._flush_waiters: list[asyncio.Future[None]] = []
        self._resume_event = threading.Event()
        self._thread: threading.Thread | None = None
        # Files and terminals accept every write; only pipes and sockets can be full.
        mode = os.fstat(out_fd).st_mode
        self._is_nonblocking = sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
        if self._is_nonblocking:
            os.set_blocking(out_fd, False)
        self._watches_peer = self._is_nonblocking and stat.S_ISFIFO(mode)

    def receive(self, callback: ReceiveCallback) -> None:
        self._callback, self._paused = callback, False
        if self._watches_peer:
            # Nothing can be read from our end of this pipe, so the only possible event is that the other end was
            # closed. (A socket may also be stdin, and is not watched.)
            self._loop.add_reader(self._out_fd, self._handle_peer_closed)
        self._resume_reading()

    def stop(self) -> None:
        self._stopped = True
        self._pause_reading()

    def pause(self) -> None:
        self._paused = True
        self._pause_reading()

    def resume(self) -> None:
        self._paused = False
        if len(self._unsent) <= HIGH_WATER_BYTES:
            self._resume_reading()

    @property
    def is_broken(self) -> bool:
        if not self._broken and self._is_nonblocking:
            poller = select.poll()
            poller.register(self._out_fd, 0)
            self._broken = any(event & select.POLLERR for _, event in poller.poll(0))
        return self._broken

    def write(self, data: bytes) -> None:
        if self._broken:
            return
        if not self._unsent:
            data = data[self._send_bytes(data) :]
            if not data or self._broken:
                return
            self._loop.add_writer(self._out_fd, self._handle_writable)
        self._unsent += data
        if len(self._unsent) > HIGH_WATER_BYTES:
            self._pause_reading()

    async def wait_flushed(self) -> None:
        if self._unsent and not self._broken:
            waiter = self._loop.create_future()
            self._flush_waiters.append(waiter)
            await waiter

    def close(self) -> None:
        """Release the descriptors and restore their blocking mode."""
        self.stop()
        if self._watches_peer:
            self._loop.remove_reader(self._out_fd)
        if self._unsent:
            self._loop.remove_writer(self._out_fd)
        if self._is_nonblocking:
            with suppress(OSError):
                os.set_blocking(self._out_fd, True)

    def _send_bytes(self, data: bytes | bytearray) -> int:
        try:
            if self._is_nonblocking:
                return os.write(self._out_fd, data)
            view = memoryview(data)
            while view:
                view = view[os.write(self._out_fd, view) :]
            return len(data)
        except BlockingIOError:
            return 0
        except OSError:  # EPIPE and similar errors: nobody will ever read this
            self._handle_peer_closed()
            return 0

    def _handle_peer_closed(self) -> None:
        if self._watches_peer:
            self._watches_peer = False
            self._loop.remove_reader(self._out_fd)
        self._broken = True
        if not self._stopped:
            self.stop()
            self._loop.call_soon(self._callback, b"")

    def _handle_writable(self) -> None:
        sent = self._send_bytes(self._unsent)
        del self._unsent[:sent]
        if self._unsent and not self._broken:
            return
        self._unsent.clear()
        self._loop.remove_writer(self._out_fd)
        self._resume_reading()
        for waiter in self._flush_waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._flush_waiters.clear()

    def _resume_reading(self) -> None:
        if self._reading or self._paused or self._stopped:
            return
        self._reading = True
        if self._thread is not None:
            self._resume_event.set()
            return
        try:
            self._loop.add_reader(self._in_fd, self._handle_readable)
        except (OSError, NotImplementedError):  # a regular file; or Windows, which has no readiness
            self._resume_event.set()
            self._thread = threading.Thread(target=self._read_blocking, name="stdin", daemon=True)
            self._thread.start()

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._resume_event.clear()
            if self._thread is None:
                self._loop.remove_reader(self._in_fd)

    def _handle_readable(self) -> None:
        try:
            chunk = os.read(self._in_fd, READ_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._deliver_chunk(chunk)

    def _read_blocking(self) -> None:
        chunk = b"\n"
        while chunk and not self._stopped:
            self._resume_event.wait()
            try:
                chunk = os.read(self._in_fd, READ_CHUNK_BYTES)
            except OSError:
                chunk = b""
            with suppress(RuntimeError):  # the loop is closed: the server is gone
                self._loop.call_soon_threadsafe(self._deliver_chunk, chunk)

    def _deliver_chunk(self, chunk: bytes) -> None:
        if not self._stopped:
            if not chunk:
                self.stop()
            self._callback(chunk)


@contextmanager
def claim_stdio() -> Iterator[tuple[int, int]]:
    """Reserve descriptors 0 and 1 until the block ends; call it before importing anything that might print."""
    with suppress(AttributeError):  # there is no sys.stdout when fd 1 came closed
        sys.stdout.flush()
    for fd, mode in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
        _ensure_open(fd, mode)
    in_fd, out_fd = _duplicate_fd(0), _duplicate_fd(1)
    null_fd = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(null_fd, 0)
        os.dup2(2, 1)
        yield in_fd, out_fd
    finally:
        with suppress(AttributeError, OSError, ValueError):
            sys.stdout.flush()
        os.dup2(in_fd, 0)
        os.dup2(out_fd, 1)
        for fd in (null_fd, in_fd, out_fd):
            os.close(fd)


@asynccontextmanager
async def open_stdio_wire(in_fd: int, out_fd: int) -> AsyncIterator[StdioWire]:
    """Open a wire over claimed descriptors for the duration of the block."""
    wire = StdioWire(in_fd, out_fd)
    try:
        yield wire
    finally:
        wire.close()


def _ensure_open(fd: int, mode: int) -> None:
    """Point a closed standard descriptor at the null device, so that no file reuses its number."""
    try:
        os.fstat(fd)
    except OSError:
        null_fd = os.open(os.devnull, mode)
        if null_fd != fd:
            os.dup2(null_fd, fd)
            os.close(null_fd)


def _duplicate_fd(fd: int) -> int:
    """Duplicate a descriptor to a number above 2 that children do not inherit."""
    if sys.platform == "win32":
        return os.dup(fd)
    import fcntl  # noqa: PLC0415 - not on Windows

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)

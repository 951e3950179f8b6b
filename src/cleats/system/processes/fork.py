"""A forked copy of this process that works for it, and the pipe between the two.

Does what `multiprocessing` does where processes can be forked, without the hundred modules that it
loads for other platforms: loading them takes as long as reading a small file.
"""

import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

LENGTH_PREFIX_BYTES: Final = 8
"""The length of the size that precedes each message."""

READ_CHUNK_BYTES: Final = 1 << 20


class ForkChannel:
    """One end of a pipe for picklable values."""

    def __init__(self, read_descriptor: int, write_descriptor: int) -> None:
        self._read_descriptor, self._write_descriptor = read_descriptor, write_descriptor

    @classmethod
    def create_pair(cls) -> tuple["ForkChannel", "ForkChannel"]:
        (first_read, first_write), (second_read, second_write) = os.pipe(), os.pipe()
        return cls(second_read, first_write), cls(first_read, second_write)

    def fileno(self) -> int:
        """Return the descriptor to poll for incoming values."""
        return self._read_descriptor

    def list_descriptors(self) -> tuple[int, int]:
        return self._read_descriptor, self._write_descriptor

    def send(self, value: Any) -> None:
        """Send a value, and wait until it is written.

        Raises:
            OSError: The other side is gone.
        """
        packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        rest = memoryview(len(packed).to_bytes(LENGTH_PREFIX_BYTES, "big") + packed)
        while rest:
            rest = rest[os.write(self._write_descriptor, rest) :]

    def recv(self) -> Any:
        """Wait for a value.

        Raises:
            EOFError: The other side is gone.
        """
        return pickle.loads(self._read(int.from_bytes(self._read(LENGTH_PREFIX_BYTES), "big")))  # noqa: S301

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = os.read(self._read_descriptor, min(size, READ_CHUNK_BYTES))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        for descriptor in self.list_descriptors():
            os.close(descriptor)


class ForkedProcess:
    """A copy of this process, which starts at the call that created it."""

    def __init__(self, serve: Callable[[ForkChannel], None], channel: ForkChannel) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if not self._pid:
            status = 1
            try:
                close_other_descriptors(*channel.list_descriptors())
                serve(channel)
                status = 0
            finally:
                os._exit(status)  # buffers and exit handlers belong to the original process

    def kill(self) -> None:
        """Kill the process. Call it only once, and before `join`."""
        os.kill(self._pid, 9)

    def join(self) -> None:
        """Wait for the process to end."""
        os.waitpid(self._pid, 0)


def fork_process(serve: Callable[[ForkChannel], None]) -> tuple[ForkedProcess, ForkChannel]:
    """Fork this process; the copy serves the other end of a channel."""
    parent_channel, child_channel = ForkChannel.create_pair()
    with warnings.catch_warnings():
        # Python warns that threads do not survive a fork. The existing ones belong to numpy and
        # Tantivy, and the child does not need them.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = ForkedProcess(serve, child_channel)
    child_channel.close()
    return process, parent_channel


def close_other_descriptors(*descriptors: int) -> None:
    """Close all other descriptors but the streams: locks and pipes must end with their owner."""
    previous = 2
    for descriptor in sorted(descriptors):
        os.closerange(previous + 1, descriptor)
        previous = descriptor
    os.closerange(previous + 1, os.sysconf("SC_OPEN_MAX"))


@contextmanager
def run_in_child_process(work: Callable[[], bytes]) -> Iterator[Callable[[], bytes | None]]:
    """Run the work in a child process; yield a function that waits for its result.

    The result is None if there is no such process, or if it died: then the caller must do the work.
    Leaving the block without waiting ends the process.
    """
    if sys.platform != "linux":
        yield lambda: None
        return

    def send_result(channel: ForkChannel) -> None:
        with suppress(OSError, KeyboardInterrupt):  # the parent no longer waits for it
            channel.send(work())

    def wait_for_result() -> bytes | None:
        try:
            result: bytes = parent_channel.recv()
        except EOFError:
            return None
        return result

    process, parent_channel = fork_process(send_result)
    try:
        yield wait_for_result
    finally:
        parent_channel.close()
        process.kill()
        process.join()

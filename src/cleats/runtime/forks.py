"""A copy of this process that works for it, and the pipe between the two.

What `multiprocessing` does where processes can be forked, without the hundred modules that it
loads for where they cannot: those take as long as to read a small file.
"""

import os
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any, Final

SIZE: Final = 8
"""Bytes of the length before each message."""

PIECE: Final = 1 << 20


class Channel:
    """One end of a pipe for values, which both sides know how to make again."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing

    @classmethod
    def pair(cls) -> tuple["Channel", "Channel"]:
        (here, there), (back, forth) = os.pipe(), os.pipe()
        return cls(back, there), cls(here, forth)

    def fileno(self) -> int:
        """What to listen to."""
        return self._reading

    def descriptors(self) -> tuple[int, int]:
        return self._reading, self._writing

    def send(self, value: Any) -> None:
        """Send a value, and wait until it is taken.

        Raises:
            OSError: the other side is gone.
        """
        packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        rest = memoryview(len(packed).to_bytes(SIZE, "big") + packed)
        while rest:
            rest = rest[os.write(self._writing, rest) :]

    def recv(self) -> Any:
        """Wait for a value.

        Raises:
            EOFError: the other side is gone.
        """
        return pickle.loads(self._read(int.from_bytes(self._read(SIZE), "big")))  # noqa: S301

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = os.read(self._reading, min(size, PIECE))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        for descriptor in self.descriptors():
            os.close(descriptor)


class Fork:
    """A copy of this process, from the call that made it on."""

    def __init__(self, serve: Callable[[Channel], None], channel: Channel) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if not self._pid:
            status = 1
            try:
                keep_only(*channel.descriptors())
                serve(channel)
                status = 0
            finally:
                os._exit(status)  # what is buffered or registered belongs to the original

    def kill(self) -> None:
        """End it. Only once, and before it is waited for."""
        os.kill(self._pid, 9)

    def join(self) -> None:
        """Wait for its end."""
        os.waitpid(self._pid, 0)


def fork(serve: Callable[[Channel], None]) -> tuple[Fork, Channel]:
    """Let a copy of this process serve at the other end of a channel."""
    ours, theirs = Channel.pair()
    with warnings.catch_warnings():
        # Python warns that threads do not survive a fork. Those there are belong to numpy and
        # Tantivy, and who works for us does not need them.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = Fork(serve, theirs)
    theirs.close()
    return process, ours


def keep_only(*descriptors: int) -> None:
    """Close all but the streams and these: locks must go with their holder, pipes with theirs."""
    before = 2
    for descriptor in sorted(descriptors):
        os.closerange(before + 1, descriptor)
        before = descriptor
    os.closerange(before + 1, os.sysconf("SC_OPEN_MAX"))

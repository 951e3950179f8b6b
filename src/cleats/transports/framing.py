"""Bytes to frames and back. No I/O, no JSON, no async: feed bytes, take frames."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A frame was over the limit. Its bytes are gone; the stream stays usable."""

    limit: int


@dataclass(slots=True)
class Lines:
    """One body per line, ended by LF or CRLF; blank lines are nothing.

    Never holds more than `limit` bytes: a longer line is refused the moment it is known to be
    longer, and the rest of it is thrown away as it arrives.
    """

    limit: int
    _buffer: bytearray = field(default_factory=bytearray)
    _skipping: bool = False

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLarge]:
        """Take bytes, give every frame they complete."""
        if not self._buffer and not self._skipping and chunk.endswith(b"\n"):
            yield from self._whole(chunk)
            return
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._buffer += chunk[start:end]
            start = end + 1
            if self._skipping:
                self._skipping = False  # the tail of a line already refused
            elif len(self._buffer) > self.limit:
                yield TooLarge(self.limit)
            elif line := bytes(self._buffer).strip():
                yield line
            self._buffer.clear()
        if not self._skipping:
            self._buffer += chunk[start:]
            if len(self._buffer) > self.limit:
                self._skipping = True
                self._buffer.clear()
                yield TooLarge(self.limit)

    def close(self) -> Iterator[bytes | TooLarge]:
        """The stream ended: a last line without its newline is still a line."""
        if not self._skipping and (line := bytes(self._buffer).strip()):
            yield line
        self._buffer.clear()
        self._skipping = False

    def _whole(self, chunk: bytes) -> Iterator[bytes | TooLarge]:
        """The common case: a read that ends where a line does, with nothing left from before."""
        for line in chunk.split(b"\n"):
            if len(line) > self.limit:
                yield TooLarge(self.limit)
            elif stripped := line.strip():
                yield stripped

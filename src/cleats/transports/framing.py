"""Bytes to frames and back. No I/O, no JSON, no async: feed bytes, take frames."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A frame was over the limit. Its bytes are gone; the stream stays usable."""

    limit: int


@dataclass(frozen=True, slots=True)
class Unframed:
    """Bytes that are no frame. They are gone; the stream stays usable."""

    reason: str


Frame: TypeAlias = bytes | TooLarge | Unframed


@dataclass(slots=True)
class Lines:
    """One body per line, ended by LF or CRLF; blank lines are nothing.

    Never holds more than `limit` bytes and a CR: a longer line is refused the moment it is known
    to be longer, and the rest of it is thrown away as it arrives.
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
            elif self._is_over(self._buffer):
                yield TooLarge(self.limit)
            elif line := bytes(self._buffer).strip():
                yield line
            self._buffer.clear()
        if not self._skipping:
            self._buffer += chunk[start:]
            if self._is_over(self._buffer):
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
            if self._is_over(line):
                yield TooLarge(self.limit)
            elif stripped := line.strip():
                yield stripped

    def _is_over(self, line: bytes | bytearray) -> bool:
        return len(line) > self.limit and len(line) - line.endswith(b"\r") > self.limit


HEADER_LIMIT = 4096
"""Bytes that one line of a header may have; a real one has two dozen."""

HEADER_LINES = 32
"""Lines that one header may have; a real one has one or two."""

_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*(.*?)[ \t]*")
_WAY_BACK = re.compile(rb"content-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r?$", re.IGNORECASE)


def sized(body: bytes) -> bytes:
    """A body as a `ContentLength` frame."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@dataclass(slots=True)
class ContentLength:
    """One body after a header that says how long it is, ended by CRLF or LF and a blank line.

    A header line that is none is refused when it ends, not when the header does: a client that
    sends bare lines never sends the blank one, and would wait for ever. What led us astray may
    still be followed by good frames, so a line that ends in a Content-Length leads back, whatever
    stands before it (the raw newline after it cannot be part of a JSON body).
    """

    limit: int
    _buffer: bytearray = field(default_factory=bytearray)
    _length: int | None = None
    _lines: int = 0
    _body: bool = False
    _skip: int = 0
    _lost: bool = False
    _cutting: bool = False
    _told: bool = False

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Take bytes, give every frame they complete."""
        start = 0
        while start < len(chunk):
            if self._skip:
                passed = min(self._skip, len(chunk) - start)
                self._skip -= passed
                start += passed
            elif self._body:
                assert self._length is not None  # noqa: S101 - for the type checker
                end = start + self._length - len(self._buffer)
                self._buffer += chunk[start:end]
                start = min(end, len(chunk))
            else:
                end = chunk.find(b"\n", start)
                yield from self._grow(chunk[start : end if end >= 0 else len(chunk)])
                start = end + 1 if end >= 0 else len(chunk)
                if end >= 0:
                    yield from self._line()
            if self._body and len(self._buffer) == self._length:
                body = bytes(self._buffer)
                self._reset()
                yield body

    def close(self) -> Iterator[Frame]:
        """The stream ended: what was begun and not finished is refused."""
        if self._skip or self._body or self._lines or (self._buffer and not self._told):
            yield Unframed("the input ended in the middle of a frame")
        self._skip = 0
        self._cutting = self._told = False
        self._reset()

    def _grow(self, piece: bytes) -> Iterator[Frame]:
        """Add to the line of a header; of one that is too long only the end is kept."""
        self._buffer += piece
        if len(self._buffer) > HEADER_LIMIT and not self._cutting:
            self._cutting = True
            if not self._lost:  # else it may be the body of a header already refused
                self._told = True
                yield Unframed(_LONG)
        if self._cutting:
            del self._buffer[:-64]

    def _line(self) -> Iterator[Frame]:
        line = bytes(self._buffer).removesuffix(b"\r")
        self._buffer.clear()
        reason: str | None = None
        lost = self._lost or self._told
        if self._cutting:
            reason = None if self._told else _LONG
            self._cutting = self._told = False
        elif line.strip():
            reason = self._field(line)
            if reason is None:
                return
        elif self._length is None and self._lines:
            reason = "the header has no Content-Length"
        elif self._length is None:
            return  # blank lines between frames are nothing
        else:
            yield from self._begin(self._length)
            return
        back = _WAY_BACK.search(line)
        self._reset()
        self._lost = True
        if back is not None and reason != _SECOND:
            self._length, self._lines = int(back[1]), 1
        if reason is not None and not (lost and back is not None):
            yield Unframed(reason)

    def _field(self, line: bytes) -> str | None:
        """Take one line of the header; the reason when it is none."""
        found = _FIELD.fullmatch(line)
        if found is None:
            return "a header line is not `Name: value`"
        self._lines += 1
        if self._lines > HEADER_LINES:
            return f"the header has over {HEADER_LINES} lines"
        if found[1].lower() == b"content-length":
            if not re.fullmatch(rb"[0-9]{1,18}", found[2]):
                return "Content-Length is not a number"
            if self._length not in (None, int(found[2])):
                return _SECOND
            self._length = int(found[2])
        return None

    def _begin(self, length: int) -> Iterator[Frame]:
        """The header is over: its body comes."""
        self._reset()
        if length > self.limit:
            self._skip = length
            yield TooLarge(self.limit)
        else:
            self._length, self._body = length, True
            if not length:
                self._reset()
                yield b""

    def _reset(self) -> None:
        self._buffer.clear()
        self._length = None
        self._lines = 0
        self._body = False
        self._lost = False


_SECOND = "Content-Length is said twice, differently"
_LONG = f"a header line is over {HEADER_LIMIT} bytes"

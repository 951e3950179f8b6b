"""Conversion between bytes and frames. No I/O, no JSON, no async: feed bytes, take frames."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class OversizedFrame:
    """A frame over the size limit. Its bytes are dropped; the stream stays usable."""

    limit: int


@dataclass(frozen=True, slots=True)
class InvalidFrame:
    """Bytes that are not a frame. They are dropped; the stream stays usable."""

    reason: str


WireFrame: TypeAlias = bytes | OversizedFrame | InvalidFrame


@dataclass(slots=True)
class LineFramer:
    """A framer with one body per line, ended by LF or CRLF; blank lines are ignored.

    Never buffers more than `limit` bytes and a CR: a longer line is refused as soon as it is known to be too long, and
    the rest of it is discarded as it arrives.
    """

    limit: int
    _buffer: bytearray = field(default_factory=bytearray)
    _skipping: bool = False

    def feed(self, chunk: bytes) -> Iterator[bytes | OversizedFrame]:
        """Take bytes and yield every frame that they complete."""
        if not self._buffer and not self._skipping and chunk.endswith(b"\n"):
            yield from self._split_complete_lines(chunk)
            return
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._buffer += chunk[start:end]
            start = end + 1
            if self._skipping:
                self._skipping = False  # the tail of a line already refused
            elif self._is_oversized(self._buffer):
                yield OversizedFrame(self.limit)
            elif line := bytes(self._buffer).strip():
                yield line
            self._buffer.clear()
        if not self._skipping:
            self._buffer += chunk[start:]
            if self._is_oversized(self._buffer):
                self._skipping = True
                self._buffer.clear()
                yield OversizedFrame(self.limit)

    def close(self) -> Iterator[bytes | OversizedFrame]:
        """End the stream and yield a last line that has no newline."""
        if not self._skipping and (line := bytes(self._buffer).strip()):
            yield line
        self._buffer.clear()
        self._skipping = False

    def _split_complete_lines(self, chunk: bytes) -> Iterator[bytes | OversizedFrame]:
        """Split a chunk that ends with a newline while the buffer is empty: the common case."""
        for line in chunk.split(b"\n"):
            if self._is_oversized(line):
                yield OversizedFrame(self.limit)
            elif stripped := line.strip():
                yield stripped

    def _is_oversized(self, line: bytes | bytearray) -> bool:
        return len(line) > self.limit and len(line) - line.endswith(b"\r") > self.limit


MAX_HEADER_LINE_BYTES = 4096
"""The maximum length of one header line; a real one has two dozen bytes."""

MAX_HEADER_LINES = 32
"""The maximum number of lines in one header; a real one has one or two."""

_HEADER_FIELD_PATTERN = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*(.*?)[ \t]*")
_RESYNC_HEADER_PATTERN = re.compile(rb"content-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r?$", re.IGNORECASE)


def frame_body(body: bytes) -> bytes:
    """Return a body as a `ContentLengthFramer` frame."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@dataclass(slots=True)
class ContentLengthFramer:
    """A framer whose bodies follow a header that states their length.

    Header lines end in CRLF or LF, and a blank line ends the header.

    An invalid header line is refused when the line ends, not when the header does: a client that sends bare lines never
    sends the blank one, and would wait for ever. Good frames may still follow the bytes that broke the framing, so a
    line that ends in a Content-Length resynchronizes the stream, whatever precedes it (the raw newline after it cannot
    be part of a JSON body).
    """

    limit: int
    _buffer: bytearray = field(default_factory=bytearray)
    _body_length: int | None = None
    _header_lines: int = 0
    _in_body: bool = False
    _skip_bytes: int = 0
    _out_of_sync: bool = False
    _truncating: bool = False
    _reported: bool = False

    def feed(self, chunk: bytes) -> Iterator[WireFrame]:
        """Take bytes and yield every frame that they complete."""
        start = 0
        while start < len(chunk):
            if self._skip_bytes:
                skipped = min(self._skip_bytes, len(chunk) - start)
                self._skip_bytes -= skipped
                start += skipped
            elif self._in_body:
                assert self._body_length is not None  # noqa: S101 - for the type checker
                end = start + self._body_length - len(self._buffer)
                self._buffer += chunk[start:end]
                start = min(end, len(chunk))
            else:
                end = chunk.find(b"\n", start)
                yield from self._append_header(chunk[start : end if end >= 0 else len(chunk)])
                start = end + 1 if end >= 0 else len(chunk)
                if end >= 0:
                    yield from self._finish_header_line()
            if self._in_body and len(self._buffer) == self._body_length:
                body = bytes(self._buffer)
                self._reset()
                yield body

    def close(self) -> Iterator[WireFrame]:
        """End the stream and yield an error for an unfinished frame."""
        if self._skip_bytes or self._in_body or self._header_lines or (self._buffer and not self._reported):
            yield InvalidFrame("the input ended in the middle of a frame")
        self._skip_bytes = 0
        self._truncating = self._reported = False
        self._reset()

    def _append_header(self, piece: bytes) -> Iterator[WireFrame]:
        """Append to the current header line; keep only the end of a line that is too long."""
        self._buffer += piece
        if len(self._buffer) > MAX_HEADER_LINE_BYTES and not self._truncating:
            self._truncating = True
            if not self._out_of_sync:  # otherwise it may be the body of a header already refused
                self._reported = True
                yield InvalidFrame(_LONG_LINE_REASON)
        if self._truncating:
            del self._buffer[:-64]

    def _finish_header_line(self) -> Iterator[WireFrame]:
        line = bytes(self._buffer).removesuffix(b"\r")
        self._buffer.clear()
        reason: str | None = None
        was_out_of_sync = self._out_of_sync or self._reported
        if self._truncating:
            reason = None if self._reported else _LONG_LINE_REASON
            self._truncating = self._reported = False
        elif line.strip():
            reason = self._parse_header_field(line)
            if reason is None:
                return
        elif self._body_length is None and self._header_lines:
            reason = "the header has no Content-Length"
        elif self._body_length is None:
            return  # blank lines between frames are nothing
        else:
            yield from self._begin_body(self._body_length)
            return
        resync = _RESYNC_HEADER_PATTERN.search(line)
        self._reset()
        self._out_of_sync = True
        if resync is not None and reason != _CONFLICTING_LENGTH_REASON:
            self._body_length, self._header_lines = int(resync[1]), 1
        if reason is not None and not (was_out_of_sync and resync is not None):
            yield InvalidFrame(reason)

    def _parse_header_field(self, line: bytes) -> str | None:
        match = _HEADER_FIELD_PATTERN.fullmatch(line)
        if match is None:
            return "a header line is not `Name: value`"
        self._header_lines += 1
        if self._header_lines > MAX_HEADER_LINES:
            return f"the header has over {MAX_HEADER_LINES} lines"
        if match[1].lower() == b"content-length":
            if not re.fullmatch(rb"[0-9]{1,18}", match[2]):
                return "Content-Length is not a number"
            if self._body_length not in (None, int(match[2])):
                return _CONFLICTING_LENGTH_REASON
            self._body_length = int(match[2])
        return None

    def _begin_body(self, length: int) -> Iterator[WireFrame]:
        self._reset()
        if length > self.limit:
            self._skip_bytes = length
            yield OversizedFrame(self.limit)
        else:
            self._body_length, self._in_body = length, True
            if not length:
                self._reset()
                yield b""

    def _reset(self) -> None:
        self._buffer.clear()
        self._body_length = None
        self._header_lines = 0
        self._in_body = False
        self._out_of_sync = False


_CONFLICTING_LENGTH_REASON = "two Content-Length headers have different values"
_LONG_LINE_REASON = f"a header line is over {MAX_HEADER_LINE_BYTES} bytes"

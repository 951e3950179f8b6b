"""Some lines of a file, and the hashes of all of it, in one pass that keeps little in memory."""

from codecs import getincrementaldecoder
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import BinaryIO, Final

from cleats.contract.errors import ErrorCode, ToolError

LARGEST: Final = 256 << 20
"""Bytes of a file that is shown at all: all of it is read for its hash."""

SNIFFED: Final = 8 << 10
"""Bytes that are looked at to tell text from what is not. Git looks as far."""

BLOCK: Final = 1 << 20

_decoder = getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class Span:
    """Lines that are asked for, counted from 1; the end is included, 0 for the last line."""

    start: int = 1
    end: int = 0
    most: int = BLOCK
    """Bytes of text that may be given."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What was read."""

    text: str
    is_utf8: bool
    """Otherwise some bytes are shown as U+FFFD."""
    start: int
    end: int
    """The last line of which there is anything in the text; before `start` when it is empty."""
    lines: int
    """Of the whole file."""
    size: int
    sha256: str
    digest: bytes
    """As the index has it."""
    truncated: bool


def read(file: BinaryIO, span: Span, stopped: Callable[[], bool]) -> Excerpt:
    """Read a file to its end, and keep the lines of a span.

    Raises:
        ToolError: INVALID_REQUEST, it is not text, too large, or has fewer lines.
    """
    reader = _Reader(span)
    while not stopped() and (block := file.read(BLOCK)):
        reader.take(block)
    return reader.excerpt()


class _Reader:
    def __init__(self, span: Span) -> None:
        self._span = span
        self._sha, self._own = sha256(), blake2b(digest_size=16)
        self._size = 0
        self._line = 1
        """The line that the next byte belongs to."""
        self._ends_line = True
        self._kept = bytearray()
        self._full = False

    def take(self, block: bytes) -> None:
        if not self._size and b"\0" in block[:SNIFFED]:
            raise _refused("It is binary", "Only text is shown.")
        self._size += len(block)
        if self._size > LARGEST:
            raise _refused(
                f"It has more than {LARGEST >> 20} MiB",
                "Files of that size are not shown.",
            )
        self._sha.update(block)
        self._own.update(block)
        self._keep(block)
        self._line += block.count(b"\n")
        self._ends_line = block.endswith(b"\n")

    def _keep(self, block: bytes) -> None:
        """Keep what of a block is in the span."""
        first, last = self._span.start, self._span.end
        if self._full or (last and self._line > last):
            return
        begin = _after(block, first - self._line)
        if begin is None:
            return
        finish = _after(block, last + 1 - self._line) if last else None
        self._kept += block[begin:finish]
        self._full = len(self._kept) > self._span.most

    def excerpt(self) -> Excerpt:
        lines = self._line - 1 if self._ends_line else self._line
        start = self._span.start
        if start > max(lines, 1):
            held = "1 line" if lines == 1 else f"{lines:,} lines"
            raise _refused(f"It has {held}", f"Begin with a line up to {max(lines, 1)}.")
        raw = self._cut()
        count = raw.count(b"\n") + (not raw.endswith(b"\n")) if raw else 0
        text = _decoder(errors="replace").decode(raw, final=not self._full)
        return Excerpt(
            text=text,
            is_utf8=raw.startswith(text.encode()),
            start=start,
            end=start + count - 1,
            lines=lines,
            size=self._size,
            sha256=self._sha.hexdigest(),
            digest=self._own.digest(),
            truncated=self._full,
        )

    def _cut(self) -> bytes:
        """What fits: whole lines, or as many letters of the first as there is room for."""
        if not self._full:
            return bytes(self._kept)
        room = bytes(self._kept[: self._span.most])
        whole = room.rfind(b"\n") + 1
        return room[:whole] if whole else room


def _after(block: bytes, breaks: int) -> int | None:
    """Where the line begins that so many line breaks come before; None when it is not in here."""
    at = 0
    for _ in range(max(breaks, 0)):
        at = block.find(b"\n", at) + 1
        if not at:
            return None
    return at


def _refused(why: str, hint: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_REQUEST, f"The file cannot be shown. {why}.", hint=hint)

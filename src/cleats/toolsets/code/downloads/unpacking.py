"""Compressed bytes in, plain bytes out, never more at once than a piece.

A decompressor is asked for a bounded piece each time, so a small archive cannot fill the memory,
and xz may not ask for a dictionary of gigabytes.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, Protocol

from cleats.toolsets.code.downloads.entries import too_large, unsafe

PIECE: Final = 256 << 10
"""Bytes that are read, or come out, at once."""

XZ_MEMORY: Final = 128 << 20
"""Bytes that xz may use; its strongest preset needs 65 MiB."""

GZIP: Final = b"\x1f\x8b\x08"
BZIP2: Final = b"BZh"
XZ: Final = b"\xfd7zXZ\x00"


class _Stream(Protocol):
    """One compressed stream, of which a file may have several in a row."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused(self) -> bytes: ...
    def feed(self, data: bytes) -> bytes:
        """A piece of what comes out; with no data, more of what was fed before."""


class _Deflate:
    """zlib, with the manners of the other two."""

    def __init__(self, bits: int) -> None:
        self._inner = zlib.decompressobj(bits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused(self) -> bytes:
        return self._inner.unused_data

    def feed(self, data: bytes) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, PIECE)


class _Buffered:
    """bz2 and lzma, which remember what they were fed."""

    def __init__(self, inner: "bz2.BZ2Decompressor | lzma.LZMADecompressor") -> None:
        self._inner = inner

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused(self) -> bytes:
        return self._inner.unused_data

    def feed(self, data: bytes) -> bytes:
        return self._inner.decompress(data, PIECE)


def _xz() -> _Stream:
    return _Buffered(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY))


_KINDS: Final[dict[bytes, Callable[[], _Stream]]] = {
    GZIP: lambda: _Deflate(16 + zlib.MAX_WBITS),
    BZIP2: lambda: _Buffered(bz2.BZ2Decompressor()),
    XZ: _xz,
}


def compressed(beginning: bytes) -> bool:
    """Whether a file that begins so is a compressed stream."""
    return beginning.startswith(tuple(_KINDS))


def unpacked(file: BinaryIO) -> Iterator[bytes]:
    """The content of a file, decompressed if it is compressed.

    Raises:
        ToolError: ARCHIVE_UNSAFE when it is damaged.
    """
    file.seek(0)
    beginning = file.read(PIECE)
    for magic, make in _KINDS.items():
        if beginning.startswith(magic):
            yield from _streams(beginning, file, make)
            return
    while beginning:
        yield beginning
        beginning = file.read(PIECE)


def _streams(data: bytes, file: BinaryIO, make: Callable[[], _Stream]) -> Iterator[bytes]:
    while data:
        stream = make()
        yield from _one(stream, data, file)
        data = stream.unused or file.read(PIECE)
        if not data.strip(b"\x00"):  # padding, which xz and tape drives add
            while data and not data.strip(b"\x00"):
                data = file.read(PIECE)
            if data:
                raise unsafe("something follows its end")


def _one(stream: _Stream, data: bytes, file: BinaryIO) -> Iterator[bytes]:
    try:
        while True:
            piece = stream.feed(data)
            if piece:
                yield piece
            if stream.eof:
                return
            data = b""
            if not piece:
                data = file.read(PIECE)
                if not data:
                    raise unsafe("it ends in the middle")
    except lzma.LZMAError as error:
        if "memory" in str(error).lower():
            raise too_large("it needs too much memory") from None
        raise unsafe(f"it is damaged: {error}") from None
    except (zlib.error, OSError, ValueError, EOFError) as error:
        raise unsafe(f"it is damaged: {error}") from None


def inflated(packed: Iterator[bytes]) -> Iterator[bytes]:
    """A deflated entry of a zip, to its end, which must be where its bytes end.

    Raises:
        ToolError: ARCHIVE_UNSAFE when it is damaged.
    """
    stream = _Deflate(-zlib.MAX_WBITS)
    try:
        for data in packed:
            if stream.eof:
                raise unsafe("an entry has bytes after its end")
            while piece := stream.feed(data):
                yield piece
                data = b""  # noqa: PLW2901 - fed once, it comes out in pieces
    except zlib.error as error:
        raise unsafe(f"it is damaged: {error}") from None
    if not stream.eof or stream.unused:
        raise unsafe("an entry ends before its bytes do, or after")

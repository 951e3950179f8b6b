"""Streaming decompression with bounded output.

A decompressor is asked for one bounded block at a time, so a small archive cannot fill the memory,
and xz cannot request a dictionary of gigabytes.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, Protocol

from cleats.toolsets.code.downloads.entries import oversized_archive_error, unsafe_archive_error

BLOCK_BYTES: Final = 256 << 10
"""Bytes that are read or decompressed at once."""

MAX_XZ_MEMORY_BYTES: Final = 128 << 20
"""Bytes of memory that xz may use; its strongest preset needs 65 MiB."""

GZIP_MAGIC: Final = b"\x1f\x8b\x08"
BZIP2_MAGIC: Final = b"BZh"
XZ_MAGIC: Final = b"\xfd7zXZ\x00"


class _CompressedStream(Protocol):
    """One compressed stream; a file may contain several in a row."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def feed(self, data: bytes) -> bytes:
        """Return a block of output; without data, more output of earlier input."""


class _DeflateStream:
    """A zlib decompressor with the interface of the other two."""

    def __init__(self, window_bits: int) -> None:
        self._decompressor = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        return self._decompressor.eof

    @property
    def unused_data(self) -> bytes:
        return self._decompressor.unused_data

    def feed(self, data: bytes) -> bytes:
        return self._decompressor.decompress(self._decompressor.unconsumed_tail + data, BLOCK_BYTES)


class _BufferedStream:
    """A bz2 or lzma decompressor, which buffers its input itself."""

    def __init__(self, decompressor: "bz2.BZ2Decompressor | lzma.LZMADecompressor") -> None:
        self._decompressor = decompressor

    @property
    def eof(self) -> bool:
        return self._decompressor.eof

    @property
    def unused_data(self) -> bytes:
        return self._decompressor.unused_data

    def feed(self, data: bytes) -> bytes:
        return self._decompressor.decompress(data, BLOCK_BYTES)


def _open_xz_stream() -> _CompressedStream:
    return _BufferedStream(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY_BYTES))


_STREAM_FACTORIES_BY_MAGIC: Final[dict[bytes, Callable[[], _CompressedStream]]] = {
    GZIP_MAGIC: lambda: _DeflateStream(16 + zlib.MAX_WBITS),
    BZIP2_MAGIC: lambda: _BufferedStream(bz2.BZ2Decompressor()),
    XZ_MAGIC: _open_xz_stream,
}


def is_compressed(header: bytes) -> bool:
    """Return whether a file with this beginning is a compressed stream."""
    return header.startswith(tuple(_STREAM_FACTORIES_BY_MAGIC))


def decompress_file(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file, decompressed if it is compressed.

    Raises:
        ToolError: ARCHIVE_UNSAFE, it is damaged.
    """
    file.seek(0)
    block = file.read(BLOCK_BYTES)
    for magic, open_stream in _STREAM_FACTORIES_BY_MAGIC.items():
        if block.startswith(magic):
            yield from _decompress_streams(block, file, open_stream)
            return
    while block:
        yield block
        block = file.read(BLOCK_BYTES)


def _decompress_streams(data: bytes, file: BinaryIO, open_stream: Callable[[], _CompressedStream]) -> Iterator[bytes]:
    while data:
        stream = open_stream()
        yield from _decompress_stream(stream, data, file)
        data = stream.unused_data or file.read(BLOCK_BYTES)
        if not data.strip(b"\x00"):  # padding, as added by xz and tape drives
            while data and not data.strip(b"\x00"):
                data = file.read(BLOCK_BYTES)
            if data:
                raise unsafe_archive_error("something follows its end")


def _decompress_stream(stream: _CompressedStream, data: bytes, file: BinaryIO) -> Iterator[bytes]:
    try:
        while True:
            block = stream.feed(data)
            if block:
                yield block
            if stream.eof:
                return
            data = b""
            if not block:
                data = file.read(BLOCK_BYTES)
                if not data:
                    raise unsafe_archive_error("it ends in the middle")
    except lzma.LZMAError as error:
        if "memory" in str(error).lower():
            raise oversized_archive_error("it needs too much memory") from None
        raise unsafe_archive_error(f"it is damaged: {error}") from None
    except (zlib.error, OSError, ValueError, EOFError) as error:
        raise unsafe_archive_error(f"it is damaged: {error}") from None


def inflate_entry(compressed_blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Inflate a zip entry, whose stream must end exactly where its bytes end.

    Raises:
        ToolError: ARCHIVE_UNSAFE, it is damaged.
    """
    stream = _DeflateStream(-zlib.MAX_WBITS)
    try:
        for data in compressed_blocks:
            if stream.eof:
                raise unsafe_archive_error("an entry has bytes after its end")
            while block := stream.feed(data):
                yield block
                data = b""  # noqa: PLW2901 - fed once, the output comes in blocks
    except zlib.error as error:
        raise unsafe_archive_error(f"it is damaged: {error}") from None
    if not stream.eof or stream.unused_data:
        raise unsafe_archive_error("an entry ends before its bytes do, or after")

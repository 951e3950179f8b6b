"""What the readers of archives share: entries, limits, errors, and blocks with bounded output.

A decompressor is asked for one bounded block at a time, so a small archive cannot fill the memory,
and xz cannot request a dictionary of gigabytes.
"""

import bz2
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO, Final, NamedTuple, Protocol

from cleats.contract.errors import ErrorCode, ToolError

BLOCK_BYTES: Final = 256 << 10
"""Bytes that are read or decompressed at once."""

MAX_XZ_MEMORY_BYTES: Final = 128 << 20
"""Bytes of memory that xz may use; its strongest preset needs 65 MiB."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits on the data extracted from an archive."""

    total: int = 200 << 20
    entry: int = 50 << 20
    entries: int = 2048
    ratio: int = 400
    """Bytes out for one byte in, applied once more than `free` bytes were extracted: text seldom exceeds 20."""
    free: int = 4 << 20


class RawEntry(NamedTuple):
    """A file or folder as an archive describes it; its name is not checked yet."""

    name: bytes
    size: int
    folder: bool
    executable: bool
    content: Iterator[bytes]
    """To be read before the next entry."""


def unsafe_archive_error(reason: str) -> ToolError:
    """Build the error for an archive that is inconsistent, damaged or unsafe to unpack."""
    return ToolError(
        ErrorCode.ARCHIVE_UNSAFE,
        f"The archive is refused: {reason}. Nothing was written.",
        hint="Use an archive of plain files and folders, from a source that you trust.",
    )


def oversized_archive_error(reason: str) -> ToolError:
    """Build the error for an archive that would fill the disk."""
    return ToolError(
        ErrorCode.ARCHIVE_TOO_LARGE,
        f"The archive is refused: {reason}. Nothing was written.",
        hint="Use a smaller archive that contains only what is needed.",
    )


class _Decompressor(Protocol):
    """One compressed stream, as in `bz2` and `lzma`; a file may contain several in a row."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return a block of output; without data, more output of earlier input."""


class Inflater:
    """A zlib decompressor that keeps its input, like the other two."""

    def __init__(self, window_bits: int) -> None:
        self._inner = zlib.decompressobj(window_bits)
        self.eof, self.unused_data = False, b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        block = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self.eof, self.unused_data = self._inner.eof, self._inner.unused_data
        return block


_DECOMPRESSORS_BY_MAGIC: Final[dict[bytes, Callable[[], _Decompressor]]] = {
    b"\x1f\x8b\x08": lambda: Inflater(16 + zlib.MAX_WBITS),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY_BYTES),
}


def find_decompressor(header: bytes) -> Callable[[], _Decompressor] | None:
    return next((create for magic, create in _DECOMPRESSORS_BY_MAGIC.items() if header.startswith(magic)), None)


def decompress_file(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file, decompressed if it is compressed."""
    blocks = read_blocks(file, 0, file.seek(0, os.SEEK_END))
    data = next(blocks, b"")
    create_decompressor = find_decompressor(data)
    if create_decompressor is None:
        yield from chain((data,), blocks)
        return
    while data.strip(b"\x00"):
        decompressor = create_decompressor()
        yield from decompress_stream(decompressor, chain((data,), blocks))
        if not decompressor.eof:
            raise unsafe_archive_error("it is truncated")
        data = decompressor.unused_data or next(blocks, b"")
    if any(block.strip(b"\x00") for block in blocks):  # xz and tape drives add padding
        raise unsafe_archive_error("it has data after its end")


def decompress_stream(decompressor: _Decompressor, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the output of one stream, which ends before the blocks do or is incomplete."""
    try:
        while not decompressor.eof and (data := next(blocks, b"")):
            while block := decompressor.decompress(data, BLOCK_BYTES):
                yield block
                if decompressor.eof:
                    break
                data = b""
    except lzma.LZMAError as error:
        if "memory" in str(error).lower():
            raise oversized_archive_error("it needs too much memory") from None
        raise unsafe_archive_error(f"it is damaged: {error}") from None
    except (zlib.error, OSError, ValueError, EOFError) as error:
        raise unsafe_archive_error(f"it is damaged: {error}") from None


def read_at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    data = file.read(size)
    if len(data) != size:
        raise unsafe_archive_error("it is truncated")
    return data


def read_blocks(file: BinaryIO, offset: int, size: int) -> Iterator[bytes]:
    while size:
        block = read_at(file, offset, min(size, BLOCK_BYTES))
        offset += len(block)
        size -= len(block)
        yield block

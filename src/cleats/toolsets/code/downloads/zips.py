"""The entries of a zip: what the directory says, and what really comes out."""

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from cleats.toolsets.code.downloads.entries import Entry, Limits, plain, unsafe
from cleats.toolsets.code.downloads.unpacking import PIECE, inflated
from cleats.toolsets.code.downloads.zip_directory import DEFLATED, Record, records


def is_zip(beginning: bytes) -> bool:
    """Whether a file that begins so is a zip; an empty one is nothing but its end."""
    return beginning.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def entries(file: BinaryIO, limits: Limits) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Each entry with its content, which must be read before the next.

    Raises:
        ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
    """
    for record, begins in records(file, limits):
        parts = plain(record.name)
        if not parts and not record.folder:
            raise unsafe("a file has no name")
        executable = bool(record.mode & 0o111)
        entry = Entry(parts, record.size, record.folder, executable=executable)
        yield entry, _content(file, record, begins)


def _content(file: BinaryIO, record: Record, begins: int) -> Iterator[bytes]:
    packed = _packed(file, begins, record.packed)
    crc = came = 0
    for piece in inflated(packed) if record.method == DEFLATED else packed:
        crc = zlib.crc32(piece, crc)
        came += len(piece)
        if came > record.size:
            break
        yield piece
    if (came, crc) != (record.size, record.crc):
        raise unsafe(f"the content of {record.name[:80]!r} is not what the directory says")


def _packed(file: BinaryIO, place: int, size: int) -> Iterator[bytes]:
    while size:
        file.seek(place)
        piece = file.read(min(size, PIECE))
        if not piece:
            raise unsafe("it ends in the middle")
        place += len(piece)
        size -= len(piece)
        yield piece

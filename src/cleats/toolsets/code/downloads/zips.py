"""The entries of a zip, with content that is checked against the directory."""

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from cleats.toolsets.code.downloads.entries import ArchiveEntry, ArchiveLimits, parse_entry_name, unsafe_archive_error
from cleats.toolsets.code.downloads.unpacking import BLOCK_BYTES, inflate_entry
from cleats.toolsets.code.downloads.zip_directory import DEFLATED_METHOD, ZipRecord, read_records


def is_zip(header: bytes) -> bool:
    """Return whether a file with this beginning is a zip; an empty zip is only an end record."""
    return header.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def read_entries(file: BinaryIO, limits: ArchiveLimits) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
    """Yield each entry with its content, which must be read before the next entry.

    Raises:
        ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
    """
    for record, content_offset in read_records(file, limits):
        parts = parse_entry_name(record.name)
        if not parts and not record.folder:
            raise unsafe_archive_error("a file has no name")
        executable = bool(record.mode & 0o111)
        entry = ArchiveEntry(parts, record.size, record.folder, executable=executable)
        yield entry, _read_content(file, record, content_offset)


def _read_content(file: BinaryIO, record: ZipRecord, content_offset: int) -> Iterator[bytes]:
    compressed_blocks = _read_compressed(file, content_offset, record.packed)
    crc = received_bytes = 0
    for block in inflate_entry(compressed_blocks) if record.method == DEFLATED_METHOD else compressed_blocks:
        crc = zlib.crc32(block, crc)
        received_bytes += len(block)
        if received_bytes > record.size:
            break
        yield block
    if (received_bytes, crc) != (record.size, record.crc):
        raise unsafe_archive_error(f"the content of {record.name[:80]!r} is not what the directory says")


def _read_compressed(file: BinaryIO, offset: int, size: int) -> Iterator[bytes]:
    while size:
        file.seek(offset)
        block = file.read(min(size, BLOCK_BYTES))
        if not block:
            raise unsafe_archive_error("it ends in the middle")
        offset += len(block)
        size -= len(block)
        yield block

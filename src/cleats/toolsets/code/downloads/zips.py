"""A strict reader of zip archives: `zipfile` reads the directory, which must agree with the contents of the file.

A zip states everything twice, and readers differ in which statement they trust; here both must agree. Bytes that belong
to two entries, to no known structure, or to another disk are rejected; `zipfile` accepts them.
"""

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from cleats.toolsets.code.downloads.unpacking import (
    ArchiveLimits,
    Inflater,
    RawEntry,
    decompress_stream,
    oversized_archive_error,
    read_at,
    read_blocks,
    unsafe_archive_error,
)

_END_RECORD_STRUCT: Final = struct.Struct("<4s4H2LH")
_LARGE_END_STRUCT: Final = struct.Struct("<4sQ4x2L4Q4sLQL")
"""The end record of a zip64 archive, without its two versions, and the locator that follows it."""
_LOCAL_HEADER_STRUCT: Final = struct.Struct("<4s5H3L2H")
_CENTRAL_HEADER_BYTES: Final = 46

_ENCRYPTED_FLAGS: Final = 0x1 | 0x40 | 0x2000
_PATCH_FLAG: Final = 0x20
_UTF8_NAME_FLAG: Final = 0x800
_DATA_DESCRIPTOR_FLAG: Final = 0x8
"""Flag: the local header does not contain the sizes yet; they follow the content."""

_LARGE_NUMBER_MARKER: Final = 0xFFFFFFFF
_LARGE_MARKERS: Final = (None, None, None, 0xFFFF, 0xFFFF, _LARGE_NUMBER_MARKER, _LARGE_NUMBER_MARKER, None)
"""The values in an end record that refer to the zip64 end record."""
_UNICODE_NAME_EXTRA_ID: Final = struct.pack("<H", 0x7075)


def is_zip(header: bytes) -> bool:
    return header.startswith((b"PK\x03\x04", b"PK\x05\x06"))  # an empty zip is only an end record


def read_entries(file: BinaryIO, limits: ArchiveLimits) -> Iterator[RawEntry]:
    try:
        archive = ZipFile(file)
    except (BadZipFile, NotImplementedError, ValueError, OSError, OverflowError, EOFError, struct.error) as error:
        raise unsafe_archive_error(f"its directory is damaged: {error}") from None
    infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
    _check_end(file, archive, limits)
    content_offsets = []
    free_offset = 0
    for info in infos:
        _check_entry(info)
        if info.header_offset < free_offset:
            raise unsafe_archive_error(f"the entry {_raw_name(info)[:80]!r} overlaps another")
        content_offsets.append(_locate_content(file, info))
        free_offset = content_offsets[-1] + info.compress_size
        if free_offset > archive.start_dir:
            raise unsafe_archive_error(f"the entry {_raw_name(info)[:80]!r} extends beyond its boundaries")
    for info, content_offset in zip(infos, content_offsets, strict=True):
        name, is_executable = _raw_name(info), bool(info.external_attr >> 16 & 0o111)
        content = _read_content(file, info, content_offset)
        yield RawEntry(name, info.file_size, name.endswith(b"/"), is_executable, content)


def _raw_name(info: ZipInfo) -> bytes:
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8_NAME_FLAG else "cp437")


def _check_end(file: BinaryIO, archive: ZipFile, limits: ArchiveLimits) -> None:
    """Check that the end describes exactly the directory that was read: `zipfile` forgives what it can guess."""
    infos, offset = archive.infolist(), archive.start_dir
    size = 0
    for _ in infos:  # the lengths of the name, of the extra fields and of the comment
        size += _CENTRAL_HEADER_BYTES + sum(struct.unpack("<3H", read_at(file, offset + size + 28, 6)))
    tail = read_at(file, offset + size, max(file.seek(0, os.SEEK_END) - offset - size, 0))
    large_end = tail[: -_END_RECORD_STRUCT.size - len(archive.comment)]
    if len(tail) < _END_RECORD_STRUCT.size or len(large_end) not in (0, _LARGE_END_STRUCT.size):
        raise unsafe_archive_error("it has data before its start or after its end")
    count = len(infos)
    stated: tuple[Any, ...] = _END_RECORD_STRUCT.unpack_from(tail, len(large_end))
    expected: tuple[Any, ...] = (b"PK\x05\x06", 0, 0, count, count, size, offset, len(archive.comment))
    if large_end:
        numbers = zip(stated, expected, _LARGE_MARKERS, strict=True)
        small_end = (value if number == marker else number for number, value, marker in numbers)
        stated = (*small_end, *_LARGE_END_STRUCT.unpack(large_end))
        expected += (b"PK\x06\x06", 44, 0, 0, count, count, size, offset, b"PK\x06\x07", 0, offset + size, 1)
    if max(count, stated[-7] if large_end else 0) > limits.entries:
        raise oversized_archive_error(f"it has more than {limits.entries:,} entries")
    if stated != expected:
        raise unsafe_archive_error("its end record does not match its directory")


def _check_entry(info: ZipInfo) -> None:
    name, mode = _raw_name(info), info.external_attr >> 16
    if info.flag_bits & _ENCRYPTED_FLAGS:
        raise unsafe_archive_error(f"the entry {name[:80]!r} is encrypted")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or info.flag_bits & _PATCH_FLAG or info.volume:
        raise unsafe_archive_error(f"the entry {name[:80]!r} uses an unsupported compression")
    kind, is_dos_folder = stat.S_IFMT(mode), bool(info.external_attr & 0x10)
    if kind not in (0, stat.S_IFDIR, stat.S_IFREG):
        raise unsafe_archive_error(f"the entry {name[:80]!r} is a link, a device or a pipe")
    if (kind or is_dos_folder) and (kind == stat.S_IFDIR or (not kind and is_dos_folder)) != name.endswith(b"/"):
        raise unsafe_archive_error(f"the entry {name[:80]!r} is a folder and a file")
    if info.compress_type == ZIP_STORED and info.compress_size != info.file_size:
        raise unsafe_archive_error(f"the entry {name[:80]!r} has two sizes")
    if _UNICODE_NAME_EXTRA_ID in info.extra and name not in info.extra:
        raise unsafe_archive_error(f"the entry {name[:80]!r} has two names")


def _locate_content(file: BinaryIO, info: ZipInfo) -> int:
    """Return the offset of an entry's content; its local header must match the directory."""
    header = read_at(file, info.header_offset, _LOCAL_HEADER_STRUCT.size)
    signature, _, flags, method, _, _, crc, packed, size, name_length, extra_length = _LOCAL_HEADER_STRUCT.unpack(
        header
    )
    rest = read_at(file, info.header_offset + _LOCAL_HEADER_STRUCT.size, name_length + extra_length)
    name, extra = _raw_name(info), rest[name_length:]
    local_values = (signature, rest[:name_length], method, flags & ~0x6)  # two bits only state the compression level
    if local_values != (b"PK\x03\x04", name, info.compress_type, info.flag_bits & ~0x6):
        raise unsafe_archive_error(f"the entry {name[:80]!r} differs from the directory")
    for local, central in zip((crc, packed, size), (info.CRC, info.compress_size, info.file_size), strict=True):
        is_later = local == 0 and flags & _DATA_DESCRIPTOR_FLAG
        is_large = local == _LARGE_NUMBER_MARKER and struct.pack("<Q", central) in extra
        if local != central and not is_later and not is_large:
            raise unsafe_archive_error(f"the sizes of {name[:80]!r} differ from the directory")
    return info.header_offset + _LOCAL_HEADER_STRUCT.size + len(rest)


def _read_content(file: BinaryIO, info: ZipInfo, offset: int) -> Iterator[bytes]:
    """Yield the content of an entry, which must be what the directory says."""
    packed_blocks = read_blocks(file, offset, info.compress_size)
    crc = received_bytes = 0
    for block in _inflate_entry(packed_blocks) if info.compress_type == ZIP_DEFLATED else packed_blocks:
        crc = zlib.crc32(block, crc)
        received_bytes += len(block)
        if received_bytes > info.file_size:
            break
        yield block
    if (received_bytes, crc) != (info.file_size, info.CRC):
        raise unsafe_archive_error(f"the content of {_raw_name(info)[:80]!r} does not match the directory")


def _inflate_entry(packed_blocks: Iterator[bytes]) -> Iterator[bytes]:
    inflater = Inflater(-zlib.MAX_WBITS)
    yield from decompress_stream(inflater, packed_blocks)
    if next(packed_blocks, b"") or not inflater.eof or inflater.unused_data:
        raise unsafe_archive_error("the size of an entry does not match its content")

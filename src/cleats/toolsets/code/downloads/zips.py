"""A strict reader of zip archives: the central directory, checked against the contents of the file.

A zip states everything twice, and readers differ in which statement they trust; here both must
agree. Bytes that belong to two entries, to no known structure, or to another disk are rejected;
`zipfile` accepts them.
"""

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

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
_END_RECORD_64_STRUCT: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64_STRUCT: Final = struct.Struct("<4sLQL")
_CENTRAL_HEADER_STRUCT: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL_HEADER_STRUCT: Final = struct.Struct("<4s5H3L2H")

_STORED_METHOD, _DEFLATED_METHOD = 0, 8
"""The two compression methods that every reader of zips supports."""

_ENCRYPTED_FLAGS: Final = 0x1 | 0x40 | 0x2000
_PATCH_FLAG: Final = 0x20
_DATA_DESCRIPTOR_FLAG: Final = 0x8
"""Flag: the local header does not contain the sizes yet; they follow the content."""

_ZIP64_MARKER: Final = 0xFFFFFFFF
_ZIP64_EXTRA_ID, _UNICODE_NAME_EXTRA_ID = 0x0001, 0x7075


class _ZipRecord(NamedTuple):
    """An entry of the central directory of a zip."""

    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int
    mode: int
    """The bits of a Unix mode, 0 if there are none."""


def is_zip(header: bytes) -> bool:
    return header.startswith((b"PK\x03\x04", b"PK\x05\x06"))  # an empty zip is only an end record


def read_entries(file: BinaryIO, limits: ArchiveLimits) -> Iterator[RawEntry]:
    entry_count, size, offset, directory_end = _read_end_record(file)
    if entry_count > limits.entries:
        raise oversized_archive_error(f"it has more than {limits.entries:,} entries")
    if offset + size != directory_end:
        raise unsafe_archive_error("its directory is not where it should be")
    records = sorted(_parse_directory(read_at(file, offset, size)), key=lambda record: record.offset)
    if len(records) != entry_count:
        raise unsafe_archive_error("its directory has another number of entries than it says")
    content_offsets = []
    free_offset = 0
    for record in records:
        if record.offset < free_offset:
            raise unsafe_archive_error(f"the entry {record.name[:80]!r} overlaps another")
        content_offsets.append(_locate_content(file, record))
        free_offset = content_offsets[-1] + record.packed
        if free_offset > offset:
            raise unsafe_archive_error(f"the entry {record.name[:80]!r} reaches beyond its place")
    for record, content_offset in zip(records, content_offsets, strict=True):
        content = _read_content(file, record, content_offset)
        yield RawEntry(record.name, record.size, record.name.endswith(b"/"), bool(record.mode & 0o111), content)


def _read_end_record(file: BinaryIO) -> tuple[int, int, int, int]:
    """Return the number of entries, and the size, the offset and the end of the directory."""
    length = file.seek(0, os.SEEK_END)
    tail_offset = max(0, length - _END_RECORD_STRUCT.size - 0xFFFF)
    tail = read_at(file, tail_offset, length - tail_offset)
    record_index = tail.rfind(b"PK\x05\x06")
    if record_index < 0 or len(tail) - record_index < _END_RECORD_STRUCT.size:
        raise unsafe_archive_error("it has no directory, or ends in the middle")
    _, disk, first_disk, disk_entries, *numbers, comment = _END_RECORD_STRUCT.unpack_from(tail, record_index)
    entries, size, offset = numbers
    record_offset = tail_offset + record_index
    if record_offset + _END_RECORD_STRUCT.size + comment != length:
        raise unsafe_archive_error("something follows its end, or its end is missing")
    locator_offset = record_offset - _LOCATOR_64_STRUCT.size
    if locator_offset >= 0 and read_at(file, locator_offset, 4) == b"PK\x06\x07":
        return _read_end_record_64(file, locator_offset, numbers)
    if disk or first_disk or disk_entries != entries or _ZIP64_MARKER in (size, offset):
        raise unsafe_archive_error("it is a part of several, or says so")
    return entries, size, offset, record_offset


def _read_end_record_64(file: BinaryIO, locator_offset: int, small_values: list[int]) -> tuple[int, int, int, int]:
    _, disk, record_offset, disks = _LOCATOR_64_STRUCT.unpack(read_at(file, locator_offset, _LOCATOR_64_STRUCT.size))
    if disk or disks != 1 or record_offset + _END_RECORD_64_STRUCT.size != locator_offset:
        raise unsafe_archive_error("its large directory is not where it should be")
    record = read_at(file, record_offset, _END_RECORD_64_STRUCT.size)
    _, length, _, _, disk_number, first_disk, disk_entries, *numbers = _END_RECORD_64_STRUCT.unpack(record)
    entries, size, offset = numbers
    if length != _END_RECORD_64_STRUCT.size - 12 or disk_number or first_disk or disk_entries != entries:
        raise unsafe_archive_error("its large directory cannot be read")
    markers = (0xFFFF, _ZIP64_MARKER, _ZIP64_MARKER)
    for small_value, large_value, marker in zip(small_values, numbers, markers, strict=True):
        if small_value not in (large_value, marker):
            raise unsafe_archive_error("its two directories differ")
    return entries, size, offset, record_offset


def _parse_directory(data: bytes) -> Iterator[_ZipRecord]:
    position = 0
    while position < len(data):
        if len(data) - position < _CENTRAL_HEADER_STRUCT.size or data[position : position + 4] != b"PK\x01\x02":
            raise unsafe_archive_error("its directory is damaged")
        fields = _CENTRAL_HEADER_STRUCT.unpack_from(data, position)
        (_, _, _, flags, method, _, _, crc, packed, size, *lengths, disk, _, attributes, offset) = fields
        position += _CENTRAL_HEADER_STRUCT.size
        name, extra, _ = _split_bytes(data[position : position + sum(lengths)], lengths)
        position += sum(lengths)
        if position > len(data) or disk not in (0, 0xFFFF):
            raise unsafe_archive_error("its directory is damaged")
        size, packed, offset = _expand_extra_fields(name, extra, [size, packed, offset])
        record = _ZipRecord(name, flags, method, crc, packed, size, offset, attributes >> 16)
        _check_record(record, attributes)
        yield record


def _check_record(record: _ZipRecord, attributes: int) -> None:
    shown_name = record.name[:80]
    if record.flags & _ENCRYPTED_FLAGS:
        raise unsafe_archive_error(f"the entry {shown_name!r} is encrypted")
    if record.method not in (_STORED_METHOD, _DEFLATED_METHOD) or record.flags & _PATCH_FLAG:
        raise unsafe_archive_error(f"the entry {shown_name!r} is packed in a way that is not read here")
    kind = stat.S_IFMT(record.mode)
    if kind not in (0, stat.S_IFDIR, stat.S_IFREG):
        raise unsafe_archive_error(f"the entry {shown_name!r} is a link, a device or a pipe")
    is_folder = kind == stat.S_IFDIR or (not kind and bool(attributes & 0x10))
    if (kind or attributes & 0x10) and is_folder != record.name.endswith(b"/"):
        raise unsafe_archive_error(f"the entry {shown_name!r} is a folder and a file")
    if record.method == _STORED_METHOD and record.packed != record.size:
        raise unsafe_archive_error(f"the entry {shown_name!r} has two sizes")


def _locate_content(file: BinaryIO, record: _ZipRecord) -> int:
    """Return the offset of an entry's content; its local header must match the directory."""
    header = read_at(file, record.offset, _LOCAL_HEADER_STRUCT.size)
    signature, _, flags, method, _, _, crc, packed, size, *lengths = _LOCAL_HEADER_STRUCT.unpack(header)
    rest = read_at(file, record.offset + _LOCAL_HEADER_STRUCT.size, sum(lengths))
    name, extra = _split_bytes(rest, lengths)
    local_values = (signature, name, method, flags & ~0x6)  # two bits that only state the compression level
    if local_values != (b"PK\x03\x04", record.name, record.method, record.flags & ~0x6):
        raise unsafe_archive_error(f"the entry {record.name[:80]!r} differs from the directory")
    size, packed, _ = _expand_extra_fields(name, extra, [size, packed, 0])
    sizes_follow = bool(flags & _DATA_DESCRIPTOR_FLAG)
    for local, central in zip((crc, packed, size), (record.crc, record.packed, record.size), strict=True):
        if local != central and not (sizes_follow and local == 0):
            raise unsafe_archive_error(f"the sizes of {record.name[:80]!r} differ from the directory")
    return record.offset + _LOCAL_HEADER_STRUCT.size + len(rest)


def _expand_extra_fields(name: bytes, extra: bytes, numbers: list[int]) -> list[int]:
    """Return the numbers, taking those that exceed four bytes from the zip64 extra field."""
    fields = dict(_parse_extra_fields(extra))
    if fields.get(_UNICODE_NAME_EXTRA_ID, bytes(5) + name)[5:] != name:
        raise unsafe_archive_error(f"the entry {name[:80]!r} has two names")
    large_values = fields.get(_ZIP64_EXTRA_ID, b"")
    for index, number in enumerate(numbers):
        if number == _ZIP64_MARKER:
            if len(large_values) < 8:
                raise unsafe_archive_error("a large number is missing")
            numbers[index] = int.from_bytes(large_values[:8], "little")
            large_values = large_values[8:]
    return numbers


def _parse_extra_fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    seen_kinds = set()
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if length > len(extra) - 4 or kind in seen_kinds:
            raise unsafe_archive_error("an extra field is damaged")
        seen_kinds.add(kind)
        yield kind, extra[4 : 4 + length]
        extra = extra[4 + length :]


def _read_content(file: BinaryIO, record: _ZipRecord, offset: int) -> Iterator[bytes]:
    """Yield the content of an entry, which must be what the directory says."""
    packed_blocks = read_blocks(file, offset, record.packed)
    crc = received_bytes = 0
    for block in _inflate_entry(packed_blocks) if record.method == _DEFLATED_METHOD else packed_blocks:
        crc = zlib.crc32(block, crc)
        received_bytes += len(block)
        if received_bytes > record.size:
            break
        yield block
    if (received_bytes, crc) != (record.size, record.crc):
        raise unsafe_archive_error(f"the content of {record.name[:80]!r} is not what the directory says")


def _inflate_entry(packed_blocks: Iterator[bytes]) -> Iterator[bytes]:
    inflater = Inflater(-zlib.MAX_WBITS)
    yield from decompress_stream(inflater, packed_blocks)
    if next(packed_blocks, b""):
        raise unsafe_archive_error("an entry has bytes after its end")
    if not inflater.eof or inflater.unused_data:
        raise unsafe_archive_error("an entry ends before its bytes do, or after")


def _split_bytes(data: bytes, lengths: list[int]) -> list[bytes]:
    ends = [sum(lengths[: index + 1]) for index in range(len(lengths))]
    return [data[end - length : end] for end, length in zip(ends, lengths, strict=True)]

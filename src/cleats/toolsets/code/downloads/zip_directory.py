"""The central directory of a zip, checked against the actual contents of the file.

A zip states everything twice, and readers differ in which statement they trust; here both must
agree. Bytes that belong to two entries, to no known structure, or to another disk are rejected.
"""

import stat
import struct
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from cleats.toolsets.code.downloads.entries import (
    ArchiveLimits,
    oversized_archive_error,
    parse_entry_name,
    unsafe_archive_error,
)

END_RECORD_STRUCT: Final = struct.Struct("<4s4H2LH")
END_RECORD_64_STRUCT: Final = struct.Struct("<4sQ2H2L4Q")
LOCATOR_64_STRUCT: Final = struct.Struct("<4sLQL")
CENTRAL_HEADER_STRUCT: Final = struct.Struct("<4s6H3L5H2L")
LOCAL_HEADER_STRUCT: Final = struct.Struct("<4s5H3L2H")

STORED_METHOD, DEFLATED_METHOD = 0, 8
"""The two compression methods that every reader supports."""

_ENCRYPTED_FLAGS: Final = 0x1 | 0x40 | 0x2000
_PATCH_FLAG: Final = 0x20
_DATA_DESCRIPTOR_FLAG: Final = 0x8
"""Flag: the local header does not contain the sizes yet; they follow the content."""

_ZIP64_MARKER: Final = 0xFFFFFFFF
_ZIP64_EXTRA_ID, _UNICODE_NAME_EXTRA_ID = 0x0001, 0x7075


class ZipRecord(NamedTuple):
    """An entry of the central directory."""

    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int
    mode: int
    """The bits of a Unix mode, 0 if there are none."""

    @property
    def folder(self) -> bool:
        return self.name.endswith(b"/")


class _EndRecord(NamedTuple):
    entries: int
    size: int
    offset: int
    start: int
    """Offset of this record or the first one that belongs to it: the end of the directory."""


def read_records(file: BinaryIO, limits: ArchiveLimits) -> list[tuple[ZipRecord, int]]:
    """Return every entry with the offset of its content, in file order.

    Raises:
        ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
    """
    end = _read_end_record(file)
    if end.entries > limits.entries:
        raise oversized_archive_error(f"it has more than {limits.entries:,} entries")
    if end.offset + end.size != end.start:
        raise unsafe_archive_error("its directory is not where it should be")
    directory_records = list(_parse_directory(_read_at(file, end.offset, end.size)))
    if len(directory_records) != end.entries:
        raise unsafe_archive_error("its directory has another number of entries than it says")
    located_records = []
    free_offset = 0
    for record in sorted(directory_records, key=lambda candidate: candidate.offset):
        if record.offset < free_offset:
            raise unsafe_archive_error(f"the entry {record.name[:80]!r} overlaps another")
        content_offset = _locate_content(file, record)
        free_offset = content_offset + record.packed
        if free_offset > end.offset:
            raise unsafe_archive_error(f"the entry {record.name[:80]!r} reaches beyond its place")
        located_records.append((record, content_offset))
    return located_records


def _read_end_record(file: BinaryIO) -> _EndRecord:
    length = file.seek(0, 2)
    tail_offset = max(0, length - END_RECORD_STRUCT.size - 0xFFFF)
    tail = _read_at(file, tail_offset, length - tail_offset)
    record_index = tail.rfind(b"PK\x05\x06")
    if record_index < 0 or len(tail) - record_index < END_RECORD_STRUCT.size:
        raise unsafe_archive_error("it has no directory, or ends in the middle")
    _, disk, first_disk, disk_entries, entries, size, offset, comment = END_RECORD_STRUCT.unpack_from(
        tail, record_index
    )
    record_offset = tail_offset + record_index
    if record_offset + END_RECORD_STRUCT.size + comment != length:
        raise unsafe_archive_error("something follows its end, or its end is missing")
    if (
        LOCATOR_64_STRUCT.size <= record_offset
        and _read_at(file, record_offset - LOCATOR_64_STRUCT.size, 4) == b"PK\x06\x07"
    ):
        return _read_end_record_64(file, record_offset - LOCATOR_64_STRUCT.size, (entries, size, offset))
    if disk or first_disk or disk_entries != entries or _ZIP64_MARKER in (size, offset):
        raise unsafe_archive_error("it is a part of several, or says so")
    return _EndRecord(entries, size, offset, record_offset)


def _read_end_record_64(file: BinaryIO, locator_offset: int, small_values: tuple[int, int, int]) -> _EndRecord:
    _, disk, record_offset, disks = LOCATOR_64_STRUCT.unpack(_read_at(file, locator_offset, LOCATOR_64_STRUCT.size))
    if disk or disks != 1 or record_offset + END_RECORD_64_STRUCT.size != locator_offset:
        raise unsafe_archive_error("its large directory is not where it should be")
    _, length, _, _, disk_number, first_disk, disk_entries, entries, size, offset = END_RECORD_64_STRUCT.unpack(
        _read_at(file, record_offset, END_RECORD_64_STRUCT.size)
    )
    if length != END_RECORD_64_STRUCT.size - 12 or disk_number or first_disk or disk_entries != entries:
        raise unsafe_archive_error("its large directory cannot be read")
    markers = (0xFFFF, _ZIP64_MARKER, _ZIP64_MARKER)
    for small_value, large_value, marker in zip(small_values, (entries, size, offset), markers, strict=True):
        if small_value not in (large_value, marker):
            raise unsafe_archive_error("its two directories differ")
    return _EndRecord(entries, size, offset, record_offset)


def _parse_directory(data: bytes) -> Iterator[ZipRecord]:
    position = 0
    while position < len(data):
        if len(data) - position < CENTRAL_HEADER_STRUCT.size or data[position : position + 4] != b"PK\x01\x02":
            raise unsafe_archive_error("its directory is damaged")
        fields = CENTRAL_HEADER_STRUCT.unpack_from(data, position)
        (_, _, _, flags, method, _, _, crc, packed, size, *lengths, disk, _, attributes, offset) = fields
        name_length, extra_length, comment_length = lengths
        position += CENTRAL_HEADER_STRUCT.size
        name, extra = (
            data[position : position + name_length],
            data[position + name_length : position + name_length + extra_length],
        )
        position += name_length + extra_length + comment_length
        if position > len(data) or disk not in (0, 0xFFFF):
            raise unsafe_archive_error("its directory is damaged")
        size, packed, offset = _expand_zip64_values(extra, size, packed, offset)
        _check_record_name(name, extra)
        record = ZipRecord(name, flags, method, crc, packed, size, offset, attributes >> 16)
        _check_record(record, attributes)
        yield record


def _check_record(record: ZipRecord, attributes: int) -> None:
    shown_name = record.name[:80]
    if record.flags & _ENCRYPTED_FLAGS:
        raise unsafe_archive_error(f"the entry {shown_name!r} is encrypted")
    if record.method not in (STORED_METHOD, DEFLATED_METHOD) or record.flags & _PATCH_FLAG:
        raise unsafe_archive_error(f"the entry {shown_name!r} is packed in a way that is not read here")
    kind = stat.S_IFMT(record.mode)
    if kind not in (0, stat.S_IFDIR, stat.S_IFREG):
        raise unsafe_archive_error(f"the entry {shown_name!r} is a link, a device or a pipe")
    is_folder = kind == stat.S_IFDIR or (not kind and bool(attributes & 0x10))
    if (kind or attributes & 0x10) and is_folder != record.folder:
        raise unsafe_archive_error(f"the entry {shown_name!r} is a folder and a file")
    if record.method == STORED_METHOD and record.packed != record.size:
        raise unsafe_archive_error(f"the entry {shown_name!r} has two sizes")


def _locate_content(file: BinaryIO, record: ZipRecord) -> int:
    """Return the offset of an entry's content; its local header must match the directory."""
    header = _read_at(file, record.offset, LOCAL_HEADER_STRUCT.size)
    signature, _, flags, method, _, _, crc, packed, size, name_length, extra_length = LOCAL_HEADER_STRUCT.unpack(header)
    rest = _read_at(file, record.offset + LOCAL_HEADER_STRUCT.size, name_length + extra_length)
    name, extra = rest[:name_length], rest[name_length:]
    local_values = (signature, name, method, flags & ~0x6)  # two bits that only state the compression level
    if local_values != (b"PK\x03\x04", record.name, record.method, record.flags & ~0x6):
        raise unsafe_archive_error(f"the entry {record.name[:80]!r} differs from the directory")
    size, packed, _ = _expand_zip64_values(extra, size, packed, 0)
    _check_record_name(name, extra)
    sizes = (crc, packed, size)
    sizes_follow = bool(flags & _DATA_DESCRIPTOR_FLAG)
    for local, central in zip(sizes, (record.crc, record.packed, record.size), strict=True):
        if local != central and not (sizes_follow and local == 0):
            raise unsafe_archive_error(f"the sizes of {record.name[:80]!r} differ from the directory")
    return record.offset + LOCAL_HEADER_STRUCT.size + len(rest)


def _expand_zip64_values(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Return the numbers, taking those that exceed four bytes from the zip64 extra field."""
    field = dict(_parse_extra_fields(extra)).get(_ZIP64_EXTRA_ID, b"")
    numbers = [size, packed, offset]
    for index, number in enumerate(numbers):
        if number == _ZIP64_MARKER:
            if len(field) < 8:
                raise unsafe_archive_error("a large number is missing")
            numbers[index] = int.from_bytes(field[:8], "little")
            field = field[8:]
    return numbers[0], numbers[1], numbers[2]


def _check_record_name(name: bytes, extra: bytes) -> None:
    parse_entry_name(name)
    unicode_name = dict(_parse_extra_fields(extra)).get(_UNICODE_NAME_EXTRA_ID)
    if unicode_name is not None and unicode_name[5:] != name:
        raise unsafe_archive_error(f"the entry {name[:80]!r} has two names")


def _parse_extra_fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    seen_kinds = set()
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if length > len(extra) - 4 or kind in seen_kinds:
            raise unsafe_archive_error("an extra field is damaged")
        seen_kinds.add(kind)
        yield kind, extra[4 : 4 + length]
        extra = extra[4 + length :]


def _read_at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    data = file.read(size)
    if len(data) != size:
        raise unsafe_archive_error("it ends in the middle")
    return data

"""The directory at the end of a zip: what it says is there, checked against what is there.

A zip says everything twice, and readers differ in which of the two they believe; here both must
agree. Bytes that belong to two entries, to none of the known structures, or to another disk are
refused.
"""

import stat
import struct
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from cleats.toolsets.code.downloads.entries import Limits, plain, too_large, unsafe

END: Final = struct.Struct("<4s4H2LH")
END_64: Final = struct.Struct("<4sQ2H2L4Q")
LOCATOR_64: Final = struct.Struct("<4sLQL")
CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
LOCAL: Final = struct.Struct("<4s5H3L2H")

STORED, DEFLATED = 0, 8
"""The two ways to pack that everybody reads."""

_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_PATCH: Final = 0x20
_LATER: Final = 0x8
"""Flag: the local header does not know the sizes yet; they follow the content."""

_BIG: Final = 0xFFFFFFFF
_ZIP64, _UNICODE_NAME = 0x0001, 0x7075


class Record(NamedTuple):
    """An entry as the directory has it."""

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


class _End(NamedTuple):
    entries: int
    size: int
    offset: int
    begins: int
    """Where the record itself is, or the first of its relatives: the directory ends there."""


def records(file: BinaryIO, limits: Limits) -> list[tuple[Record, int]]:
    """Every entry with the place where its content begins, in the order of the file.

    Raises:
        ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
    """
    end = _end(file)
    if end.entries > limits.entries:
        raise too_large(f"it has more than {limits.entries:,} entries")
    if end.offset + end.size != end.begins:
        raise unsafe("its directory is not where it should be")
    found = list(_directory(_at(file, end.offset, end.size)))
    if len(found) != end.entries:
        raise unsafe("its directory has another number of entries than it says")
    placed = []
    free = 0
    for record in sorted(found, key=lambda each: each.offset):
        if record.offset < free:
            raise unsafe(f"the entry {record.name[:80]!r} overlaps another")
        begins = _begin(file, record)
        free = begins + record.packed
        if free > end.offset:
            raise unsafe(f"the entry {record.name[:80]!r} reaches beyond its place")
        placed.append((record, begins))
    return placed


def _end(file: BinaryIO) -> _End:
    length = file.seek(0, 2)
    tail_at = max(0, length - END.size - 0xFFFF)
    tail = _at(file, tail_at, length - tail_at)
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < END.size:
        raise unsafe("it has no directory, or ends in the middle")
    _, disk, first_disk, here, entries, size, offset, comment = END.unpack_from(tail, place)
    begins = tail_at + place
    if begins + END.size + comment != length:
        raise unsafe("something follows its end, or its end is missing")
    if LOCATOR_64.size <= begins and _at(file, begins - LOCATOR_64.size, 4) == b"PK\x06\x07":
        return _end_64(file, begins - LOCATOR_64.size, (entries, size, offset))
    if disk or first_disk or here != entries or _BIG in (size, offset):
        raise unsafe("it is a part of several, or says so")
    return _End(entries, size, offset, begins)


def _end_64(file: BinaryIO, locator_at: int, small: tuple[int, int, int]) -> _End:
    _, disk, place, disks = LOCATOR_64.unpack(_at(file, locator_at, LOCATOR_64.size))
    if disk or disks != 1 or place + END_64.size != locator_at:
        raise unsafe("its large directory is not where it should be")
    _, length, _, _, number, first, here, entries, size, offset = END_64.unpack(
        _at(file, place, END_64.size)
    )
    if length != END_64.size - 12 or number or first or here != entries:
        raise unsafe("its large directory cannot be read")
    full = (0xFFFF, _BIG, _BIG)
    for said, large, marker in zip(small, (entries, size, offset), full, strict=True):
        if said not in (large, marker):
            raise unsafe("its two directories differ")
    return _End(entries, size, offset, place)


def _directory(data: bytes) -> Iterator[Record]:
    at = 0
    while at < len(data):
        if len(data) - at < CENTRAL.size or data[at : at + 4] != b"PK\x01\x02":
            raise unsafe("its directory is damaged")
        fields = CENTRAL.unpack_from(data, at)
        (_, _, _, flags, method, _, _, crc, packed, size, *lengths, disk, _, attributes, offset) = (
            fields
        )
        names, extras, comments = lengths
        at += CENTRAL.size
        name, extra = data[at : at + names], data[at + names : at + names + extras]
        at += names + extras + comments
        if at > len(data) or disk not in (0, 0xFFFF):
            raise unsafe("its directory is damaged")
        size, packed, offset = _large(extra, size, packed, offset)
        _check_name(name, extra)
        record = Record(name, flags, method, crc, packed, size, offset, attributes >> 16)
        _check(record, attributes)
        yield record


def _check(record: Record, attributes: int) -> None:
    shown = record.name[:80]
    if record.flags & _ENCRYPTED:
        raise unsafe(f"the entry {shown!r} is encrypted")
    if record.method not in (STORED, DEFLATED) or record.flags & _PATCH:
        raise unsafe(f"the entry {shown!r} is packed in a way that is not read here")
    kind = stat.S_IFMT(record.mode)
    if kind not in (0, stat.S_IFDIR, stat.S_IFREG):
        raise unsafe(f"the entry {shown!r} is a link, a device or a pipe")
    is_folder = kind == stat.S_IFDIR or (not kind and bool(attributes & 0x10))
    if (kind or attributes & 0x10) and is_folder != record.folder:
        raise unsafe(f"the entry {shown!r} is a folder and a file")
    if record.method == STORED and record.packed != record.size:
        raise unsafe(f"the entry {shown!r} has two sizes")


def _begin(file: BinaryIO, record: Record) -> int:
    """Where the content of an entry begins; its own header must say what the directory says."""
    header = _at(file, record.offset, LOCAL.size)
    mark, _, flags, method, _, _, crc, packed, size, names, extras = LOCAL.unpack(header)
    rest = _at(file, record.offset + LOCAL.size, names + extras)
    name, extra = rest[:names], rest[names:]
    said = (mark, name, method, flags & ~0x6)  # two bits that only say how well it is packed
    if said != (b"PK\x03\x04", record.name, record.method, record.flags & ~0x6):
        raise unsafe(f"the entry {record.name[:80]!r} differs from the directory")
    size, packed, _ = _large(extra, size, packed, 0)
    _check_name(name, extra)
    sizes = (crc, packed, size)
    unknown = bool(flags & _LATER)
    for local, central in zip(sizes, (record.crc, record.packed, record.size), strict=True):
        if local != central and not (unknown and local == 0):
            raise unsafe(f"the sizes of {record.name[:80]!r} differ from the directory")
    return record.offset + LOCAL.size + len(rest)


def _large(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """The numbers, with those that do not fit four bytes taken from where they are."""
    field = dict(_extras(extra)).get(_ZIP64, b"")
    numbers = [size, packed, offset]
    for place, number in enumerate(numbers):
        if number == _BIG:
            if len(field) < 8:
                raise unsafe("a large number is missing")
            numbers[place] = int.from_bytes(field[:8], "little")
            field = field[8:]
    return numbers[0], numbers[1], numbers[2]


def _check_name(name: bytes, extra: bytes) -> None:
    plain(name)
    other = dict(_extras(extra)).get(_UNICODE_NAME)
    if other is not None and other[5:] != name:
        raise unsafe(f"the entry {name[:80]!r} has two names")


def _extras(extra: bytes) -> Iterator[tuple[int, bytes]]:
    seen = set()
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if length > len(extra) - 4 or kind in seen:
            raise unsafe("an extra field is damaged")
        seen.add(kind)
        yield kind, extra[4 : 4 + length]
        extra = extra[4 + length :]


def _at(file: BinaryIO, place: int, size: int) -> bytes:
    file.seek(place)
    data = file.read(size)
    if len(data) != size:
        raise unsafe("it ends in the middle")
    return data

"""A strict streaming reader of tar archives: plain files and folders in ustar, GNU or pax format.

Everything that is not understood to the last field is rejected. The standard library's reader tries
to extract something from every archive, which is the opposite of the purpose here.
"""

from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from cleats.toolsets.code.downloads.entries import (
    ArchiveEntry,
    ArchiveLimits,
    oversized_archive_error,
    parse_entry_name,
    unsafe_archive_error,
)
from cleats.toolsets.code.downloads.unpacking import decompress_file

BLOCK_BYTES: Final = 512
NAME_FIELD_BYTES: Final = 100

MAX_METADATA_BYTES: Final = 64 << 10
"""Bytes of a header that only describes the next entry."""

MAX_OVERHEAD_BYTES: Final = 16 << 20
"""Bytes that headers and padding may take in total."""

_REJECTED_ENTRY_TYPES: Final = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"K": "a link",
    b"S": "a file with holes",
    b"M": "a part of a file",
}

_FILE_TYPE_FLAGS: Final = (b"0", b"\x00", b"7")
_METADATA_TYPE_FLAGS: Final = (b"x", b"g", b"L")

EntryContent = Iterator[bytes]


class _TarHeader(NamedTuple):
    name: bytes
    mode: int
    size: int
    kind: bytes


class _TarStream:
    """The decompressed bytes of an archive, read in exact amounts."""

    def __init__(self, blocks: Iterator[bytes], max_bytes: int) -> None:
        self._blocks = blocks
        self._remaining_bytes = max_bytes
        self._buffer = b""

    def read(self, size: int) -> bytes:
        """Read exactly `size` bytes.

        Raises:
            ToolError: ARCHIVE_UNSAFE, there are fewer.
        """
        return b"".join(self.iterate_bytes(size))

    def iterate_bytes(self, size: int) -> Iterator[bytes]:
        """Yield exactly `size` bytes, block by block."""
        while size:
            if not self._buffer and not self._fill_buffer():
                raise unsafe_archive_error("it ends in the middle")
            block, self._buffer = self._buffer[:size], self._buffer[size:]
            size -= len(block)
            yield block

    def check_end(self) -> None:
        """Read the remaining bytes, which must be padding."""
        while self._buffer:
            if self._buffer.strip(b"\x00"):
                raise unsafe_archive_error("something follows its end")
            self._fill_buffer()

    def _fill_buffer(self) -> bool:
        self._buffer = next(self._blocks, b"")
        self._remaining_bytes -= len(self._buffer)
        if self._remaining_bytes < 0:  # headers and padding compress well too
            raise oversized_archive_error("more comes out than its entries hold")
        return bool(self._buffer)


def is_tar(file: BinaryIO) -> bool:
    """Return whether the first block of an uncompressed file is a tar header."""
    file.seek(0)
    block = file.read(BLOCK_BYTES)
    return len(block) == BLOCK_BYTES and any(block) and _compute_checksum(block) == _parse_octal(block[148:156])


def read_entries(file: BinaryIO, limits: ArchiveLimits) -> Iterator[tuple[ArchiveEntry, EntryContent]]:
    """Yield each entry with its content, which must be read before the next entry.

    Raises:
        ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
    """
    stream = _TarStream(decompress_file(file), limits.total + MAX_OVERHEAD_BYTES)
    noted_name: bytes | None = None
    while (block := stream.read(BLOCK_BYTES)).strip(b"\x00"):
        header = _parse_header(block)
        if header.kind in _METADATA_TYPE_FLAGS:
            name = _read_metadata_name(header, stream)
            if name is not None and noted_name is not None:
                raise unsafe_archive_error("an entry has two names")
            noted_name = noted_name if name is None else name
            continue
        entry = _build_entry(header, header.name if noted_name is None else noted_name)
        noted_name = None
        yield entry, stream.iterate_bytes(entry.size)
        if stream.read(-entry.size % BLOCK_BYTES).strip(b"\x00"):
            raise unsafe_archive_error(f"{entry.name!r} is followed by something that is no padding")
    if noted_name is not None:
        raise unsafe_archive_error("a name stands at its end")
    stream.check_end()


def _parse_header(block: bytes) -> _TarHeader:
    if _compute_checksum(block) != _parse_octal(block[148:156]):
        raise unsafe_archive_error("the sum of a header is wrong")
    size, mode = _parse_octal(block[124:136]), _parse_octal(block[100:108])
    if size is None or mode is None:
        raise unsafe_archive_error("a header has no size or no mode")
    name = _read_name_field(block[:NAME_FIELD_BYTES])
    if block[257:263] == b"ustar\x00" and (prefix := _read_name_field(block[345:500])):
        name = prefix + b"/" + name
    return _TarHeader(name, mode, size, block[156:157])


def _build_entry(header: _TarHeader, name: bytes) -> ArchiveEntry:
    is_folder = header.kind == b"5" or (header.kind in _FILE_TYPE_FLAGS and name.endswith(b"/"))
    if not is_folder and header.kind not in _FILE_TYPE_FLAGS:
        kind = _REJECTED_ENTRY_TYPES.get(header.kind, f"of the kind {header.kind!r}")
        raise unsafe_archive_error(f"the entry {name[:80]!r} is {kind}")
    parts = parse_entry_name(name)
    if not parts and not is_folder:
        raise unsafe_archive_error("a file has no name")
    return ArchiveEntry(parts, header.size, is_folder, executable=bool(header.mode & 0o111))


def _read_metadata_name(header: _TarHeader, stream: _TarStream) -> bytes | None:
    """Return the name that a metadata header gives the next entry, or None."""
    if header.size > MAX_METADATA_BYTES:
        raise unsafe_archive_error("a description is too long")
    content = stream.read(header.size)
    if stream.read(-header.size % BLOCK_BYTES).strip(b"\x00"):
        raise unsafe_archive_error("a description is followed by something that is no padding")
    if header.kind == b"L":
        if content.count(b"\x00") > 1 or not content.endswith(b"\x00"):
            raise unsafe_archive_error("a long name has no end")
        return content[:-1]
    fields = dict(_parse_pax_records(content))
    if header.kind == b"g" and b"path" in fields:
        raise unsafe_archive_error("all entries have one name")
    for key in fields:
        if key in (b"size", b"linkpath", b"hdrcharset") or key.startswith(b"GNU.sparse"):
            raise unsafe_archive_error(f"a description says {key.decode()!r}")
    return fields.get(b"path")


def _parse_pax_records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of a pax header: `LENGTH KEY=VALUE`; the length counts the whole line."""
    seen_keys = set()
    while content:
        digits, space, _ = content.partition(b" ")
        length = int(digits) if space and digits.isdigit() and len(digits) < 8 else 0
        line, content = content[len(digits) + 1 : length], content[length:]
        key, equals, value = line.partition(b"=")
        is_complete = len(digits) + 1 + len(line) == length and line.endswith(b"\n")
        if not is_complete or not equals or not key or key in seen_keys:
            raise unsafe_archive_error("a description cannot be read")
        seen_keys.add(key)
        yield key, value[:-1]


def _compute_checksum(block: bytes) -> int:
    return sum(block[:148]) + 8 * 0x20 + sum(block[156:])


def _parse_octal(raw: bytes) -> int | None:
    digits = raw.strip(b"\x00 ") or b"0"
    return int(digits, 8) if not digits.strip(b"01234567") else None


def _read_name_field(raw: bytes) -> bytes:
    text, _, rest = raw.partition(b"\x00")
    if rest.strip(b"\x00"):
        raise unsafe_archive_error(f"the name {text[:80]!r} goes on behind its end")
    return text

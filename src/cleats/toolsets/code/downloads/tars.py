"""A strict streaming reader of tar archives: plain files and folders in ustar, GNU or pax format.

Everything that is not understood to the last field is rejected. `tarfile` tries to extract something from every archive
and does not report what it skipped, which is the opposite of the purpose here.
"""

from collections.abc import Iterator
from typing import BinaryIO, Final

from cleats.toolsets.code.downloads.unpacking import (
    ArchiveLimits,
    RawEntry,
    decompress_file,
    oversized_archive_error,
    unsafe_archive_error,
)

BLOCK_BYTES: Final = 512

MAX_METADATA_BYTES: Final = 64 << 10
"""Bytes of a tar header that only describes the next entry."""

MAX_OVERHEAD_BYTES: Final = 16 << 20
"""Bytes that the headers and the padding of a tar may take in total."""

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


class _TarStream:
    """The decompressed bytes of a tar, read in exact amounts."""

    def __init__(self, blocks: Iterator[bytes], max_bytes: int) -> None:
        self._blocks = blocks
        self._remaining_bytes = max_bytes
        self._buffer = b""

    def read(self, size: int) -> bytes:
        return b"".join(self.iterate_bytes(size))

    def iterate_bytes(self, size: int) -> Iterator[bytes]:
        """Yield exactly `size` bytes, block by block."""
        while size:
            if not self._buffer and not self._fill_buffer():
                raise unsafe_archive_error("it is truncated")
            block, self._buffer = self._buffer[:size], self._buffer[size:]
            size -= len(block)
            yield block

    def skip_padding(self, size: int, owner: str) -> None:
        """Read the rest of the last block of an entry or a description."""
        if self.read(-size % BLOCK_BYTES).strip(b"\x00"):
            raise unsafe_archive_error(f"{owner} is followed by data instead of padding")

    def check_end(self) -> None:
        """Read the remaining bytes, which must be padding."""
        while self._buffer:
            if self._buffer.strip(b"\x00"):
                raise unsafe_archive_error("it has data after its end")
            self._fill_buffer()

    def _fill_buffer(self) -> bool:
        self._buffer = next(self._blocks, b"")
        self._remaining_bytes -= len(self._buffer)
        if self._remaining_bytes < 0:  # headers and padding compress well too
            raise oversized_archive_error("it contains more data than its entries")
        return bool(self._buffer)


def is_tar(block: bytes) -> bool:
    return len(block) == BLOCK_BYTES and any(block) and _has_valid_checksum(block)


def read_entries(file: BinaryIO, limits: ArchiveLimits) -> Iterator[RawEntry]:
    stream = _TarStream(decompress_file(file), limits.total + MAX_OVERHEAD_BYTES)
    noted_name: bytes | None = None
    while (block := stream.read(BLOCK_BYTES)).strip(b"\x00"):
        header_name, mode, size = _parse_tar_header(block)
        kind = block[156:157]
        if kind in _METADATA_TYPE_FLAGS:
            described_name = _read_described_name(kind, size, stream)
            if described_name is not None and noted_name is not None:
                raise unsafe_archive_error("an entry has two names")
            noted_name = noted_name if described_name is None else described_name
            continue
        name, noted_name = header_name if noted_name is None else noted_name, None
        is_folder = kind == b"5" or (kind in _FILE_TYPE_FLAGS and name.endswith(b"/"))
        if not is_folder and kind not in _FILE_TYPE_FLAGS:
            kind_text = _REJECTED_ENTRY_TYPES.get(kind, f"of the kind {kind!r}")
            raise unsafe_archive_error(f"the entry {name[:80]!r} is {kind_text}")
        yield RawEntry(name, size, is_folder, bool(mode & 0o111), stream.iterate_bytes(size))
        stream.skip_padding(size, repr(name.decode(errors="replace").removesuffix("/")))
    if noted_name is not None:
        raise unsafe_archive_error("its last entry is a name without content")
    stream.check_end()


def _parse_tar_header(block: bytes) -> tuple[bytes, int, int]:
    if not _has_valid_checksum(block):
        raise unsafe_archive_error("a header has a wrong checksum")
    mode, size = _parse_octal(block[100:108]), _parse_octal(block[124:136])
    if size is None or mode is None:
        raise unsafe_archive_error("a header has no size or no mode")
    name = _read_name_field(block[:100])
    if block[257:263] == b"ustar\x00" and (prefix := _read_name_field(block[345:500])):
        name = prefix + b"/" + name
    return name, mode, size


def _read_described_name(kind: bytes, size: int, stream: _TarStream) -> bytes | None:
    """Return the name that a metadata header gives the next entry, or None."""
    if size > MAX_METADATA_BYTES:
        raise unsafe_archive_error("an extended header is too long")
    content = stream.read(size)
    stream.skip_padding(size, "a description")
    if kind == b"L":
        if content.count(b"\x00") > 1 or not content.endswith(b"\x00"):
            raise unsafe_archive_error("a long name has no end")
        return content[:-1]
    fields = dict(_parse_pax_records(content))
    if kind == b"g" and b"path" in fields:
        raise unsafe_archive_error("all entries have one name")
    for key in fields:
        if key in (b"size", b"linkpath", b"hdrcharset") or key.startswith(b"GNU.sparse"):
            raise unsafe_archive_error(f"an extended header sets {key.decode()!r}")
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
            raise unsafe_archive_error("an extended header cannot be read")
        seen_keys.add(key)
        yield key, value[:-1]


def _has_valid_checksum(block: bytes) -> bool:
    return sum(block[:148]) + 8 * 0x20 + sum(block[156:]) == _parse_octal(block[148:156])


def _parse_octal(raw: bytes) -> int | None:
    digits = raw.strip(b"\x00 ") or b"0"
    return int(digits, 8) if not digits.strip(b"01234567") else None


def _read_name_field(raw: bytes) -> bytes:
    text, _, rest = raw.partition(b"\x00")
    if rest.strip(b"\x00"):
        raise unsafe_archive_error(f"the name {text[:80]!r} continues after its end")
    return text

"""Tar, read strictly and as a stream: plain files and folders, in ustar, GNU or pax.

Whatever is not understood to the last field is refused. The library's own reader is made to get
something out of every archive, which is the opposite of what is wanted here.
"""

from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from cleats.toolsets.code.downloads.entries import Entry, Limits, plain, too_large, unsafe
from cleats.toolsets.code.downloads.unpacking import unpacked

BLOCK: Final = 512
NAME_END: Final = 100

LONGEST_NOTE: Final = 64 << 10
"""Bytes of a header that only describes the next one."""

OVERHEAD: Final = 16 << 20
"""Bytes that headers and padding may take, all together."""

_KINDS: Final = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"K": "a link",
    b"S": "a file with holes",
    b"M": "a part of a file",
}

_FILES: Final = (b"0", b"\x00", b"7")
_NOTES: Final = (b"x", b"g", b"L")

Content = Iterator[bytes]


class _Header(NamedTuple):
    name: bytes
    mode: int
    size: int
    kind: bytes


class _Tape:
    """The plain bytes of an archive, taken off in exact amounts."""

    def __init__(self, pieces: Iterator[bytes], most: int) -> None:
        self._pieces = pieces
        self._left = most
        self._rest = b""

    def take(self, size: int) -> bytes:
        """So many bytes.

        Raises:
            ToolError: ARCHIVE_UNSAFE, there are fewer.
        """
        return b"".join(self.parts(size))

    def parts(self, size: int) -> Iterator[bytes]:
        """So many bytes, piece by piece."""
        while size:
            if not self._rest and not self._more():
                raise unsafe("it ends in the middle")
            part, self._rest = self._rest[:size], self._rest[size:]
            size -= len(part)
            yield part

    def end(self) -> None:
        """Read what is left, which must be nothing but padding."""
        while self._rest:
            if self._rest.strip(b"\x00"):
                raise unsafe("something follows its end")
            self._more()

    def _more(self) -> bool:
        self._rest = next(self._pieces, b"")
        self._left -= len(self._rest)
        if self._left < 0:  # headers and padding too come out of little
            raise too_large("more comes out than its entries hold")
        return bool(self._rest)


def is_tar(file: BinaryIO) -> bool:
    """Whether the first block of a file, that is not compressed, is the header of a tar."""
    file.seek(0)
    block = file.read(BLOCK)
    return len(block) == BLOCK and any(block) and _sum(block) == _octal(block[148:156])


def entries(file: BinaryIO, limits: Limits) -> Iterator[tuple[Entry, Content]]:
    """Each entry with its content, which must be read before the next.

    Raises:
        ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
    """
    tape = _Tape(unpacked(file), limits.total + OVERHEAD)
    noted: bytes | None = None
    while (block := tape.take(BLOCK)).strip(b"\x00"):
        header = _read(block)
        if header.kind in _NOTES:
            name = _note(header, tape)
            if name is not None and noted is not None:
                raise unsafe("an entry has two names")
            noted = noted if name is None else name
            continue
        entry = _entry(header, header.name if noted is None else noted)
        noted = None
        yield entry, tape.parts(entry.size)
        if tape.take(-entry.size % BLOCK).strip(b"\x00"):
            raise unsafe(f"{entry.name!r} is followed by something that is no padding")
    if noted is not None:
        raise unsafe("a name stands at its end")
    tape.end()


def _read(block: bytes) -> _Header:
    if _sum(block) != _octal(block[148:156]):
        raise unsafe("the sum of a header is wrong")
    size, mode = _octal(block[124:136]), _octal(block[100:108])
    if size is None or mode is None:
        raise unsafe("a header has no size or no mode")
    name = _text(block[:NAME_END])
    if block[257:263] == b"ustar\x00" and (prefix := _text(block[345:500])):
        name = prefix + b"/" + name
    return _Header(name, mode, size, block[156:157])


def _entry(header: _Header, name: bytes) -> Entry:
    folder = header.kind == b"5" or (header.kind in _FILES and name.endswith(b"/"))
    if not folder and header.kind not in _FILES:
        kind = _KINDS.get(header.kind, f"of the kind {header.kind!r}")
        raise unsafe(f"the entry {name[:80]!r} is {kind}")
    parts = plain(name)
    if not parts and not folder:
        raise unsafe("a file has no name")
    return Entry(parts, header.size, folder, executable=bool(header.mode & 0o111))


def _note(header: _Header, tape: _Tape) -> bytes | None:
    """The name that a describing header has for the next entry, if any."""
    if header.size > LONGEST_NOTE:
        raise unsafe("a description is too long")
    content = tape.take(header.size)
    if tape.take(-header.size % BLOCK).strip(b"\x00"):
        raise unsafe("a description is followed by something that is no padding")
    if header.kind == b"L":
        if content.count(b"\x00") > 1 or not content.endswith(b"\x00"):
            raise unsafe("a long name has no end")
        return content[:-1]
    fields = dict(_fields(content))
    if header.kind == b"g" and b"path" in fields:
        raise unsafe("all entries have one name")
    for key in fields:
        if key in (b"size", b"linkpath", b"hdrcharset") or key.startswith(b"GNU.sparse"):
            raise unsafe(f"a description says {key.decode()!r}")
    return fields.get(b"path")


def _fields(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The lines of a pax header: `LENGTH KEY=VALUE`; the length counts all, with the line end."""
    seen = set()
    while content:
        digits, space, _ = content.partition(b" ")
        length = int(digits) if space and digits.isdigit() and len(digits) < 8 else 0
        line, content = content[len(digits) + 1 : length], content[length:]
        key, equals, value = line.partition(b"=")
        whole = len(digits) + 1 + len(line) == length and line.endswith(b"\n")
        if not whole or not equals or not key or key in seen:
            raise unsafe("a description cannot be read")
        seen.add(key)
        yield key, value[:-1]


def _sum(block: bytes) -> int:
    return sum(block[:148]) + 8 * 0x20 + sum(block[156:])


def _octal(raw: bytes) -> int | None:
    digits = raw.strip(b"\x00 ") or b"0"
    return int(digits, 8) if not digits.strip(b"01234567") else None


def _text(raw: bytes) -> bytes:
    text, _, rest = raw.partition(b"\x00")
    if rest.strip(b"\x00"):
        raise unsafe(f"the name {text[:80]!r} goes on behind its end")
    return text

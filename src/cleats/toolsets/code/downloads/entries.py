"""Rules for archive entries of every format: names, kinds, sizes and counts.

Laws:

- A name is a path of plain parts below the target and means the same on every system: no `..`, no
  root, no drive, no backslash, no character that a terminal or a file system interprets specially.
- No two names refer to the same file, even where case or Unicode normalization is ignored.
- Limits apply to the extracted data, not to the sizes that an archive declares.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError

_FORBIDDEN_CHARS_PATTERN = re.compile(r'[\x00-\x1f\x7f-\x9f\\:*?"<>|]|[\ud800-\udfff]')
"""Control characters, and the characters that Windows reserves for drives, streams and
wildcards."""

_DEVICE_NAME_PATTERN = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE
)
"""Names of Windows devices, with any extension."""

MAX_PART_BYTES: Final = 200
MAX_NAME_BYTES: Final = 1000
MAX_NAME_PARTS: Final = 32
"""Limits of a name in bytes and parts; every file system accepts them below a typical target."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits on the data extracted from an archive."""

    total: int = 200 << 20
    entry: int = 50 << 20
    entries: int = 2048
    ratio: int = 400
    """Bytes out for one byte in, applied once more than `free` bytes were extracted: text seldom
    exceeds 20."""
    free: int = 4 << 20


DEFAULT_ARCHIVE_LIMITS: Final = ArchiveLimits()


class ArchiveEntry(NamedTuple):
    """A file or folder in an archive."""

    parts: tuple[str, ...]
    size: int
    folder: bool = False
    executable: bool = False

    @property
    def name(self) -> str:
        return "/".join(self.parts)


def parse_entry_name(raw: bytes) -> tuple[str, ...]:
    """Return the parts of an entry name, empty if it denotes the target itself.

    Raises:
        ToolError: ARCHIVE_UNSAFE.
    """
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise unsafe_archive_error(f"the name {raw[:80]!r} is not UTF-8") from None
    if match := _FORBIDDEN_CHARS_PATTERN.search(name):
        raise unsafe_archive_error(f"the name {name[:80]!r} has the sign {match[0]!r} in it")
    if name.startswith("/"):
        raise unsafe_archive_error(f"the name {name[:80]!r} begins at the root")
    while name.startswith("./"):  # tar writes this for a folder that was given as `.`
        name = name[2:]
    parts = tuple(name.removesuffix("/").split("/")) if name not in ("", ".") else ()
    if len(raw) > MAX_NAME_BYTES or len(parts) > MAX_NAME_PARTS:
        raise unsafe_archive_error(f"the name {name[:80]!r}… is too long")
    for part in parts:
        _check_name_part(part, name)
    return parts


def _check_name_part(part: str, name: str) -> None:
    if part in ("", ".", ".."):
        raise unsafe_archive_error(f"the name {name[:80]!r} has the part {part!r}")
    if part[-1] in ". " or part[0] == " " or _DEVICE_NAME_PATTERN.fullmatch(part):
        raise unsafe_archive_error(f"the name {name[:80]!r} does not mean the same on every system")
    if len(part.encode()) > MAX_PART_BYTES:
        raise unsafe_archive_error(f"the name {name[:80]!r}… has too long a part")


@dataclass
class ArchiveTally:
    """Running totals of an archive, checked against the limits."""

    limits: ArchiveLimits
    packed: int
    """Bytes of the archive itself."""
    total: int = 0
    entries: int = 0
    _names: dict[tuple[str, ...], tuple[tuple[str, ...], bool]] = field(default_factory=dict)
    """Names by a normalized key that is equal where a file system may treat names as equal."""

    def admit(self, entry: ArchiveEntry) -> None:
        """Record an entry before its content is read.

        Raises:
            ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
        """
        self.entries += 1
        if self.entries > self.limits.entries:
            raise oversized_archive_error(f"it has more than {self.limits.entries:,} entries")
        if entry.size > self.limits.entry:
            raise oversized_archive_error(f"{entry.name!r} has more than {self.limits.entry:,} bytes")
        if self.total + entry.size > self.limits.total:
            raise oversized_archive_error(f"it holds more than {self.limits.total:,} bytes")
        if entry.folder and entry.size:
            raise unsafe_archive_error(f"the folder {entry.name!r} has a content")
        for depth in range(1, len(entry.parts)):
            self._register_name(entry.parts[:depth], folder=True)
        if entry.parts:
            self._register_name(entry.parts, folder=entry.folder)

    def add_bytes(self, size: int) -> None:
        """Record extracted bytes.

        Raises:
            ToolError: ARCHIVE_TOO_LARGE.
        """
        self.total += size
        if self.total > self.limits.total:
            raise oversized_archive_error(f"it holds more than {self.limits.total:,} bytes")
        if self.total > max(self.limits.free, self.limits.ratio * self.packed):
            raise oversized_archive_error(f"more than {self.limits.ratio} bytes come out for each one in it")

    def _register_name(self, parts: tuple[str, ...], *, folder: bool) -> None:
        key = tuple(unicodedata.normalize("NFKC", part.casefold()).casefold() for part in parts)
        previous = self._names.get(key)
        if previous is None:
            self._names[key] = (parts, folder)
        elif previous[0] != parts:
            raise unsafe_archive_error(f"{'/'.join(parts)!r} and {'/'.join(previous[0])!r} collide")
        elif not (folder and previous[1]):
            raise unsafe_archive_error(f"{'/'.join(parts)!r} is there twice")


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
        hint="Use a smaller archive, with nothing in it but what is needed.",
    )

"""What may stand in an archive: names, kinds, sizes and how many, whatever the format.

Laws:

- A name is a path of plain parts below the target, and means the same on every system: no `..`, no
  root, no drive, no backslash, no sign that a terminal or a file system reads in its own way.
- No two names meet in one file, also where case or the way to write an accent does not count.
- Limits hold for what comes out, not for what an archive says about itself.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError

_SIGNS = re.compile(r'[\x00-\x1f\x7f-\x9f\\:*?"<>|]|[\ud800-\udfff]')
"""Control characters, and those that Windows keeps for itself: a drive, a stream, a wildcard."""

_DEVICES = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE
)
"""Names that are devices on Windows, with any ending."""

LONGEST_PART: Final = 200
LONGEST_NAME: Final = 1000
DEEPEST: Final = 32
"""What a name may have, in bytes and parts; every file system takes it, below some target."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may come out of an archive."""

    total: int = 200 << 20
    entry: int = 50 << 20
    entries: int = 2048
    ratio: int = 400
    """Bytes out for one byte in, once more than `free` came out: text seldom passes 20."""
    free: int = 4 << 20


LIMITS: Final = Limits()


class Entry(NamedTuple):
    """A file or a folder of an archive."""

    parts: tuple[str, ...]
    size: int
    folder: bool = False
    executable: bool = False

    @property
    def name(self) -> str:
        return "/".join(self.parts)


def plain(raw: bytes) -> tuple[str, ...]:
    """The parts of a name; none when it is the target itself.

    Raises:
        ToolError: ARCHIVE_UNSAFE.
    """
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise unsafe(f"the name {raw[:80]!r} is not UTF-8") from None
    if found := _SIGNS.search(name):
        raise unsafe(f"the name {name[:80]!r} has the sign {found[0]!r} in it")
    if name.startswith("/"):
        raise unsafe(f"the name {name[:80]!r} begins at the root")
    while name.startswith("./"):  # how tar writes a folder that it was given as `.`
        name = name[2:]
    parts = tuple(name.removesuffix("/").split("/")) if name not in ("", ".") else ()
    if len(raw) > LONGEST_NAME or len(parts) > DEEPEST:
        raise unsafe(f"the name {name[:80]!r}… is too long")
    for part in parts:
        _check_part(part, name)
    return parts


def _check_part(part: str, name: str) -> None:
    if part in ("", ".", ".."):
        raise unsafe(f"the name {name[:80]!r} has the part {part!r}")
    if part[-1] in ". " or part[0] == " " or _DEVICES.fullmatch(part):
        raise unsafe(f"the name {name[:80]!r} does not mean the same on every system")
    if len(part.encode()) > LONGEST_PART:
        raise unsafe(f"the name {name[:80]!r}… has too long a part")


@dataclass
class Ledger:
    """What an archive has brought so far, against the limits."""

    limits: Limits
    packed: int
    """Bytes of the archive itself."""
    total: int = 0
    entries: int = 0
    _names: dict[tuple[str, ...], tuple[tuple[str, ...], bool]] = field(default_factory=dict)
    """By a form that is equal where a file system may take names for equal."""

    def admit(self, entry: Entry) -> None:
        """Take note of an entry, before its content is looked at.

        Raises:
            ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
        """
        self.entries += 1
        if self.entries > self.limits.entries:
            raise too_large(f"it has more than {self.limits.entries:,} entries")
        if entry.size > self.limits.entry:
            raise too_large(f"{entry.name!r} has more than {self.limits.entry:,} bytes")
        if self.total + entry.size > self.limits.total:
            raise too_large(f"it holds more than {self.limits.total:,} bytes")
        if entry.folder and entry.size:
            raise unsafe(f"the folder {entry.name!r} has a content")
        for depth in range(1, len(entry.parts)):
            self._note(entry.parts[:depth], folder=True)
        if entry.parts:
            self._note(entry.parts, folder=entry.folder)

    def count(self, size: int) -> None:
        """Take note of bytes that came out.

        Raises:
            ToolError: ARCHIVE_TOO_LARGE.
        """
        self.total += size
        if self.total > self.limits.total:
            raise too_large(f"it holds more than {self.limits.total:,} bytes")
        if self.total > max(self.limits.free, self.limits.ratio * self.packed):
            raise too_large(f"more than {self.limits.ratio} bytes come out for each one in it")

    def _note(self, parts: tuple[str, ...], *, folder: bool) -> None:
        key = tuple(unicodedata.normalize("NFKC", part.casefold()).casefold() for part in parts)
        before = self._names.get(key)
        if before is None:
            self._names[key] = (parts, folder)
        elif before[0] != parts:
            raise unsafe(f"{'/'.join(parts)!r} and {'/'.join(before[0])!r} collide")
        elif not (folder and before[1]):
            raise unsafe(f"{'/'.join(parts)!r} is there twice")


def unsafe(why: str) -> ToolError:
    """The refusal of an archive that lies, is damaged, or reaches where it must not."""
    return ToolError(
        ErrorCode.ARCHIVE_UNSAFE,
        f"The archive is refused: {why}. Nothing was written.",
        hint="Use an archive of plain files and folders, from a source that you trust.",
    )


def too_large(why: str) -> ToolError:
    """The refusal of an archive that would fill the disk."""
    return ToolError(
        ErrorCode.ARCHIVE_TOO_LARGE,
        f"The archive is refused: {why}. Nothing was written.",
        hint="Use a smaller archive, with nothing in it but what is needed.",
    )

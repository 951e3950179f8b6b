"""Archives: checked completely before a byte is written, then moved into place in one step.

Laws, which raise ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE:

- A name is a path of plain parts below the target and means the same on every system: no `..`, no root, no drive, no
  backslash, no character that a terminal or a file system interprets specially.
- No two names refer to the same file, even where case or Unicode normalization is ignored.
- Limits apply to the extracted data, not to the sizes that an archive declares.
- An archive that any rule rejects leaves no trace, inside the target or outside.
- The written data is the checked data: the file stays open between the two passes, and every limit is applied again.
- The target appears with all its contents, or not at all.
"""

import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from cleats.system.atomic_files import sync_path, sync_tree
from cleats.system.safe_paths import CREATE_FLAGS
from cleats.toolsets.code.downloads import tars, zips
from cleats.toolsets.code.downloads.unpacking import (
    ArchiveLimits,
    RawEntry,
    find_decompressor,
    oversized_archive_error,
    unsafe_archive_error,
)

STAGING_FOLDER_PREFIX: Final = ".unpacking-"
"""Name prefix of the temporary folder that is renamed to the target."""

CancellationCheck = Callable[[], object]
"""Called at intervals; raises when the caller no longer waits for the result."""

DEFAULT_ARCHIVE_LIMITS: Final = ArchiveLimits()

_FORBIDDEN_CHARS_PATTERN = re.compile(r'[\x00-\x1f\x7f-\x9f\\:*?"<>|]|[\ud800-\udfff]')
"""Control characters, and the characters that Windows reserves for drives, streams and wildcards."""

_DEVICE_NAME_PATTERN = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE
)
"""Names of Windows devices, with any extension."""

MAX_PART_BYTES: Final = 200
MAX_NAME_BYTES: Final = 1000
MAX_NAME_PARTS: Final = 32
"""Limits of a name in bytes and parts; every file system accepts them below a typical target."""


class ArchiveEntry(NamedTuple):
    """A file or folder in an archive."""

    parts: tuple[str, ...]
    size: int
    folder: bool = False
    executable: bool = False

    @classmethod
    def from_raw(cls, raw_entry: RawEntry) -> "ArchiveEntry":
        """Create an entry with a checked name."""
        parts = parse_entry_name(raw_entry.name)
        if not parts and not raw_entry.folder:
            raise unsafe_archive_error("a file has no name")
        return cls(parts, raw_entry.size, raw_entry.folder, raw_entry.executable)

    @property
    def name(self) -> str:
        return "/".join(self.parts)


def parse_entry_name(raw: bytes) -> tuple[str, ...]:
    """Return the parts of an entry name, empty if it denotes the target itself."""
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise unsafe_archive_error(f"the name {raw[:80]!r} is not UTF-8") from None
    if match := _FORBIDDEN_CHARS_PATTERN.search(name):
        raise unsafe_archive_error(f"the name {name[:80]!r} contains the character {match[0]!r}")
    if name.startswith("/"):
        raise unsafe_archive_error(f"the name {name[:80]!r} is an absolute path")
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
        raise unsafe_archive_error(f"the name {name[:80]!r} has the segment {part!r}")
    if part[-1] in ". " or part[0] == " " or _DEVICE_NAME_PATTERN.fullmatch(part):
        raise unsafe_archive_error(f"the name {name[:80]!r} is not portable")
    if len(part.encode()) > MAX_PART_BYTES:
        raise unsafe_archive_error(f"the name {name[:80]!r}… has a segment that is too long")


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
        """Record an entry before its content is read."""
        self.entries += 1
        if self.entries > self.limits.entries:
            raise oversized_archive_error(f"it has more than {self.limits.entries:,} entries")
        if entry.size > self.limits.entry:
            raise oversized_archive_error(f"{entry.name!r} has more than {self.limits.entry:,} bytes")
        if self.total + entry.size > self.limits.total:
            raise oversized_archive_error(f"it holds more than {self.limits.total:,} bytes")
        if entry.folder and entry.size:
            raise unsafe_archive_error(f"the folder {entry.name!r} has content")
        for depth in range(1, len(entry.parts)):
            self._register_name(entry.parts[:depth], folder=True)
        if entry.parts:
            self._register_name(entry.parts, folder=entry.folder)

    def add_bytes(self, size: int) -> None:
        """Record extracted bytes."""
        self.total += size
        if self.total > self.limits.total:
            raise oversized_archive_error(f"it holds more than {self.limits.total:,} bytes")
        if self.total > max(self.limits.free, self.limits.ratio * self.packed):
            raise oversized_archive_error(f"its compression ratio is over {self.limits.ratio}")

    def count_content(self, content: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the content of an entry and record its bytes."""
        for piece in content:
            self.add_bytes(len(piece))
            yield piece

    def _register_name(self, parts: tuple[str, ...], *, folder: bool) -> None:
        key = tuple(unicodedata.normalize("NFKC", part.casefold()).casefold() for part in parts)
        previous = self._names.get(key)
        if previous is None:
            self._names[key] = (parts, folder)
        elif previous[0] != parts:
            raise unsafe_archive_error(f"{'/'.join(parts)!r} and {'/'.join(previous[0])!r} collide")
        elif not (folder and previous[1]):
            raise unsafe_archive_error(f"{'/'.join(parts)!r} occurs twice")


def is_archive(file: BinaryIO) -> bool:
    """Return whether a file looks like a supported archive: a zip, or a tar, compressed or not."""
    file.seek(0)
    header = file.read(512)
    return zips.is_zip(header) or find_decompressor(header) is not None or tars.is_tar(header)


def check_archive(
    file: BinaryIO, limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS, check_cancelled: CancellationCheck = lambda: None
) -> list[ArchiveEntry]:
    """Read an archive to its end without writing anything, and return its entries."""
    entries = []
    for entry, content in _iterate_admitted_entries(file, limits):
        for _ in content:
            check_cancelled()
        entries.append(entry)
    return entries


def extract_archive(
    file: BinaryIO,
    target: Path,
    limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS,
    check_cancelled: CancellationCheck = lambda: None,
) -> list[ArchiveEntry]:
    """Check an archive and unpack it into a folder that does not exist yet.

    Raises:
        ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
        OSError: the target exists already or cannot be written.
    """
    check_archive(file, limits, check_cancelled)
    if os.path.lexists(target):
        raise FileExistsError(17, "it already exists", str(target))
    staging_folder = Path(tempfile.mkdtemp(prefix=STAGING_FOLDER_PREFIX, dir=target.parent))
    try:
        entries = []
        for entry, content in _iterate_admitted_entries(file, limits):
            _write_entry(staging_folder, entry, content, check_cancelled)
            entries.append(entry)
        staging_folder.chmod(0o755)
        sync_tree(staging_folder)
        staging_folder.rename(target)
    except BaseException:
        shutil.rmtree(staging_folder, ignore_errors=True)
        raise
    sync_path(target.parent)
    return entries


def _iterate_admitted_entries(file: BinaryIO, limits: ArchiveLimits) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
    """Yield each entry that the rules admit, with content that is counted while it is read."""
    if not is_archive(file):
        raise unsafe_archive_error("it is neither a zip nor a tar")
    tally = ArchiveTally(limits, file.seek(0, os.SEEK_END))
    file.seek(0)
    read_entries = zips.read_entries if zips.is_zip(file.read(4)) else tars.read_entries
    for raw_entry in read_entries(file, limits):
        entry = ArchiveEntry.from_raw(raw_entry)
        tally.admit(entry)
        yield entry, tally.count_content(raw_entry.content)


def _write_entry(
    folder: Path, entry: ArchiveEntry, content: Iterator[bytes], check_cancelled: CancellationCheck
) -> None:
    path = folder.joinpath(*entry.parts)
    if entry.folder:
        path.mkdir(parents=True, exist_ok=True)
        for _ in content:
            check_cancelled()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, CREATE_FLAGS, 0o755 if entry.executable else 0o644), "wb") as file:
        for piece in content:
            file.write(piece)
            check_cancelled()

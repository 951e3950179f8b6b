"""Archives: checked completely before a byte is written, then moved into place in one step.

Laws:

- An archive that any rule rejects leaves no trace, inside the target or outside.
- The written data is the checked data: the file stays open between the two passes, and every limit
  is applied again.
- The target appears with all its contents, or not at all.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from cleats.system.atomic_files import sync_path, sync_tree
from cleats.toolsets.code.downloads import tars, zips
from cleats.toolsets.code.downloads.entries import (
    DEFAULT_ARCHIVE_LIMITS,
    ArchiveEntry,
    ArchiveLimits,
    ArchiveTally,
    unsafe_archive_error,
)
from cleats.toolsets.code.downloads.unpacking import is_compressed

STAGING_FOLDER_PREFIX: Final = ".unpacking-"
"""Name prefix of the temporary folder that is renamed to the target."""

_SAFE_OPEN_FLAGS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

CancellationCheck = Callable[[], object]
"""Called at intervals; raises when the caller no longer waits for the result."""


def is_archive(file: BinaryIO) -> bool:
    """Return whether a file looks like a supported archive: a zip, or a tar, compressed or not."""
    file.seek(0)
    header = file.read(512)
    return zips.is_zip(header) or is_compressed(header) or tars.is_tar(file)


def check_archive(
    file: BinaryIO, limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS, check_cancelled: CancellationCheck = lambda: None
) -> list[ArchiveEntry]:
    """Read an archive to its end without writing anything, and return its entries.

    Raises:
        ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
    """
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
        raise FileExistsError(17, "it is there already", str(target))
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
    archive_bytes = file.seek(0, os.SEEK_END)
    tally = ArchiveTally(limits, archive_bytes)
    for entry, content in _read_entries(file, limits):
        tally.admit(entry)
        yield entry, _count_content(content, tally)


def _read_entries(file: BinaryIO, limits: ArchiveLimits) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
    file.seek(0)
    if zips.is_zip(file.read(4)):
        return zips.read_entries(file, limits)
    if is_archive(file):
        return tars.read_entries(file, limits)
    raise unsafe_archive_error("it is neither a zip nor a tar")


def _count_content(content: Iterator[bytes], tally: ArchiveTally) -> Iterator[bytes]:
    for piece in content:
        tally.add_bytes(len(piece))
        yield piece


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
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE_OPEN_FLAGS
    descriptor = os.open(path, flags, 0o755 if entry.executable else 0o644)
    with os.fdopen(descriptor, "wb") as file:
        for piece in content:
            file.write(piece)
            check_cancelled()

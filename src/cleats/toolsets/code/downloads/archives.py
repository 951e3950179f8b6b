"""Archives: checked whole before a byte is written, then put in place whole.

Laws:

- An archive that any rule refuses leaves no trace, inside the target or outside.
- What is written is what was checked: the file stays open between the two, and every limit is
  applied again.
- The target appears with everything in it, or not at all.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from cleats.toolsets.code.downloads import tars, zips
from cleats.toolsets.code.downloads.entries import LIMITS, Entry, Ledger, Limits, unsafe
from cleats.toolsets.code.downloads.unpacking import compressed
from cleats.toolsets.code.store.files import sync, sync_tree

UNFINISHED: Final = ".unpacking-"
"""How the folder is called that will be the target."""

_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

Alive = Callable[[], object]
"""Called now and then; raises when nobody waits for the work any more."""


def is_archive(file: BinaryIO) -> bool:
    """Whether it looks like one that can be unpacked here: zip, or tar in whatever wrapping."""
    file.seek(0)
    beginning = file.read(512)
    return zips.is_zip(beginning) or compressed(beginning) or tars.is_tar(file)


def check(file: BinaryIO, limits: Limits = LIMITS, alive: Alive = lambda: None) -> list[Entry]:
    """Read an archive to its end and write nothing; return what is in it.

    Raises:
        ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
    """
    found = []
    for entry, content in _entries(file, limits):
        for _ in content:
            alive()
        found.append(entry)
    return found


def extract(
    file: BinaryIO, target: Path, limits: Limits = LIMITS, alive: Alive = lambda: None
) -> list[Entry]:
    """Check an archive, and unpack it into a folder that is not there yet.

    Raises:
        ToolError: ARCHIVE_UNSAFE or ARCHIVE_TOO_LARGE.
        OSError: the target is there, or cannot be written.
    """
    check(file, limits, alive)
    if os.path.lexists(target):
        raise FileExistsError(17, "it is there already", str(target))
    unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=target.parent))
    try:
        found = []
        for entry, content in _entries(file, limits):
            _write(unfinished, entry, content, alive)
            found.append(entry)
        unfinished.chmod(0o755)
        sync_tree(unfinished)
        unfinished.rename(target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    sync(target.parent)
    return found


def _entries(file: BinaryIO, limits: Limits) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Each entry that the rules admit, with a content that is counted as it comes."""
    packed = file.seek(0, os.SEEK_END)
    ledger = Ledger(limits, packed)
    for entry, content in _read(file, limits):
        ledger.admit(entry)
        yield entry, _counted(content, ledger)


def _read(file: BinaryIO, limits: Limits) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    file.seek(0)
    if zips.is_zip(file.read(4)):
        return zips.entries(file, limits)
    if is_archive(file):
        return tars.entries(file, limits)
    raise unsafe("it is neither a zip nor a tar")


def _counted(content: Iterator[bytes], ledger: Ledger) -> Iterator[bytes]:
    for piece in content:
        ledger.count(len(piece))
        yield piece


def _write(folder: Path, entry: Entry, content: Iterator[bytes], alive: Alive) -> None:
    place = folder.joinpath(*entry.parts)
    if entry.folder:
        place.mkdir(parents=True, exist_ok=True)
        for _ in content:
            alive()
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW
    descriptor = os.open(place, flags, 0o755 if entry.executable else 0o644)
    with os.fdopen(descriptor, "wb") as file:
        for piece in content:
            file.write(piece)
            alive()

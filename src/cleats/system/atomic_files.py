"""File operations that survive a power cut, and copies that cost little."""

import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final


def sync_path(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot, and writes names through
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Flush a folder and everything in it to the disk, names last.

    A file that another folder shares, through `link_file`, is on the disk already.
    """
    for current, _, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(current, name)
            if path.stat().st_nlink == 1:
                sync_path(path)
        sync_path(Path(current))


def replace_text(path: Path, text: str) -> None:
    """Replace the content of a small file atomically and durably."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_path(path.parent)


def clone_file(source: Path, target: Path) -> None:
    """Copy a file; file systems that can share blocks until one side writes do so."""
    if hasattr(os, "copy_file_range"):
        with source.open("rb") as origin, target.open("wb") as copy:
            try:
                while os.copy_file_range(origin.fileno(), copy.fileno(), 1 << 30):
                    pass
            except OSError as error:
                if copy.tell() or error.errno == 28:  # a full disk is no reason to try again
                    raise
            else:
                return
    shutil.copyfile(source, target)


def link_file(source: Path, target: Path) -> None:
    """Give an immutable file a second name."""
    try:
        target.hardlink_to(source)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def count_folder_bytes(folder: Path) -> int:
    """Return the bytes of the files below a folder."""
    return sum((Path(current) / name).lstat().st_size for current, _, files in os.walk(folder) for name in files)


MAX_CONCURRENT_SYNCS: Final = 16
"""Files that are synced at the same time."""

MAX_PENDING_FILES: Final = 1000
"""Temporary files at a time: the most that a crash can leave behind."""

TEMP_SUFFIX: Final = ".tmp"

STALE_TEMP_SECONDS: Final = 3600.0
"""Age in seconds after which a temporary file is certainly abandoned."""


class FileBatch:
    """Files that are written but not yet renamed to their final paths."""

    def __init__(self) -> None:
        self._pending: list[tuple[Path, Path]] = []

    def add(self, path: Path, data: bytes) -> None:
        """Write a file under a temporary name; `flush` renames it.

        Raises:
            OSError: The file cannot be written; an existing file stays unchanged.
        """
        descriptor, temp_name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=TEMP_SUFFIX)
        self._pending.append((Path(temp_name), path))
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        if len(self._pending) >= MAX_PENDING_FILES:
            self.flush()

    def flush(self) -> None:
        """Sync all added files and rename them to their final paths.

        Raises:
            OSError: The disk does not accept them.
        """
        if len(self._pending) > 1:
            with ThreadPoolExecutor(MAX_CONCURRENT_SYNCS) as pool:
                list(pool.map(sync_path, [temp_path for temp_path, _ in self._pending]))
        else:
            for temp_path, _ in self._pending:
                sync_path(temp_path)
        for temp_path, path in self._pending:
            temp_path.replace(path)
        for folder in {path.parent for _, path in self._pending}:
            sync_path(folder)
        self._pending = []

    def discard(self) -> None:
        """Remove the temporary files that were not renamed."""
        for temp_path, _ in self._pending:
            with suppress(OSError):
                temp_path.unlink()
        self._pending = []


def write_file(path: Path, data: bytes) -> None:
    """Write one file atomically.

    Raises:
        OSError: The file cannot be written; an existing file stays unchanged.
    """
    batch = FileBatch()
    try:
        batch.add(path, data)
        batch.flush()
    finally:
        batch.discard()


def remove_stale_files(folder: Path) -> None:
    """Remove temporary files that a crash left in a folder."""
    for path in folder.glob(f".*{TEMP_SUFFIX}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_TEMP_SECONDS:
                path.unlink()

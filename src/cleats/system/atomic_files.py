"""File operations that survive a power cut, copies that cost little, and locks on files.

The system releases a lock when its holder dies. Windows needs no shared locks: a file that is open
cannot be removed there, which is all that a shared lock is for.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


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


def replace_file(path: Path, data: bytes, *, mode: int = 0o666, synced: bool = True) -> None:
    """Replace the content of a file atomically, and durably unless it need not be synced.

    A reader sees either the old bytes or the new ones, and a link is replaced instead of followed.

    Raises:
        OSError: The file cannot be written; an existing file stays unchanged.
    """
    temporary = _create_temporary(path, data, mode)
    try:
        if synced:
            sync_path(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if synced:
        sync_path(path.parent)


def replace_text(path: Path, text: str) -> None:
    """Replace the content of a small file atomically and durably."""
    replace_file(path, text.encode())


def _create_temporary(path: Path, data: bytes, mode: int) -> Path:
    temporary = path.with_name(f".{os.urandom(8).hex()}{TEMP_SUFFIX}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


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
    _copy_file(source, target)


def link_file(source: Path, target: Path) -> None:
    """Give an immutable file a second name."""
    try:
        target.hardlink_to(source)
    except OSError:  # another file system, or one without links
        _copy_file(source, target)


def _copy_file(source: Path, target: Path) -> None:
    import shutil  # noqa: PLC0415 - loads compressors, and every server loads this module

    shutil.copyfile(source, target)


def count_folder_bytes(folder: Path) -> int:
    """Return the bytes of the files below a folder."""
    return sum((Path(current) / name).lstat().st_size for current, _, files in os.walk(folder) for name in files)


MAX_CONCURRENT_SYNCS: Final = 16
"""Files that are synced at the same time."""

MAX_PENDING_FILES: Final = 1000
"""Temporary files at a time: the most that a crash can leave behind."""

TEMP_SUFFIX: Final = ".tmp"

PRIVATE_MODE: Final = 0o600
"""The mode of a file that only its owner may read."""

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
        self._pending.append((_create_temporary(path, data, PRIVATE_MODE), path))
        if len(self._pending) >= MAX_PENDING_FILES:
            self.flush()

    def flush(self) -> None:
        """Sync all added files and rename them to their final paths.

        Raises:
            OSError: The disk does not accept them.
        """
        if len(self._pending) > 1:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - as above

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


def remove_stale_files(folder: Path) -> None:
    """Remove temporary files that a crash left in a folder."""
    for path in folder.glob(f".*{TEMP_SUFFIX}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_TEMP_SECONDS:
                path.unlink()


class FileLock:
    """A held lock; it lasts until it is released or the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Release the lock. Safe to repeat."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def acquire_shared_lock(path: Path) -> FileLock | None:
    """Lock a file against removal; return None when it is gone already."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # waits only for one who is removing it
        if os.fstat(descriptor).st_nlink == 0:
            os.close(descriptor)
            return None
    return FileLock(descriptor)


def try_exclusive_lock(path: Path) -> FileLock | None:
    """Lock a file exclusively, creating it if missing; return None while it is locked elsewhere."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    if sys.platform != "win32" and os.fstat(descriptor).st_nlink == 0:
        os.close(descriptor)  # the last holder has removed the file
        return None
    return FileLock(descriptor)

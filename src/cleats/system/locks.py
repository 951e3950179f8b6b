"""Locks on files, which the system releases when their holder dies.

Windows has no shared locks for whole files here, and needs none: a file that is open cannot be
removed there, which is all that a shared lock is for.
"""

import os
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


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

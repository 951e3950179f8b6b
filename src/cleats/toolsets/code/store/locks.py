"""Locks on files, which the system takes back when their holder dies.

Windows has no shared locks for whole files here, and needs none: a file that somebody has open
cannot be removed there, which is all that a shared lock is for.
"""

import os
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class Lock:
    """A lock that is held, until it is released or the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let others have it. Safe to repeat."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def share(path: Path) -> Lock | None:
    """Hold a file that must not be removed; None when it is gone already."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # waits only for one who is removing it
        if os.fstat(descriptor).st_nlink == 0:
            os.close(descriptor)
            return None
    return Lock(descriptor)


def claim(path: Path) -> Lock | None:
    """Hold a file alone, which is made when it is missing; None while anyone else holds it."""
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
        os.close(descriptor)  # whoever held it last has removed it
        return None
    return Lock(descriptor)

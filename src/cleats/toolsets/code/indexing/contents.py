"""The bytes of a file, read so that a change is never missed.

A file can change while it is read, or right after, within the same tick of the clock. The second
would never show, so such a file is noted without a time, and its hash is compared at the next look.
"""

import errno
import os
import stat
import time
from hashlib import blake2b
from typing import Final, NamedTuple

from cleats.toolsets.code.store.rows import UNSURE

ATTEMPTS: Final = 3
"""How often a file is read that changes meanwhile."""

FINE, COARSE = 20_000_000, 2_000_000_000
"""Nanoseconds in which a second change could leave the same mtime: a few ticks of the kernel's
clock, or the whole seconds of some file systems."""

_PLAIN = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


class NotAFileError(Exception):
    """Raised when a link, a pipe or a folder has taken the place of a file."""


class Content(NamedTuple):
    """The bytes of a file and what the system said of it when they were read."""

    data: bytes
    size: int
    mtime_ns: int


def content(place: str) -> Content:
    """Read a file whole.

    Raises:
        OSError: it is gone, or may not be read.
        NotAFileError: it has become something else.
    """
    # Another program may have put a link there, or a pipe, which would wait for its writer.
    try:
        descriptor = os.open(place, os.O_RDONLY | _PLAIN)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise NotAFileError from error
        raise
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        for _ in range(ATTEMPTS):
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise NotAFileError
            file.seek(0)
            now = time.time_ns()
            data = file.read()
            after = os.fstat(descriptor)
            if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
                return Content(data, after.st_size, _settled(after.st_mtime_ns, now))
    return Content(data, len(data), UNSURE)


def digest_of(data: bytes) -> bytes:
    """What tells two contents apart."""
    return blake2b(data, digest_size=16).digest()


def _settled(mtime_ns: int, now: int) -> int:
    doubt = FINE if mtime_ns % 1_000_000_000 else COARSE
    return mtime_ns if mtime_ns < now - doubt else UNSURE

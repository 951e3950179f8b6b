"""Which files of a repository may be shown, and how they are opened.

A path is followed to where it leads, through every link, and must end in a plain file inside the
repository; git's own folder, which may hold passwords, is not shown. The file is then opened part
by part without following any link, so that what was checked is what is read.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.pathnames import usable

PRIVATE: Final = ".git"
SHOWN: Final = 80
"""Characters of a path that is none, in the error about it."""

_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)
_BINARY: Final = getattr(os, "O_BINARY", 0)


def inside(root: Path, given: str) -> Path:
    """The file that a path means, relative to the root of the repository.

    Raises:
        ToolError: FORBIDDEN outside of it; NOT_FOUND, there is none; INVALID_REQUEST, it is no
            plain file.
    """
    try:
        place = (root / usable(given)).resolve()
    except (OSError, ValueError, RuntimeError):  # a null byte, a loop of links, a long name
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{given[:SHOWN]!r} is no usable path.",
            hint="Give the path of a file, from the root of the repository.",
        ) from None
    if not place.is_relative_to(root):
        raise _forbidden(given, "leads out of the repository")
    path = place.relative_to(root)
    if path.parts[:1] == (PRIVATE,):
        raise _forbidden(given, "is in git's own folder")
    _check(place, given)
    return path


def opened(root: Path, path: Path) -> BinaryIO:
    """Open a file that `inside` found, if it is still what it was.

    Raises:
        ToolError: as `inside` does.
    """
    try:
        descriptor = _descend(root, path) if os.open in os.supports_dir_fd else _open(root / path)
    except OSError as error:
        _refuse(error, str(path))
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise _no_file(str(path), "is no plain file")
    return file


def _descend(root: Path, path: Path) -> int:
    *folders, name = path.parts
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | _NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)


def _open(place: Path) -> int:
    return os.open(place, os.O_RDONLY | _BINARY)


def _check(place: Path, given: str) -> None:
    try:
        mode = place.lstat().st_mode
    except OSError as error:
        _refuse(error, given)
    if stat.S_ISDIR(mode):
        raise _no_file(given, "is a folder")
    if not stat.S_ISREG(mode):
        raise _no_file(given, "is no plain file")


def _refuse(error: OSError, given: str) -> NoReturn:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"There is no file {given!r} in the repository.",
            hint="Give its path from the root of the repository; `search` finds files.",
        ) from None
    if error.errno in (errno.EACCES, errno.EPERM):
        raise _forbidden(given, "may not be read by this server") from None
    if error.errno == errno.ELOOP:
        raise _forbidden(given, "was replaced by a link just now") from None
    raise _no_file(given, f"cannot be opened: {error.strerror}") from None


def _forbidden(given: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.FORBIDDEN,
        f"{given!r} {why}.",
        hint="Only files inside the repository are shown; repoPath names another one.",
    )


def _no_file(given: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{given!r} {why}.",
        hint="Give the path of a text file, from the root of the repository.",
    )

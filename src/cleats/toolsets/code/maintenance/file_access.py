"""Safe access to files of a repository.

A path is resolved through every link and must end at a regular file inside the repository; git's
own folder, which may hold passwords, is not shown. The file is then opened part by part without
following any link, so that the file that is read is the file that was checked.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.pathnames import check_path_name

GIT_FOLDER: Final = ".git"
MAX_SHOWN_PATH_CHARS: Final = 80
"""Characters of an unusable path that an error message shows."""

_NONBLOCK_FLAG: Final = getattr(os, "O_NONBLOCK", 0)
_BINARY_FLAG: Final = getattr(os, "O_BINARY", 0)


def resolve_file(root: Path, requested_path: str) -> Path:
    """Resolve a path to a file, relative to the root of the repository.

    Raises:
        ToolError: FORBIDDEN outside of it; NOT_FOUND, there is no such file; INVALID_REQUEST, it is
            not a regular file.
    """
    try:
        resolved = (root / check_path_name(requested_path)).resolve()
    except (OSError, ValueError, RuntimeError):  # a null byte, a loop of links, a long name
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{requested_path[:MAX_SHOWN_PATH_CHARS]!r} is no usable path.",
            hint="Give the path of a file, from the root of the repository.",
        ) from None
    if not resolved.is_relative_to(root):
        raise _forbidden_path_error(requested_path, "leads out of the repository")
    path = resolved.relative_to(root)
    if path.parts[:1] == (GIT_FOLDER,):
        raise _forbidden_path_error(requested_path, "is in git's own folder")
    _check_regular_file(resolved, requested_path)
    return path


def open_file(root: Path, path: Path) -> BinaryIO:
    """Open a file that `resolve_file` returned, if it has not been replaced.

    Raises:
        ToolError: as `resolve_file` does.
    """
    try:
        descriptor = _open_without_links(root, path) if os.open in os.supports_dir_fd else _open_path(root / path)
    except OSError as error:
        _raise_open_error(error, str(path))
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise _invalid_file_error(str(path), "is no plain file")
    return file


def _open_without_links(root: Path, path: Path) -> int:
    *folders, name = path.parts
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | _NONBLOCK_FLAG, dir_fd=folder)
    finally:
        os.close(folder)


def _open_path(path: Path) -> int:
    return os.open(path, os.O_RDONLY | _BINARY_FLAG)


def _check_regular_file(path: Path, requested_path: str) -> None:
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        _raise_open_error(error, requested_path)
    if stat.S_ISDIR(mode):
        raise _invalid_file_error(requested_path, "is a folder")
    if not stat.S_ISREG(mode):
        raise _invalid_file_error(requested_path, "is no plain file")


def _raise_open_error(error: OSError, requested_path: str) -> NoReturn:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"There is no file {requested_path!r} in the repository.",
            hint="Give its path from the root of the repository; `search` finds files.",
        ) from None
    if error.errno in (errno.EACCES, errno.EPERM):
        raise _forbidden_path_error(requested_path, "may not be read by this server") from None
    if error.errno == errno.ELOOP:
        raise _forbidden_path_error(requested_path, "was replaced by a link just now") from None
    raise _invalid_file_error(requested_path, f"cannot be opened: {error.strerror}") from None


def _forbidden_path_error(requested_path: str, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.FORBIDDEN,
        f"{requested_path!r} {reason}.",
        hint="Only files inside the repository are shown; repoPath names another one.",
    )


def _invalid_file_error(requested_path: str, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{requested_path!r} {reason}.",
        hint="Give the path of a text file, from the root of the repository.",
    )

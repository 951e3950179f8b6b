"""Safe access to files of a repository.

A path is resolved through every link and must end at a regular file inside the repository; git's
own folder, which may hold passwords, is not shown. The file is then opened part by part without
following any link, so that the file that is read is the file that was checked.
"""

import errno
import stat
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.safe_paths import NotRegularFileError, open_file_below, resolve_path

GIT_FOLDER: Final = ".git"
MAX_SHOWN_PATH_CHARS: Final = 80
"""Characters of an unusable path that an error message shows."""


def resolve_file(root: Path, requested_path: str) -> Path:
    """Resolve a path to a file, relative to the root of the repository.

    Raises:
        ToolError: FORBIDDEN outside of it; NOT_FOUND, there is no such file; INVALID_REQUEST, it is
            not a regular file.
    """
    try:
        resolved = resolve_path(root, requested_path)
    except ValueError:
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
        return open_file_below(root, path)
    except NotRegularFileError:
        raise _invalid_file_error(str(path), "is no plain file") from None
    except OSError as error:
        _raise_open_error(error, str(path))


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

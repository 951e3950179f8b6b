"""Paths that others name: resolved and opened without being led out of a folder.

A path is checked as text before the disk is accessed, and resolved through every link before it is compared with a
folder. A file is opened part by part, each from the folder before it and never through a link, so that the file that is
read is the file that was checked. What is allowed, and what is said about the rest, is up to the caller.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

MAX_PATH_CHARACTERS: Final = 4096
"""Operating systems accept no more, and resolving a path takes time quadratic in its length: a path
of one megabyte would keep a server busy for minutes."""

_NO_FOLLOW_FLAG: Final = getattr(os, "O_NOFOLLOW", 0)
_BINARY_FLAG: Final = getattr(os, "O_BINARY", 0)
FOLDER_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW_FLAG

# Non-blocking: opening a pipe would wait for a writer.
READ_FLAGS: Final = os.O_RDONLY | _NO_FOLLOW_FLAG | getattr(os, "O_NONBLOCK", 0) | _BINARY_FLAG
CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW_FLAG | _BINARY_FLAG


class NotRegularFileError(OSError):
    """Raised when a path leads to a folder, a pipe or a device."""


def check_path_name(path: str) -> str:
    """Return the path unchanged if a file could have it.

    Raises:
        ValueError: No file could have this path.
    """
    if len(path) > MAX_PATH_CHARACTERS or "\0" in path:
        raise ValueError("the path is invalid")
    return path


def resolve_path(base: Path, path: str, *, expands_home: bool = False) -> Path:
    """Return a path, absolute or relative to the base, with every link resolved.

    Raises:
        ValueError: No file could have this path: a null byte, a loop of links, a long name.
    """
    try:
        name = Path(check_path_name(path))
        return (base / (name.expanduser() if expands_home else name)).resolve()
    except (OSError, ValueError, RuntimeError):
        raise ValueError("the path is invalid") from None


def is_within(path: str, root: str) -> bool:
    """Return whether a resolved path is a resolved folder, or below it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def can_open_below() -> bool:
    """Return whether this system can open a file from a folder.

    If not, a folder could be swapped between each check and its use.
    """
    return os.open in os.supports_dir_fd


def open_child_folder(folder: int, name: str) -> int | None:
    """Open a folder in an open folder.

    Raises:
        OSError: It does not exist, or is a link.
    """
    return os.open(name, FOLDER_FLAGS, dir_fd=folder)


@contextmanager
def open_folder_below(
    root: int, names: Sequence[str], open_child: Callable[[int, str], int | None] = open_child_folder
) -> Iterator[int | None]:
    """Open a folder below an open one step by step; yield None as soon as `open_child` returns it."""
    folder = os.dup(root)
    try:
        for name in names:
            child = open_child(folder, name)
            if child is None:
                yield None
                return
            os.close(folder)
            folder = child
        yield folder
    finally:
        os.close(folder)


def open_regular_file(name: str | Path, *, folder: int | None = None) -> BinaryIO:
    """Open a file for reading, from an open folder if there is one, and never through a link.

    Raises:
        NotRegularFileError: It is not a regular file.
        OSError: It cannot be opened, or is a link.
    """
    descriptor = os.open(name, READ_FLAGS, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularFileError
    return os.fdopen(descriptor, "rb")


def open_file_below(root: Path, path: Path) -> BinaryIO:
    """Open a file by its resolved path below a resolved folder, if no part was replaced by a link.

    Raises:
        NotRegularFileError: It is not a regular file.
        OSError: It cannot be opened, or a part of its path is a link.
    """
    if not can_open_below():
        return open_regular_file(root / path)
    root_folder = os.open(root, FOLDER_FLAGS)
    try:
        with open_folder_below(root_folder, path.parts[:-1]) as folder:
            return open_regular_file(path.name, folder=folder)
    finally:
        os.close(root_folder)


def get_identity(status: os.stat_result) -> tuple[int, int]:
    """Return what tells a file or folder from every other one that exists at the same time."""
    return status.st_dev, status.st_ino

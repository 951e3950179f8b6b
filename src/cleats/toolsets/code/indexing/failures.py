"""What goes wrong outside of a build, in words that say what to do about it."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
NO_FOLDER: Final = frozenset({errno.ENOTDIR, errno.ENOENT, errno.EEXIST})

_FULL = re.compile(rf"No space left on device|\(os error ({'|'.join(map(str, FULL))})\)")


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn what the disk says into an answer.

    Raises:
        ToolError: the disk is full, or the cache cannot be written.
    """
    try:
        yield
    except Exception as error:
        why = _why(error, folder)
        if why is None:
            raise
        raise ToolError(
            ErrorCode.INTERNAL,
            f"The index in {folder} cannot be written: {why}. "
            "An earlier index, if there is one, still answers.",
            hint="Free some space or allow it, or set CLEATS_CACHE_DIR to another place.",
            retryable=True,
        ) from error


def _why(error: Exception, folder: Path) -> str | None:
    """What the disk has to do with an error; None for nothing."""
    said = str(error)
    if isinstance(error, OSError):
        if error.errno in FULL:
            return "the disk is full"
        above = isinstance(error.filename, str | Path) and folder.is_relative_to(error.filename)
        if error.errno in FORBIDDEN and (above or _below(error.filename, folder)):
            return "that is not permitted"
        if error.errno in NO_FOLDER and above:
            return f"{error.filename}: {error.strerror}"
    # Engines have words of their own, and are not loaded where nothing was written.
    match type(error).__module__, type(error).__name__:
        case "apsw", "FullError":
            return "the disk is full"
        case "apsw", "IOError" | "CantOpenError" | "ReadOnlyError":
            return said
    return "the disk is full" if _FULL.search(said) else None


def _below(name: object, folder: Path) -> bool:
    return isinstance(name, str | Path) and Path(name).is_relative_to(folder)

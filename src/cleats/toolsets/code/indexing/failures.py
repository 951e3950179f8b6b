"""What goes wrong outside of a build, in words that say what to do about it."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn what the disk says into an answer.

    Raises:
        ToolError: the disk is full, or the cache cannot be written.
    """
    try:
        yield
    except Exception as error:
        if _is_full(error):
            raise _unwritable(folder, "the disk is full", "Free some space, or") from error
        if isinstance(error, PermissionError) and _below(error.filename, folder):
            raise _unwritable(folder, "it may not be written", "Allow it, or") from error
        raise


def _unwritable(folder: Path, why: str, remedy: str) -> ToolError:
    return ToolError(
        ErrorCode.INTERNAL,
        f"The index in {folder} cannot be written: {why}. The last index still answers.",
        hint=f"{remedy} set CLEATS_CACHE_DIR to another place.",
        retryable=True,
    )


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    # SQLite and Tantivy have words of their own; both keep the system's beside them.
    return type(error).__name__ == "FullError" or "No space left on device" in str(error)


def _below(name: object, folder: Path) -> bool:
    return isinstance(name, str | Path) and Path(name).is_relative_to(folder)

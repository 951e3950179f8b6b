"""A disk that does not take what it should, told so that somebody can put it right.

It is nobody's mistake and passes, so the run waits and goes on at its last record.
"""

import errno
from typing import Final

from cleats.contract.errors import ErrorCode, ToolError

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_CLOSED: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR})
_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO})


def trouble(error: OSError) -> ToolError | None:
    """What an operator should do about it; None for what is a fault of ours."""
    if error.errno in _FULL:
        return no_room(type(error).__name__)
    if error.errno in _CLOSED:
        return failing(
            "The folder of the runs cannot be written.",
            "Let the server write to its data folder, then try again.",
            type(error).__name__,
        )
    if error.errno in _SHORT:
        return failing(
            "The machine is short of memory or open files, or its disk fails.",
            "Look after the machine, then try again; the run goes on at its last record.",
            type(error).__name__,
        )
    return None


def no_room(cause: str) -> ToolError:
    """The disk is full."""
    return failing(
        "There is no room left on the disk that the runs are kept on.",
        "Make room, then try again; the run goes on at its last record. "
        "`cleats launch clean` removes the checkouts of runs that have ended.",
        cause,
    )


def failing(message: str, hint: str, cause: str, *, retryable: bool = True) -> ToolError:
    """A failure of the machine, not of the run."""
    return ToolError(
        ErrorCode.INTERNAL,
        message,
        hint=hint,
        retryable=retryable,
        details={"cause_class": cause},
    )

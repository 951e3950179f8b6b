"""What a caller may name as a path at all, before the disk is asked."""

from typing import Final

LONGEST: Final = 4096
"""Characters. Systems take no more, and to find out where a path leads costs the square of its
length: a megabyte of it would keep a server busy for minutes."""


def usable(path: str) -> str:
    """The path, if a file could have it.

    Raises:
        ValueError: none could.
    """
    if len(path) > LONGEST or "\0" in path:
        raise ValueError("it is no usable path")
    return path

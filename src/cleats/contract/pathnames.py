"""What a caller may name as a path at all, before the disk is asked."""

from typing import Final

LONGEST: Final = 4096
"""Characters. Systems take no more, and to find out where a path leads costs the square of its
length: a megabyte of it would keep a server busy for minutes."""


def is_usable(path: str) -> bool:
    """Whether a file could have this path."""
    return len(path) <= LONGEST and "\0" not in path

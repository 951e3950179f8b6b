"""Checks of the paths that a caller may name, made before the disk is accessed."""

from typing import Final

MAX_PATH_CHARACTERS: Final = 4096
"""Operating systems accept no more, and resolving a path takes time quadratic in its length: a path
of one megabyte would keep a server busy for minutes."""


def check_path_name(path: str) -> str:
    """Return the path unchanged if a file could have it.

    Raises:
        ValueError: No file could have this path.
    """
    if len(path) > MAX_PATH_CHARACTERS or "\0" in path:
        raise ValueError("it is no usable path")
    return path

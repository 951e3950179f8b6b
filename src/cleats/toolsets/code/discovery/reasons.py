"""Why a file or a folder is not indexed: every reason there is, with the sentence it is told in."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

REASONS: Final[Mapping[str, str]] = {
    "binary": "It is not text.",
    "generated": "A program wrote it and will write it again.",
    "ignored": "An ignore file excludes it. These are counted, not listed.",
    "lockfile": "It pins versions for a package manager and says nothing a person wrote.",
    "long_line": "It has a line that nobody can read.",
    "minified": "It was squeezed by a program; its source is elsewhere.",
    "secret": "By its name it holds passwords or keys, which no answer should repeat.",
    "special": "It is a pipe, a socket or a device.",
    "symlink": "It is a link. What it leads to is indexed if it is inside.",
    "too_large": "It is larger than the limit for one file.",
    "too_many_files": "There are more files than the limit allows.",
    "too_many_lines": "It has more lines than the limit for one file.",
    "tool_output": "A tool made this folder and can make it again.",
    "unnameable": "Its name cannot be told from another's once it is written as text.",
    "unreadable": "The system does not let it be read.",
    "version_control": "It is the store of a version control system.",
}


class Limits(Struct, frozen=True):
    """What is too much. A limit of 0 is none."""

    max_file_bytes: int = 5 * 1024 * 1024
    max_lines: int = 200_000
    """Far above what people write; data and logs of that length drown everything else."""
    max_line_bytes: int = 512 * 1024
    max_files: int = 0

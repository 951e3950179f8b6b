"""The columns of one shard: for every chunk what filters compare, and who has which value.

Chunks have positions, from 0, in the order of their files' paths and within a file in the order of
their start. Some facts belong to the file and hold for all its chunks. What can change without the
file (git, risk, lint) is in a second set of columns, made anew with every generation.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.search import arrays
from cleats.toolsets.code.search.filling import CONTENT, LATE
from cleats.toolsets.code.search.vocabulary import Column, Ids, Mask, Vocabulary

OF_FILES: Final = frozenset({"path", "ext", "import", "author"})
"""Columns whose owners are files."""


class Columns:
    """The columns of a shard, for reading. Safe for several threads."""

    def __init__(self, folder: Path) -> None:
        content, late = arrays.load(folder / CONTENT), arrays.load(folder / LATE)
        self._numbers = content | late
        self.ends: Ids = content["ends"]
        self.modes: NDArray[np.uint8] = content["modes"]
        self.files = len(self.ends)
        self.chunks = len(self.modes)
        self.file_of: Ids = np.repeat(
            np.arange(self.files, dtype=np.int32), np.diff(self.ends, prepend=0)
        )
        grouped = arrays.group(content) | arrays.group(late)
        self._columns = {
            name: Column(parts, self.files if name in OF_FILES else self.chunks)
            for name, parts in grouped.items()
        }
        self.paths = self._columns["path"].vocabulary if self.files else Vocabulary({})

    def column(self, name: str) -> Column | None:
        """A column; None when no chunk has anything in it."""
        return self._columns.get(name)

    def number(self, name: str) -> NDArray[Any]:
        """A number for every chunk."""
        numbers = self._numbers[name]
        of_files = name in {"churn", "modified"}
        return numbers[self.file_of] if of_files else numbers

    def spread(self, name: str, mask: Mask) -> Mask:
        """A mask over the owners of a column as one over chunks."""
        return mask[self.file_of] if name in OF_FILES else mask

    def ordinal(self, position: int) -> tuple[int, int]:
        """The file of a chunk, and its number in that file."""
        file = int(self.file_of[position])
        return file, position - (int(self.ends[file - 1]) if file else 0)

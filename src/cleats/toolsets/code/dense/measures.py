"""How vectors are made, whoever makes them: `table` with numpy, `lanes` without."""

import json
from collections.abc import Mapping
from math import log
from pathlib import Path
from typing import Any, Final

from cleats.toolsets.code.dense.words import rows_of

DATA: Final = Path(__file__).parent / "data"
ROWS: Final = "vectors.npy"

ENCODER: Final = 2
"""Raised when the same table would give other vectors; part of the fingerprint."""

LENGTH: Final = 320
"""Of a vector in int8. The largest component of 160 seldom reaches 0.4 of the length."""

MOST_ROWS: Final = 32_768
"""Added up for one text. More would leave the whole numbers of float32: 32,768 * 4 * 127."""

SHARES: Final = (10, 5, 3)
"""What a text, its name and its path count in its vector; measured, see docs/search-quality.md."""

STEPS: Final = 4096
"""Of a direction that is to be added to another: far finer than the 8 bits it ends in."""

REPEATS: Final = (0, *(round(4 * (1 + log(count))) for count in range(1, 65)))
"""What a word counts that stands once, twice, ... in a text; beyond 64 times nothing is added."""

MEMORY: Final = 200_000
"""Words whose rows are remembered; past it the memory starts anew."""


class Found(dict[str, tuple[int, ...]]):
    """The rows of each word seen so far, worked out once."""

    def __init__(self, known: Mapping[str, int]) -> None:
        super().__init__()
        self._known = known

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= MEMORY:
            self.clear()
        rows = self[word] = rows_of(word, self._known)
        return rows


def words(folder: Path) -> dict[str, int]:
    """The words of a table, and the row of each."""
    listed = (folder / "words.txt").read_text("utf-8").split()
    return dict(zip(listed, range(len(listed)), strict=True))


def fingerprint(folder: Path) -> str:
    """The name of a table and of how vectors are made of it."""
    about: dict[str, Any] = json.loads((folder / "table.json").read_text("utf-8"))
    return f"{ENCODER}-{about['fingerprint']}"

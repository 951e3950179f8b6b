"""Vectors without numpy, for a few files: to load it takes longer than to add their rows up here.

A row is one large whole number with a lane for each number in it, so one multiplication weights
all of them and one addition adds them. Every step is of whole numbers, or of the same floats as in
`table`, so the vectors are the same to the last bit.
"""

import struct
from collections import Counter
from collections.abc import Sequence
from math import sqrt
from mmap import ACCESS_READ, mmap
from operator import mul
from pathlib import Path
from typing import Final, Self

from cleats.toolsets.code.dense.measures import (
    DATA,
    LENGTH,
    MOST_ROWS,
    REPEATS,
    ROWS,
    SHARES,
    STEPS,
    Found,
    words,
)

LANE: Final = 4
"""Bytes of a lane. The largest sum in one is 32,768 * 4 * 255, far from the next lane."""

ZERO: Final = 128
"""What stands for 0 in a row, so that no lane is ever below it and borrows from the next."""

NEXT: Final = b"\xff" * 4
"""Between two texts; no number of a row has two bytes of it."""

_RAISED: Final = bytes((byte + ZERO) % 256 for byte in range(256))


class Lanes:
    """The word table as lanes; a row is read when it is first asked for."""

    def __init__(self, path: Path, known: dict[str, int]) -> None:
        self._found = Found(known)
        with path.open("rb") as file:
            self._data = mmap(file.fileno(), 0, access=ACCESS_READ)
        # A mark and a version, then in two bytes how long the rest of the head is.
        self._begin = 10 + int.from_bytes(self._data[8:10], "little")
        self._dims = (len(self._data) - self._begin) // len(known)
        self._rows: dict[int, int] = {}

    @classmethod
    def load(cls, folder: Path = DATA) -> Self:
        """The table that comes with the package."""
        return cls(folder / ROWS, words(folder))

    def rows_of(self, word: str) -> tuple[int, ...]:
        """The rows that stand for a word in lower case."""
        return self._found[word]

    def encode_rows(self, texts: bytes, names: bytes, path: bytes) -> bytes:
        """What `WordTable.encode_rows` gives, as bytes."""
        where = self._steps(path)
        lines = zip(texts.split(NEXT), names.split(NEXT), strict=True)
        return b"".join(
            self._vector(self._steps(text), self._steps(name), where) for text, name in lines
        )

    def _vector(self, *parts: Sequence[int]) -> bytes:
        joined = [sum(map(mul, SHARES, numbers)) for numbers in zip(*parts, strict=True)]
        length = _length(joined)
        made = [max(-127, min(127, round(number / length * LENGTH))) for number in joined]
        return struct.pack(f"{self._dims}b", *made)

    def _steps(self, rows: bytes) -> list[int]:
        """The direction of a text, in whole numbers."""
        sums = self._sums(struct.unpack(f"={len(rows) // 4}i", rows)[:MOST_ROWS])
        length = _length(sums)
        return [round(number / length * STEPS) for number in sums]

    def _sums(self, rows: Sequence[int]) -> list[int]:
        total = weights = 0
        for row, count in Counter(rows).items():
            weight = REPEATS[min(count, len(REPEATS) - 1)]
            total += weight * (self._rows.get(row) or self._read(row))
            weights += weight
        lanes = struct.unpack(f"<{self._dims}I", total.to_bytes(LANE * self._dims, "little"))
        return [lane - ZERO * weights for lane in lanes]

    def _read(self, row: int) -> int:
        start = self._begin + row * self._dims
        lanes = bytearray(LANE * self._dims)
        lanes[::LANE] = self._data[start : start + self._dims].translate(_RAISED)
        made = self._rows[row] = int.from_bytes(lanes, "little")
        return made


def _length(numbers: Sequence[int]) -> float:
    return max(sqrt(sum(map(mul, numbers, numbers))), 1.0)

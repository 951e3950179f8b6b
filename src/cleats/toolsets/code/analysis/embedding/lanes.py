"""Vectors without numpy, for a few files: loading numpy takes longer than adding their rows here.

A row is one large integer with a lane for each component, so one multiplication weights all
components and one addition adds them. Every step uses integers, or the same floats as in `table`,
so the vectors are identical to the last bit.
"""

import struct
from collections import Counter
from collections.abc import Sequence
from math import sqrt
from mmap import ACCESS_READ, mmap
from operator import mul
from pathlib import Path
from typing import Final, Self

from cleats.toolsets.code.analysis.embedding.words import (
    DATA_FOLDER,
    DIRECTION_STEPS,
    MAX_TEXT_ROWS,
    PART_WEIGHTS,
    REPEAT_WEIGHTS,
    ROWS_FILE_NAME,
    VECTOR_LENGTH,
    WordRowCache,
    load_row_by_word,
)

LANE_BYTES: Final = 4
"""The bytes of a lane. The largest sum in one is 32,768 * 4 * 255, far from the next lane."""

ZERO_OFFSET: Final = 128
"""The offset added to every component, so that no lane is negative and borrows from the next."""

TEXT_SEPARATOR: Final = b"\xff" * 4
"""The separator of two texts; no row number contains two of its bytes."""

_OFFSET_BYTES_TABLE: Final = bytes((byte + ZERO_OFFSET) % 256 for byte in range(256))


class LaneWordTable:
    """The word table as lanes; a row is read when it is first used."""

    def __init__(self, path: Path, row_by_word: dict[str, int]) -> None:
        self._row_cache = WordRowCache(row_by_word)
        with path.open("rb") as file:
            self._data = mmap(file.fileno(), 0, access=ACCESS_READ)
        # A magic string and a version, then two bytes with the length of the rest of the header.
        self._data_start = 10 + int.from_bytes(self._data[8:10], "little")
        self._dims = (len(self._data) - self._data_start) // len(row_by_word)
        self._lane_rows: dict[int, int] = {}

    @classmethod
    def load(cls, folder: Path = DATA_FOLDER) -> Self:
        """Load the table of the package."""
        return cls(folder / ROWS_FILE_NAME, load_row_by_word(folder))

    def find_rows(self, word: str) -> tuple[int, ...]:
        """Return the rows of a lower-case word."""
        return self._row_cache[word]

    def encode_rows(self, texts: bytes, names: bytes, path: bytes) -> bytes:
        """Return the bytes that `WordTable.encode_rows` returns."""
        path_direction = self._quantize_direction(path)
        lines = zip(texts.split(TEXT_SEPARATOR), names.split(TEXT_SEPARATOR), strict=True)
        return b"".join(
            self._combine_directions(self._quantize_direction(text), self._quantize_direction(name), path_direction)
            for text, name in lines
        )

    def _combine_directions(self, *parts: Sequence[int]) -> bytes:
        weighted_sums = [sum(map(mul, PART_WEIGHTS, numbers)) for numbers in zip(*parts, strict=True)]
        length = _vector_length(weighted_sums)
        components = [max(-127, min(127, round(number / length * VECTOR_LENGTH))) for number in weighted_sums]
        return struct.pack(f"{self._dims}b", *components)

    def _quantize_direction(self, rows: bytes) -> list[int]:
        """Return the direction of a text as integers."""
        sums = self._sum_rows(struct.unpack(f"={len(rows) // 4}i", rows)[:MAX_TEXT_ROWS])
        length = _vector_length(sums)
        return [round(number / length * DIRECTION_STEPS) for number in sums]

    def _sum_rows(self, rows: Sequence[int]) -> list[int]:
        total = weights = 0
        for row, count in Counter(rows).items():
            weight = REPEAT_WEIGHTS[min(count, len(REPEAT_WEIGHTS) - 1)]
            total += weight * (self._lane_rows.get(row) or self._read_row(row))
            weights += weight
        lanes = struct.unpack(f"<{self._dims}I", total.to_bytes(LANE_BYTES * self._dims, "little"))
        return [lane - ZERO_OFFSET * weights for lane in lanes]

    def _read_row(self, row: int) -> int:
        start = self._data_start + row * self._dims
        lanes = bytearray(LANE_BYTES * self._dims)
        lanes[::LANE_BYTES] = self._data[start : start + self._dims].translate(_OFFSET_BYTES_TABLE)
        packed_row = self._lane_rows[row] = int.from_bytes(lanes, "little")
        return packed_row


def _vector_length(numbers: Sequence[int]) -> float:
    return max(sqrt(sum(map(mul, numbers, numbers))), 1.0)

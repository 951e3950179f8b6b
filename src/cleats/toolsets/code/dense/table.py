"""The word table: what words mean, as rows of numbers, and texts as sums of rows.

A row already carries its word's weight: a rare word's is long, a common one's short, so a text is
nothing but the sum of the rows of its words. Weights come with the table and not from the corpus,
so a vector never changes because another file did.

Laws:

- The order of the words does not matter, nor does the machine: every sum is of whole numbers small
  enough to be exact in float32, in whatever order a library adds them.
- A vector is the direction alone. All have the length `LENGTH`, give or take the rounding to int8,
  so a dot product ranks like a cosine. A text without a known word is all zeros.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.dense.measures import (
    DATA,
    LENGTH,
    MOST_ROWS,
    REPEATS,
    ROWS,
    SHARES,
    STEPS,
    Found,
    fingerprint,
    words,
)

BLOCK: Final = 64
"""Texts summed in one product; larger ones share few more words and cost memory."""

Vectors = NDArray[np.int8]

_REPEATS: Final = np.array(REPEATS, dtype=np.float32)


@dataclass(slots=True)
class WordTable:
    """Rows of numbers by word; made by `bench/code/word_table.py`."""

    rows: Vectors
    known: Mapping[str, int]
    fingerprint: str
    """Changes whenever stored vectors can no longer be compared with new ones."""
    _found: Found = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._found = Found(self.known)

    @classmethod
    def load(cls, folder: Path = DATA) -> Self:
        """The table that comes with the package. Its rows stay on disk until they are used."""
        rows = np.load(folder / ROWS, mmap_mode="r").view(np.ndarray)
        return cls(rows=rows, known=words(folder), fingerprint=fingerprint(folder))

    @property
    def dims(self) -> int:
        return int(self.rows.shape[1])

    def encode(
        self,
        texts: Sequence[Iterable[str]],
        names: Sequence[Iterable[str]] = (),
        paths: Sequence[Iterable[str]] = (),
    ) -> Vectors:
        """One vector per text, each given as its lower-case words, repeated as they repeat.

        What a text is called and where it stands count by themselves, however long the text is;
        give them for every text or for none.
        """
        vectors = np.empty((len(texts), self.dims), dtype=np.int8)
        for start in range(0, len(texts), BLOCK):
            block = slice(start, start + BLOCK)
            parts = zip(SHARES, (texts[block], names[block], paths[block]), strict=True)
            steps = [share * _steps(self._sums(words)) for share, words in parts if words]
            joined: NDArray[np.float64] = np.sum(steps, axis=0)
            vectors[block] = np.rint(_directions(joined) * LENGTH).clip(-127, 127)
        return vectors

    def encode_rows(self, texts: bytes, names: bytes, path: bytes) -> bytes:
        """What `encode` gives for texts of one file, in fewer steps, and as bytes.

        All are given as rows, in int32; a number below zero stands between two texts, and between
        two names. The path is of all.
        """
        lined = [_lined(each) for each in (texts, names, path)]
        count = lined[0].lines
        flat = np.concatenate([each.rows for each in lined])
        lines = np.concatenate([lined[0].line, lined[1].line + count, lined[2].line + 2 * count])
        sums = self._added(lines, flat, 2 * count + 1)
        steps = _steps(sums)
        joined = SHARES[0] * steps[:count] + SHARES[1] * steps[count : 2 * count]
        joined += SHARES[2] * steps[2 * count]
        made: Vectors = np.rint(_directions(joined) * LENGTH).clip(-127, 127).astype(np.int8)
        return made.tobytes()

    def rows_of(self, word: str) -> tuple[int, ...]:
        """The rows that stand for a word in lower case."""
        return self._found[word]

    def encode_query(self, words: Iterable[str]) -> NDArray[np.float32]:
        """The direction of a query, of length 1 and not rounded: a query is never stored."""
        direction: NDArray[np.float32] = _directions(self._sums([words]))[0].astype(np.float32)
        return direction

    def _sums(self, texts: Sequence[Iterable[str]]) -> NDArray[np.float32]:
        found = [self._rows_in(words) for words in texts]
        sizes = [len(rows) for rows in found]
        flat = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=sum(sizes))
        lines = np.repeat(np.arange(len(texts)), sizes)
        return self._added(lines, flat, len(texts))

    def _added(
        self, lines: NDArray[np.int64], rows: NDArray[np.int64], count: int
    ) -> NDArray[np.float32]:
        """The sum of the rows in each of so many lines, by how often each stands there."""
        cells, counts = np.unique(lines * len(self.known) + rows, return_counts=True)
        lines, rows = np.divmod(cells, len(self.known))
        weights = _REPEATS[np.minimum(counts, len(_REPEATS) - 1)]
        sums = np.zeros((count, self.dims), dtype=np.float32)
        starts = np.flatnonzero(np.diff(lines, prepend=-1))
        ends = np.append(starts[1:], len(cells))
        for first in range(0, len(starts), BLOCK):
            own = slice(first, first + BLOCK)
            part = slice(starts[first], ends[own][-1])
            used, column = np.unique(rows[part], return_inverse=True)
            line = np.repeat(np.arange(len(starts[own])), ends[own] - starts[own])
            weighted = np.zeros((len(starts[own]), len(used)), dtype=np.float32)
            weighted[line, column] = weights[part]
            sums[lines[starts[own]]] = weighted @ self.rows[used].astype(np.float32)
        return sums

    def _rows_in(self, words: Iterable[str]) -> list[int]:
        rows = chain.from_iterable(map(self._found.__getitem__, words))
        return list(islice(rows, MOST_ROWS))


class _Lined(NamedTuple):
    """Rows, and the line that each is in."""

    rows: NDArray[np.int64]
    line: NDArray[np.int64]
    lines: int


def _lined(given: bytes) -> _Lined:
    numbers = np.frombuffer(given, dtype=np.int32).astype(np.int64)
    is_row = numbers >= 0
    line: NDArray[np.int64] = np.cumsum(~is_row, dtype=np.int64)
    lines = int(line[-1]) + 1 if len(line) else 1
    if len(numbers) <= MOST_ROWS:
        return _Lined(numbers[is_row], line[is_row], lines)
    begin = np.searchsorted(line, np.arange(lines)) + np.arange(lines).clip(max=1)
    is_row &= np.arange(len(numbers)) - begin[line] < MOST_ROWS
    return _Lined(numbers[is_row], line[is_row], lines)


def _steps(sums: NDArray[np.float32]) -> NDArray[np.float64]:
    """Directions in whole numbers, so that what is made of several is exact again."""
    return np.rint(_directions(sums) * STEPS)


def _directions(sums: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Each line at length 1. The squares are added as whole numbers, so they are exact too."""
    whole = sums.astype(np.int64)
    lengths = np.sqrt((whole * whole).sum(axis=1, keepdims=True).astype(np.float64))
    directions: NDArray[np.float64] = whole / np.maximum(lengths, 1.0)
    return directions

"""The word table: the meaning of words as rows of numbers, and texts as sums of rows.

A row includes the weight of its word: the row of a rare word is long, that of a common word short,
so a text is simply the sum of the rows of its words. Weights come with the table and not from the
corpus, so a vector never changes because another file did.

Invariants:

- The order of the words does not matter, nor does the machine: every sum consists of integers
  that are small enough to be exact in float32, in whatever order a library adds them.
- A vector is a direction only. All have the length `VECTOR_LENGTH`, except for the rounding to
  int8, so a dot product ranks like a cosine. A text without a known word is all zeros.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, islice
from math import log
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

SUFFIX_RULES = (
    *(("ies", "y"), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"), ("es", ""), ("s", ""), ("er", ""), ("er", "e")),
    *(("ers", ""), ("ly", ""), ("able", ""), ("able", "e"), ("ness", ""), ("ment", "")),
)
"""English suffixes and their replacements; the first that fits wins."""

MIN_STEM_CHARS = 3
MIN_PREFIX_CHARS = 5
MAX_WORD_CHARS = 40
"""Longer runs of letters are encodings and digests, not words."""

MAX_ROW_BY_PIECE_CHARS = {2: 1_500, 3: 6_000}
"""The rows below which short pieces of words must lie, by length: `id`, `db` and `url`, but not `zqx`."""

PIECE_COST = 3.0
"""The cost of each piece in addition to its rank, so that few long pieces beat many short ones."""

_KNOWN_SUFFIXES = tuple({ending for ending, _ in SUFFIX_RULES})

LETTERS_PATTERN = re.compile(r"[a-z]+")


def find_rows(word: str, row_by_word: Mapping[str, int]) -> tuple[int, ...]:
    """Return the rows of a word; empty if nothing in the table resembles it."""
    if (row := row_by_word.get(word)) is not None:
        return (row,)
    if len(word) > MAX_WORD_CHARS:
        return ()
    if LETTERS_PATTERN.fullmatch(word) is None:
        runs = [run for run in LETTERS_PATTERN.findall(word) if len(run) > 1]
        return tuple(row for run in runs for row in find_rows(run, row_by_word))
    for stem in _generate_stems(word):
        if (row := row_by_word.get(stem)) is not None:
            return (row,)
    return _split_into_words(word, row_by_word) or _find_prefix(word, row_by_word)


def _generate_stems(word: str) -> Iterator[str]:
    if not word.endswith(_KNOWN_SUFFIXES):
        return
    for ending, replacement in SUFFIX_RULES:
        if not word.endswith(ending):
            continue
        stem = word.removesuffix(ending) + replacement
        if len(stem) >= MIN_STEM_CHARS:
            yield stem
            if not replacement and stem[-1] == stem[-2]:
                yield stem[:-1]


def _split_into_words(word: str, row_by_word: Mapping[str, int]) -> tuple[int, ...]:
    best: list[tuple[float, tuple[int, ...]] | None] = [(0.0, ())]
    for end in range(1, len(word) + 1):
        candidates = []
        for start in range(end - 1):
            prefix = best[start]
            if prefix is None or (row := row_by_word.get(word[start:end])) is None:
                continue
            if row < MAX_ROW_BY_PIECE_CHARS.get(end - start, len(row_by_word)):
                candidates.append((prefix[0] + PIECE_COST + log(row + 2), (*prefix[1], row)))
        best.append(min(candidates) if candidates else None)
    return best[-1][1] if best[-1] else ()


def _find_prefix(word: str, row_by_word: Mapping[str, int]) -> tuple[int, ...]:
    for end in range(len(word) - 1, max(MIN_PREFIX_CHARS, len(word) // 2 + 1) - 1, -1):
        if (row := row_by_word.get(word[:end])) is not None:
            return (row,)
    return ()


DATA_FOLDER: Final = Path(__file__).parent / "data"
ROWS_FILE_NAME: Final = "vectors.npy"

ENCODER_VERSION: Final = 2
"""The version of the encoder, part of the fingerprint; raised when the same table would give other vectors."""

VECTOR_LENGTH: Final = 320
"""The length of an int8 vector. The largest of its 160 components seldom exceeds 0.4 of the length."""

MAX_TEXT_ROWS: Final = 32_768
"""The most rows added for one text. More would exceed the exact integers of float32: 32,768 * 4 * 127."""

PART_WEIGHTS: Final = (10, 5, 3)
"""The weights of a text, its name and its path in its vector; measured, see docs/search-quality.md."""

DIRECTION_STEPS: Final = 4096
"""The resolution of a direction that is added to another: far finer than the final 8 bits."""

REPEAT_WEIGHTS: Final = np.array([0, *(round(4 * (1 + log(count))) for count in range(1, 65))], dtype=np.float32)
"""The weight of a word by the number of times it occurs in a text; it stops growing at 64."""

MAX_CACHED_WORDS: Final = 200_000
"""The most words whose rows are cached."""


BLOCK_TEXTS: Final = 64
"""The number of texts summed in one product; larger blocks share few more words and cost memory."""

_BREAK: Final = np.array([-1], dtype=np.int32).tobytes()

Vectors = NDArray[np.int8]


@dataclass(slots=True)
class WordTable:
    """Rows of numbers by word, created by `bench/code/word_table.py`."""

    rows: Vectors
    row_by_word: Mapping[str, int]
    fingerprint: str
    """An id that changes whenever stored vectors can no longer be compared with new ones."""
    find_rows: Callable[[str], tuple[int, ...]] = field(init=False, repr=False)
    """Returns the rows of a lower-case word."""

    def __post_init__(self) -> None:
        self.find_rows = lru_cache(MAX_CACHED_WORDS)(partial(find_rows, row_by_word=self.row_by_word))

    @classmethod
    def load(cls, folder: Path = DATA_FOLDER) -> Self:
        """Load the table of the package; its rows stay on disk until they are used."""
        rows = np.load(folder / ROWS_FILE_NAME, mmap_mode="r").view(np.ndarray)
        row_by_word = {word: row for row, word in enumerate((folder / "words.txt").read_text("utf-8").split())}
        table_id = json.loads((folder / "table.json").read_text("utf-8"))["fingerprint"]
        return cls(rows, row_by_word, f"{ENCODER_VERSION}-{table_id}")

    @property
    def dims(self) -> int:
        return int(self.rows.shape[1])

    def encode_rows(self, texts: bytes, names: bytes, path: bytes) -> bytes:
        """Return the vectors of the texts of one file, one after the other.

        All arguments are row numbers in int32; a negative number separates two texts, and two
        names. The path applies to all texts. Names and paths have fixed weights, however long a text is.
        """
        rows, lines, line_count = _number_rows(_BREAK.join((texts, names, path)))
        count = line_count // 2
        sums = self._sum_lines(lines, rows, line_count)
        # Directions are rounded to integers, so that sums of several are exact again.
        steps = np.rint(_normalize_lines(sums) * DIRECTION_STEPS)
        weighted_sums = PART_WEIGHTS[0] * steps[:count] + PART_WEIGHTS[1] * steps[count : 2 * count]
        weighted_sums += PART_WEIGHTS[2] * steps[2 * count]
        vectors: Vectors = np.rint(_normalize_lines(weighted_sums) * VECTOR_LENGTH).clip(-127, 127).astype(np.int8)
        return vectors.tobytes()

    def encode_query(self, words: Iterable[str]) -> NDArray[np.float32]:
        """Return the unrounded direction of a query, with length 1; a query is never stored."""
        word_rows = chain.from_iterable(map(self.find_rows, words))
        rows = np.fromiter(islice(word_rows, MAX_TEXT_ROWS), dtype=np.int64)
        sums = self._sum_lines(np.zeros(len(rows), dtype=np.int64), rows, 1)
        direction: NDArray[np.float32] = _normalize_lines(sums)[0].astype(np.float32)
        return direction

    def _sum_lines(self, lines: NDArray[np.int64], rows: NDArray[np.int64], count: int) -> NDArray[np.float32]:
        """Sum the rows of each line, weighted by how often each row occurs there. Lines are in ascending order."""
        row_bits = len(self.rows).bit_length()
        # Sorted by hand: `np.unique` costs more than the sums of a small file.
        cells = np.sort((lines << row_bits) | rows)
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        weights = REPEAT_WEIGHTS[np.diff(starts, append=len(cells)).clip(max=len(REPEAT_WEIGHTS) - 1)]
        cells = cells[starts]
        lines, rows = cells >> row_bits, cells & ((1 << row_bits) - 1)
        sums = np.zeros((count, self.dims), dtype=np.float32)
        first_lines = range(0, count, BLOCK_TEXTS)
        bounds = [*np.searchsorted(lines, first_lines).tolist(), len(cells)]
        column = np.empty(len(self.rows), np.int64)
        for first, block in zip(first_lines, map(slice, bounds, bounds[1:]), strict=True):
            is_used = np.zeros(len(self.rows), np.bool_)
            is_used[rows[block]] = True
            used_rows = np.flatnonzero(is_used)
            column[used_rows] = np.arange(len(used_rows))
            weighted = np.zeros((min(BLOCK_TEXTS, count - first), len(used_rows)), dtype=np.float32)
            weighted[lines[block] - first, column[rows[block]]] = weights[block]
            sums[first : first + BLOCK_TEXTS] = weighted @ self.rows[used_rows].astype(np.float32)
        return sums


def _number_rows(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return the rows of some texts, the number of the text of each row, and the number of texts."""
    numbers = np.frombuffer(data, dtype=np.int32)
    is_row = numbers >= 0
    line: NDArray[np.int64] = np.cumsum(~is_row, dtype=np.int64)
    lines = int(line[-1]) + 1 if len(line) else 1
    if len(numbers) > MAX_TEXT_ROWS:
        line_starts = np.searchsorted(line, np.arange(lines)) + np.arange(lines).clip(max=1)
        is_row &= np.arange(len(numbers)) - line_starts[line] < MAX_TEXT_ROWS
    return numbers[is_row].astype(np.int64), line[is_row], lines


def _normalize_lines(sums: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Scale each line to length 1; the squares are added as integers, so they are exact too."""
    integers = sums.astype(np.int64)
    lengths = np.sqrt((integers * integers).sum(axis=1, keepdims=True).astype(np.float64))
    directions: NDArray[np.float64] = integers / np.maximum(lengths, 1.0)
    return directions

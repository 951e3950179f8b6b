"""Parameters of the vectors, shared by `table`, which uses numpy, and `lanes`, which does not."""

import json
import re
from collections.abc import Iterator, Mapping
from math import log
from pathlib import Path
from typing import Any, Final

SUFFIX_RULES = (
    ("ies", "y"),
    ("ing", ""),
    ("ing", "e"),
    ("ed", ""),
    ("ed", "e"),
    ("es", ""),
    ("s", ""),
    ("er", ""),
    ("er", "e"),
    ("ers", ""),
    ("ly", ""),
    ("able", ""),
    ("able", "e"),
    ("ness", ""),
    ("ment", ""),
)
"""English suffixes and their replacements; the first that fits wins."""

MIN_STEM_CHARS = 3
MIN_PREFIX_CHARS = 5
MAX_WORD_CHARS = 40
"""Longer runs of letters are encodings and digests, not words."""

MAX_ROW_BY_PIECE_CHARS = {2: 1_500, 3: 6_000}
"""The rows below which short pieces of words must lie, by length: `id`, `db` and `url`, but not
`zqx`."""

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
        return tuple(
            row for run in LETTERS_PATTERN.findall(word) if len(run) > 1 for row in find_rows(run, row_by_word)
        )
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
    """Return the rows of the cheapest split of a word into known words."""
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
    """Return the row of the longest known prefix that is more than half of the word."""
    for end in range(len(word) - 1, max(MIN_PREFIX_CHARS, len(word) // 2 + 1) - 1, -1):
        if (row := row_by_word.get(word[:end])) is not None:
            return (row,)
    return ()


DATA_FOLDER: Final = Path(__file__).parent / "data"
ROWS_FILE_NAME: Final = "vectors.npy"

ENCODER_VERSION: Final = 2
"""The version of the encoder, part of the fingerprint; raised when the same table would give other
vectors."""

VECTOR_LENGTH: Final = 320
"""The length of an int8 vector. The largest of its 160 components seldom exceeds 0.4 of the
length."""

MAX_TEXT_ROWS: Final = 32_768
"""The most rows added for one text. More would exceed the exact integers of float32: 32,768 * 4 *
127."""

PART_WEIGHTS: Final = (10, 5, 3)
"""The weights of a text, its name and its path in its vector; measured, see
docs/search-quality.md."""

DIRECTION_STEPS: Final = 4096
"""The resolution of a direction that is added to another: far finer than the final 8 bits."""

REPEAT_WEIGHTS: Final = (0, *(round(4 * (1 + log(count))) for count in range(1, 65)))
"""The weight of a word by the number of times it occurs in a text; it stops growing at 64."""

MAX_CACHED_WORDS: Final = 200_000
"""The most words whose rows are cached; the cache is cleared when it is full."""


class WordRowCache(dict[str, tuple[int, ...]]):
    """A cache of the rows of each word."""

    def __init__(self, row_by_word: Mapping[str, int]) -> None:
        super().__init__()
        self._row_by_word = row_by_word

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= MAX_CACHED_WORDS:
            self.clear()
        rows = self[word] = find_rows(word, self._row_by_word)
        return rows


def load_row_by_word(folder: Path) -> dict[str, int]:
    """Return the row of each word of a table."""
    word_list = (folder / "words.txt").read_text("utf-8").split()
    return dict(zip(word_list, range(len(word_list)), strict=True))


def read_fingerprint(folder: Path) -> str:
    """Return the id of a table together with the version of the encoder."""
    table_facts: dict[str, Any] = json.loads((folder / "table.json").read_text("utf-8"))
    return f"{ENCODER_VERSION}-{table_facts['fingerprint']}"

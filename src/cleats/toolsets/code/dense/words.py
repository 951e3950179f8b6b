"""From a word to rows of the table: as it is, without its ending, or taken apart.

The table's words stand in the order of how common they are, so a row's number is also the price of
using it: that is all that taking `getremoteerror` apart into `get`, `remote`, `error` needs.
"""

import re
from collections.abc import Iterator, Mapping
from math import log

ENDINGS = (
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
"""What English puts at the end of a word, and what stood there before; the first that fits wins."""

SHORTEST_STEM = 3
SHORTEST_PREFIX = 5
LONGEST_WORD = 40
"""Longer runs of letters are encodings and digests, not words."""

COMMON = {2: 1_500, 3: 6_000}
"""Short pieces of longer words have to be this common: `id`, `db` and `url`, but not `zqx`."""

PIECE = 3.0
"""What each piece costs beyond its rank, so that few long pieces beat many short ones."""

_LAST = tuple({ending for ending, _ in ENDINGS})

LETTERS = re.compile(r"[a-z]+")


def rows_of(word: str, known: Mapping[str, int]) -> tuple[int, ...]:
    """The rows that stand for a word; none when nothing in the table resembles it."""
    if (row := known.get(word)) is not None:
        return (row,)
    if len(word) > LONGEST_WORD:
        return ()
    if LETTERS.fullmatch(word) is None:
        return tuple(
            row for run in LETTERS.findall(word) if len(run) > 1 for row in rows_of(run, known)
        )
    for stem in _stems(word):
        if (row := known.get(stem)) is not None:
            return (row,)
    return _pieces(word, known) or _prefix(word, known)


def _stems(word: str) -> Iterator[str]:
    if not word.endswith(_LAST):
        return
    for ending, instead in ENDINGS:
        if not word.endswith(ending):
            continue
        stem = word.removesuffix(ending) + instead
        if len(stem) >= SHORTEST_STEM:
            yield stem
            if not instead and stem[-1] == stem[-2]:
                yield stem[:-1]


def _pieces(word: str, known: Mapping[str, int]) -> tuple[int, ...]:
    """The cheapest way to write the word as known words, one after the other."""
    best: list[tuple[float, tuple[int, ...]] | None] = [(0.0, ())]
    for end in range(1, len(word) + 1):
        ways = []
        for start in range(end - 1):
            before = best[start]
            if before is None or (row := known.get(word[start:end])) is None:
                continue
            if row < COMMON.get(end - start, len(known)):
                ways.append((before[0] + PIECE + log(row + 2), (*before[1], row)))
        best.append(min(ways) if ways else None)
    return best[-1][1] if best[-1] else ()


def _prefix(word: str, known: Mapping[str, int]) -> tuple[int, ...]:
    """The longest known beginning, when it is more than half of the word."""
    for end in range(len(word) - 1, max(SHORTEST_PREFIX, len(word) // 2 + 1) - 1, -1):
        if (row := known.get(word[:end])) is not None:
            return (row,)
    return ()

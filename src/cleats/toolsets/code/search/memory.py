"""A ranker that is simple enough to be right: plain BM25 over plain dictionaries.

It reads the same words as the index and knows nothing of it. Tests hold the other backends against
it; whoever doubts a result can do so too.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.search import expressions as ex
from cleats.toolsets.code.search import tokens
from cleats.toolsets.code.search.columns import Columns
from cleats.toolsets.code.search.digest import attributes
from cleats.toolsets.code.search.vocabulary import Ids, Mask
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.catalogue import Catalogue

K1, B = 1.2, 0.75
"""The constants that everybody uses."""

FIELDS: Final = ("words", "cased", "stems", "whole", "name", "label", "path", "signature", "doc")


class Memory:
    """All words of all chunks."""

    name = "memory"
    kind = "bm25"

    def __init__(self) -> None:
        self._modes: list[int] = []
        self._texts: dict[str, list[list[str]]] = {field: [] for field in FIELDS}
        self._has: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)

    @classmethod
    def of(cls, folder: Path, shards: Sequence[Columns]) -> "Memory":
        """Read a generation, in the order of positions."""
        memory = cls()
        with Catalogue.open(folder / schema.FILE) as catalogue:
            packed = dict(catalogue.connection.execute("SELECT path, attributes FROM files"))
        for columns in shards:
            for path in columns.paths.values():
                memory._read(path, packed[path])
        return memory

    def _read(self, path: str, packed: bytes) -> None:
        found = attributes(packed)
        stems = tokens.stemmed(path)
        for mode, texts in zip(found.modes, found.texts, strict=True):
            position = len(self._modes)
            self._modes.append(mode)
            for field in FIELDS:
                text = _text(field, stems, texts)
                words = text.split()
                self._texts[field].append(words)
                for word in words:
                    having = self._has[field, word]
                    having[position] = having.get(position, 0) + 1

    def rank(
        self, expression: ex.Expression, mode: int, mask: Mask | None, limit: int
    ) -> tuple[Ids, NDArray[np.float32]]:
        """The best chunks of a mode that match, within a mask if there is one; best first."""
        scored = [
            (-score, position)
            for position, score in self._scores(expression).items()
            if self._modes[position] == mode and (mask is None or mask[position])
        ]
        best = sorted(scored)[:limit]
        return (
            np.asarray([position for _, position in best], np.int32),
            np.asarray([-score for score, _ in best], np.float32),
        )

    def _scores(self, expression: ex.Expression) -> dict[int, float]:
        """Every chunk that matches, and how well."""
        match expression:
            case ex.Word(field, word, boost):
                return self._weighed(field, (word,), self._has.get((field, word), {}), boost)
            case ex.Sequence(field, words, boost):
                return self._weighed(field, words, dict(self._rows(field, words)), boost)
            case ex.AnyOf(parts):
                return _added([self._scores(part) for part in parts])
            case ex.AllOf(parts):
                return self._all(parts)
            case ex.Without():
                return self._all((expression,))
            case ex.Bonus(part, points):
                return dict.fromkeys(self._scores(part), points)

    def _all(self, parts: Sequence[ex.Expression]) -> dict[int, float]:
        demanded = [self._scores(part) for part in parts if not isinstance(part, ex.Without)]
        left = set(range(len(self._modes)))
        for each in demanded:
            left &= each.keys()
        for part in parts:
            if isinstance(part, ex.Without):
                left -= self._scores(part.part).keys()
        total = _added(demanded)
        return {position: total.get(position, 0.0) for position in left}

    def _rows(self, field: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        for position in self._has.get((field, words[0]), {}):
            text = self._texts[field][position]
            times = sum(
                tuple(text[at : at + len(words)]) == tuple(words)
                for at, word in enumerate(text)
                if word == words[0]
            )
            if times:
                yield position, times

    def _weighed(
        self, field: str, words: Sequence[str], having: dict[int, int], boost: float
    ) -> dict[int, float]:
        texts = self._texts[field]
        usual = sum(map(len, texts)) / max(1, len(texts))
        rarity = sum(self._rarity(field, word) for word in words)
        return {
            position: boost
            * rarity
            * times
            * (K1 + 1)
            / (times + K1 * (1 - B + B * len(texts[position]) / usual))
            for position, times in having.items()
        }

    def _rarity(self, field: str, word: str) -> float:
        having = len(self._has.get((field, word), ()))
        return math.log(1 + (len(self._modes) - having + 0.5) / (having + 0.5))


def _text(field: str, path: str, texts: object) -> str:
    if field == "path":
        return path
    if field == "words":
        return str(getattr(texts, "cased")).lower()  # noqa: B009 - as the others
    return str(getattr(texts, field))


def _added(parts: Sequence[dict[int, float]]) -> dict[int, float]:
    total: dict[int, float] = {}
    for part in parts:
        for position, score in part.items():
            total[position] = total.get(position, 0.0) + score
    return total

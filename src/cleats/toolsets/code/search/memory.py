"""A ranker that is simple enough to be right: plain BM25 over plain dictionaries.

It reads the same words as the index and knows nothing of it. Tests hold the other backends against
it; whoever doubts a result can do so too.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.search import expressions as ex
from cleats.toolsets.code.search.columns import Columns
from cleats.toolsets.code.search.corpus import FIELDS, corpus
from cleats.toolsets.code.search.evaluation import Leaf, Scores, added, evaluate
from cleats.toolsets.code.search.vocabulary import Ids, Mask

K1, B = 1.2, 0.75
"""The constants that everybody uses."""


class Memory:
    """All words of all chunks."""

    name = "memory"
    kind = "bm25"

    def __init__(self, order: NDArray[np.int64]) -> None:
        self._order = order
        self._modes: list[int] = []
        self._texts: dict[str, list[list[str]]] = {field: [] for field in FIELDS}
        self._has: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)

    @classmethod
    def of(cls, folder: Path, shards: Sequence[Columns], order: NDArray[np.int64]) -> "Memory":
        """Read a generation; `order` is that of chunks that score the same."""
        memory = cls(order)
        for mode, fields in corpus(folder, shards):
            memory._add(mode, fields)
        return memory

    def _add(self, mode: int, fields: Mapping[str, str]) -> None:
        position = len(self._modes)
        self._modes.append(mode)
        for field, text in fields.items():
            words = text.split()
            self._texts[field].append(words)
            for word in words:
                having = self._has[field, word]
                having[position] = having.get(position, 0) + 1

    def rank(
        self, expression: ex.Expression, modes: Mapping[int, Mask | None], limit: int
    ) -> dict[int, tuple[Ids, NDArray[np.float32]]]:
        """The best chunks of each mode that match, within its mask if it has one; best first."""
        scores = evaluate(expression, self._matches, len(self._modes))
        return {mode: self._best(scores, mode, mask, limit) for mode, mask in modes.items()}

    def _best(
        self, scores: Scores, mode: int, mask: Mask | None, limit: int
    ) -> tuple[Ids, NDArray[np.float32]]:
        scored = [
            (-score, self._order[position], position)
            for position, score in scores.items()
            if self._modes[position] == mode and (mask is None or mask[position])
        ]
        best = sorted(scored)[:limit]
        return (
            np.asarray([position for _, _, position in best], np.int32),
            np.asarray([-score for score, _, _ in best], np.float32),
        )

    def _matches(self, leaves: Sequence[Leaf]) -> Scores:
        return added([self._scores(leaf) for leaf in leaves])

    def _scores(self, leaf: Leaf) -> Scores:
        if isinstance(leaf, ex.Word):
            having = self._has.get((leaf.field, leaf.word), {})
            return self._weighed(leaf.field, (leaf.word,), having, leaf.boost)
        having = dict(self._rows(leaf.field, leaf.words))
        return self._weighed(leaf.field, leaf.words, having, leaf.boost)

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
    ) -> Scores:
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

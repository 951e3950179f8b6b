"""The `memory` backend: plain BM25 over plain dictionaries, simple enough to be right.

It reads the same words as the index but not the index itself. Tests compare the other backends with
it; users who doubt a result can do so too.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.index.columns import Ids, Mask, ShardColumns
from cleats.toolsets.code.index.full_text import TEXT_FIELDS, read_corpus
from cleats.toolsets.code.search import expressions as ex
from cleats.toolsets.code.search.expressions import ChunkScores, ExpressionLeaf, evaluate_expression, sum_scores

BM25_K1, BM25_B = 1.2, 0.75
"""The usual constants of BM25."""


class MemoryBackend:
    """All words of all chunks."""

    name = "memory"
    score_kind = "bm25"

    def __init__(self, order: NDArray[np.int64]) -> None:
        self._order = order
        self._modes: list[int] = []
        self._texts: dict[str, list[list[str]]] = {field: [] for field in TEXT_FIELDS}
        self._occurrences: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)

    @classmethod
    def from_generation(cls, folder: Path, shards: Sequence[ShardColumns], order: NDArray[np.int64]) -> "MemoryBackend":
        """Read a generation; `order` breaks ties between chunks that score the same."""
        backend = cls(order)
        for mode, fields in read_corpus(folder, shards):
            backend._add_chunk(mode, fields)
        return backend

    def _add_chunk(self, mode: int, fields: Mapping[str, str]) -> None:
        position = len(self._modes)
        self._modes.append(mode)
        for field, text in fields.items():
            words = text.split()
            self._texts[field].append(words)
            for word in words:
                counts = self._occurrences[field, word]
                counts[position] = counts.get(position, 0) + 1

    def rank(
        self, expression: ex.Expression, modes: Mapping[int, Mask | None], limit: int
    ) -> dict[int, tuple[Ids, NDArray[np.float32]]]:
        """Return the matching chunks of each mode, best first, within its mask if any."""
        scores = evaluate_expression(expression, self._look_up, len(self._modes))
        return {mode: self._select_best(scores, mode, mask, limit) for mode, mask in modes.items()}

    def _select_best(
        self, scores: ChunkScores, mode: int, mask: Mask | None, limit: int
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

    def _look_up(self, leaves: Sequence[ExpressionLeaf]) -> ChunkScores:
        return sum_scores([self._score_leaf(leaf) for leaf in leaves])

    def _score_leaf(self, leaf: ExpressionLeaf) -> ChunkScores:
        if isinstance(leaf, ex.WordMatch):
            counts = self._occurrences.get((leaf.field, leaf.word), {})
            return self._score_bm25(leaf.field, (leaf.word,), counts, leaf.boost)
        counts = dict(self._count_sequences(leaf.field, leaf.words))
        return self._score_bm25(leaf.field, leaf.words, counts, leaf.boost)

    def _count_sequences(self, field: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        for position in self._occurrences.get((field, words[0]), {}):
            text = self._texts[field][position]
            count = sum(
                tuple(text[start : start + len(words)]) == tuple(words)
                for start, word in enumerate(text)
                if word == words[0]
            )
            if count:
                yield position, count

    def _score_bm25(self, field: str, words: Sequence[str], counts: dict[int, int], boost: float) -> ChunkScores:
        texts = self._texts[field]
        average_length = sum(map(len, texts)) / max(1, len(texts))
        rarity = sum(self._inverse_frequency(field, word) for word in words)
        return {
            position: boost
            * rarity
            * count
            * (BM25_K1 + 1)
            / (count + BM25_K1 * (1 - BM25_B + BM25_B * len(texts[position]) / average_length))
            for position, count in counts.items()
        }

    def _inverse_frequency(self, field: str, word: str) -> float:
        chunk_count = len(self._occurrences.get((field, word), ()))
        return math.log(1 + (len(self._modes) - chunk_count + 0.5) / (chunk_count + 0.5))

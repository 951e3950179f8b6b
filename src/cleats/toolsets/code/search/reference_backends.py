"""The backends `memory` and `sqlite-fts`, which evaluate an expression leaf by leaf."""

import math
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.processes import blocking
from cleats.toolsets.code.index.columns import Ids, Mask, ShardColumns
from cleats.toolsets.code.index.full_text import FTS_FILE_NAME, TEXT_FIELDS, encode_word, read_corpus
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
            blocking.raise_if_stopped()
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
        blocking.raise_if_stopped()
        if isinstance(leaf, ex.WordMatch):
            counts = self._occurrences.get((leaf.field, leaf.word), {})
            return self._score_bm25(leaf.field, (leaf.word,), counts, leaf.boost)
        return self._score_bm25(leaf.field, leaf.words, dict(self._count_sequences(leaf.field, leaf.words)), leaf.boost)

    def _count_sequences(self, field: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        for position in self._occurrences.get((field, words[0]), {}):
            blocking.raise_if_stopped()
            text = self._texts[field][position]
            starts = [start for start, word in enumerate(text) if word == words[0]]
            count = sum(tuple(text[start : start + len(words)]) == tuple(words) for start in starts)
            if count:
                yield position, count

    def _score_bm25(self, field: str, words: Sequence[str], counts: dict[int, int], boost: float) -> ChunkScores:
        texts = self._texts[field]
        average_length = sum(map(len, texts)) / max(1, len(texts))
        rarity = sum(self._inverse_frequency(field, word) for word in words)

        def score(position: int, count: int) -> float:
            length_factor = 1 - BM25_B + BM25_B * len(texts[position]) / average_length
            return boost * rarity * count * (BM25_K1 + 1) / (count + BM25_K1 * length_factor)

        return {position: score(position, count) for position, count in counts.items()}

    def _inverse_frequency(self, field: str, word: str) -> float:
        chunk_count = len(self._occurrences.get((field, word), ()))
        return math.log(1 + (len(self._modes) - chunk_count + 0.5) / (chunk_count + 0.5))


STEPS_BETWEEN_CHECKS: Final = 10_000
"""Steps of SQLite's machine, about a millisecond, between two looks whether the caller has gone."""

FIELD_WEIGHTS: Final = {"whole": 2.0, "name": 2.0, "label": 2.0, "path": 0.4, "signature": 0.3, "doc": 0.5}
"""Weights of matches by field: SQLite weighs columns, not words."""

_SELECT_MATCHES_SQL = (
    f"SELECT rowid, -bm25(texts, {', '.join(str(FIELD_WEIGHTS.get(f, 1.0)) for f in TEXT_FIELDS)})"  # noqa: S608
    " FROM texts WHERE texts MATCH ?"
)


class FtsBackend:
    """The full-text index of one generation. Thread-safe; queries run one at a time."""

    name = "sqlite-fts"
    score_kind = "fts"

    def __init__(self, connection: apsw.Connection, order: NDArray[np.int64]) -> None:
        self._connection = connection
        self._order = order
        self._lock = threading.Lock()
        connection.set_progress_handler(blocking.is_stopped, STEPS_BETWEEN_CHECKS)
        rows = connection.execute("SELECT mode FROM modes ORDER BY position")
        self._modes = np.asarray([mode for (mode,) in rows], np.uint8)

    @classmethod
    def open(cls, folder: Path, order: NDArray[np.int64]) -> "FtsBackend":
        """Open the full-text index of a generation.

        Raises:
            ToolError: NO_INDEX, it was never built.
        """
        path = folder / FTS_FILE_NAME
        if not path.exists():
            raise ToolError(
                ErrorCode.NO_INDEX,
                "The repository has no SQLite index.",
                hint="Build one with `build_sqlite_index`, or use the backend `auto`.",
                details=[{"instancePath": "/backend", "keyword": "backend", "message": "has no index"}],
            )
        return cls(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY), order)

    def rank(
        self, expression: ex.Expression, modes: Mapping[int, Mask | None], limit: int
    ) -> dict[int, tuple[Ids, NDArray[np.float32]]]:
        """Return the matching chunks of each mode, best first, within its mask if any."""
        with self._lock:
            scores = evaluate_expression(expression, self._look_up, len(self._modes))
        positions = np.fromiter(scores.keys(), np.int32, len(scores))
        points = np.fromiter(scores.values(), np.float32, len(scores))
        best = {}
        for mode, mask in modes.items():
            selected = self._modes[positions] == mode
            if mask is not None:
                selected &= mask[positions]
            mode_positions, mode_points = positions[selected], points[selected]
            order = np.lexsort((self._order[mode_positions], -mode_points))[:limit]
            best[mode] = mode_positions[order], mode_points[order]
        return best

    def _look_up(self, leaves: Sequence[ExpressionLeaf]) -> ChunkScores:
        if not leaves:
            return {}
        query = " OR ".join(_format_clauses(leaves))
        try:
            rows = self._connection.execute(_SELECT_MATCHES_SQL, (query,))
            return {int(row) - 1: float(score) for row, score in rows}
        except apsw.InterruptError:
            raise blocking.WorkStopped from None


def _format_clauses(leaves: Sequence[ExpressionLeaf]) -> Iterator[str]:
    for leaf in leaves:
        words = (leaf.word,) if isinstance(leaf, ex.WordMatch) else leaf.words
        yield f'{leaf.field} : "{" ".join(map(encode_word, words))}"'

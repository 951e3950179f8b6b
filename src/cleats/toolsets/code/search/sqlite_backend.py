"""The `sqlite-fts` backend: the same words in SQLite's own full-text index."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.index.columns import Ids, Mask
from cleats.toolsets.code.index.full_text import FTS_FILE_NAME, TEXT_FIELDS, encode_word
from cleats.toolsets.code.search import expressions as ex
from cleats.toolsets.code.search.expressions import ChunkScores, ExpressionLeaf, evaluate_expression

FIELD_WEIGHTS: Final[Mapping[str, float]] = {
    "whole": 2.0,
    "name": 2.0,
    "label": 2.0,
    "path": 0.4,
    "signature": 0.3,
    "doc": 0.5,
}
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
        rows = self._connection.execute(_SELECT_MATCHES_SQL, (query,))
        return {int(row) - 1: float(score) for row, score in rows}


def _format_clauses(leaves: Sequence[ExpressionLeaf]) -> Iterator[str]:
    for leaf in leaves:
        words = (leaf.word,) if isinstance(leaf, ex.WordMatch) else leaf.words
        yield f'{leaf.field} : "{" ".join(map(encode_word, words))}"'

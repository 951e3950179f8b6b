"""The Tantivy index of a generation, for reading: the backend that ranks by words."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import Occur, Query

from cleats.system.processes import blocking
from cleats.toolsets.code.index.columns import Ids, Mask
from cleats.toolsets.code.index.segments import POSITION_BITS, POSITIONAL_FIELDS, SEGMENTS_FOLDER, TANTIVY_SCHEMA
from cleats.toolsets.code.search import expressions as ex
from cleats.toolsets.code.search.expressions import ExpressionLeaf

NAMED_CHUNKS_FACTOR: Final = 1.5
"""Factor of the square root of all chunks: up to this many chunks of a mode, or left of it by a
filter, are named one by one in a query. Above that, more is fetched than needed and discarded,
which takes as long there as naming does: one grows with the number of named chunks, the other with
the number of all."""

MAX_SHARED_FETCH_CHUNKS: Final = 1_000
"""Largest number of chunks that are fetched to rank several modes with one query."""

REFETCH_FACTOR: Final = 8
"""Factor by which more is fetched when the first fetch is not enough."""

MAX_CACHED_QUERIES: Final = 20_000
"""Words whose queries are cached."""

TANTIVY_LOCK_FILE_NAME: Final = ".tantivy-meta.lock"

ScoreArray = NDArray[np.float32]
_RankedChunks: TypeAlias = tuple[Ids, ScoreArray]
_Clauses: TypeAlias = list[tuple[Occur, Query]]


def _open_searcher(folder: Path) -> tantivy.Searcher:
    if _can_lock(folder):
        return _open_index(folder)
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - hardly ever

    # Every file is open once there is a searcher, so that links are needed no longer than that.
    with TemporaryDirectory(prefix="cleats-") as temporary:
        for path in folder.resolve().iterdir():
            if not path.name.startswith("."):
                (Path(temporary) / path.name).symlink_to(path)
        return _open_index(Path(temporary))


def _can_lock(folder: Path) -> bool:
    """Return whether Tantivy can open the index: it needs a lock file that it can write to."""
    lock = folder / TANTIVY_LOCK_FILE_NAME
    return os.access(lock if lock.exists() else folder, os.W_OK)


def _open_index(folder: Path) -> tantivy.Searcher:
    index = tantivy.Index.open(str(folder))
    index.config_reader(reload_policy="Manual")  # nothing will ever change: watch for nothing
    return index.searcher()


class TantivyBackend:
    """The `tantivy` backend. Safe for several threads."""

    name = "tantivy"
    score_kind = "bm25-fielded"

    def __init__(self, folder: Path, starts: Sequence[int], modes: NDArray[np.uint8], order: NDArray[np.int64]) -> None:
        """Open the index of a generation by the first position of each shard, and the mode and order of each chunk."""
        self._searcher = _open_searcher(folder / SEGMENTS_FOLDER)
        self._chunk_count = int(self._searcher.num_docs)
        self._starts = np.asarray(starts, np.int64)
        self._modes = modes
        self._order = order
        self._translator = _QueryTranslator(self._searcher)

    def rank(self, expression: ex.Expression, modes: Mapping[int, Mask | None], limit: int) -> dict[int, _RankedChunks]:
        """Return the matching chunks of each mode, best first, within its mask if any."""
        query = self._translator.translate(expression)
        masks = {mode: self._modes == mode if mask is None else mask for mode, mask in modes.items()}
        sizes = {mode: int(np.count_nonzero(mask)) for mode, mask in masks.items()}
        named_limit = NAMED_CHUNKS_FACTOR * math.sqrt(self._chunk_count)
        small_modes = {mode: mask for mode, mask in masks.items() if sizes[mode] <= named_limit}
        large_modes = {mode: mask for mode, mask in masks.items() if sizes[mode] > named_limit}
        ranked = self._rank_by_ids(query, small_modes, limit) if small_modes else {}
        ranked |= self._rank_modes_together(query, large_modes, sizes, limit) if large_modes else {}
        return {
            mode: ranked.get(mode) or self._rank_mode(query, mode, masks[mode], sizes[mode], limit) for mode in modes
        }

    def _rank_by_ids(self, query: Query, modes: Mapping[int, Mask], limit: int) -> dict[int, _RankedChunks]:
        """Rank all matches in small modes, by naming each chunk in the query."""
        positions = np.flatnonzero(np.any(list(modes.values()), axis=0))
        shards = np.searchsorted(self._starts, positions, side="right") - 1
        places = (shards << POSITION_BITS) + positions - self._starts[shards]
        id_query = Query.const_score_query(Query.term_set_query(TANTIVY_SCHEMA, "place", places.tolist()), 0.0)
        positions_found, scores = self._search(_require_both(query, id_query), len(positions))
        return {
            mode: self._select_best(positions_found, scores, mask[positions_found], limit)
            for mode, mask in modes.items()
        }

    def _rank_modes_together(
        self, query: Query, modes: Mapping[int, Mask], sizes: Mapping[int, int], limit: int
    ) -> dict[int, _RankedChunks]:
        """Rank the modes for which one query finds enough, because many chunks belong to them.

        Without a condition Tantivy skips everything that cannot be among the best.
        """
        fetch_counts = {mode: self._estimate_fetch(sizes[mode], limit) for mode in modes}
        fetch_count = max(
            (estimate for estimate in fetch_counts.values() if estimate <= MAX_SHARED_FETCH_CHUNKS), default=0
        )
        if not fetch_count:
            return {}
        positions, scores = self._search(query, fetch_count)
        certain = _mask_certain(scores, fetch_count)
        selections = {
            mode: certain & modes[mode][positions] for mode, estimate in fetch_counts.items() if estimate <= fetch_count
        }
        return {
            mode: self._select_best(positions, scores, selected, limit)
            for mode, selected in selections.items()
            if len(positions) < fetch_count or np.count_nonzero(selected) >= limit
        }

    def _estimate_fetch(self, size: int, limit: int) -> int:
        """Return how many of all chunks most likely contain `limit` of `size` chunks."""
        return min(int(limit * self._chunk_count / max(1, size) * 1.5) + 50, self._chunk_count + 1)

    def _rank_mode(self, query: Query, mode: int, mask: Mask, size: int, limit: int) -> _RankedChunks:
        """Fetch more and more until nothing is left that could be among the best."""
        mode_query = _require_both(query, _make_mode_query(mode))
        fetch_count = self._estimate_fetch(size, limit)
        while True:
            positions, scores = self._search(mode_query, fetch_count)
            selected = _mask_certain(scores, fetch_count) & mask[positions]
            if len(positions) < fetch_count or np.count_nonzero(selected) >= limit:
                return self._select_best(positions, scores, selected, limit)
            fetch_count = min(fetch_count * REFETCH_FACTOR, self._chunk_count + 1)

    def _select_best(self, positions: Ids, scores: ScoreArray, selected: Mask, limit: int) -> _RankedChunks:
        positions, scores = positions[selected], scores[selected]
        best = np.lexsort((self._order[positions], -scores))[:limit]
        return positions[best], scores[best]

    def _search(self, query: Query, limit: int) -> _RankedChunks:
        blocking.raise_if_stopped()
        hits = self._searcher.search(query, max(1, limit), count=False).hits
        if not hits:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        scores, addresses = zip(*hits, strict=True)
        places = np.array(self._searcher.fast_field_values("place", list(addresses)), np.int64)
        positions = self._starts[places >> POSITION_BITS] + (places & ((1 << POSITION_BITS) - 1))
        return positions.astype(np.int32), np.array(scores, np.float32)


def _mask_certain(scores: ScoreArray, fetch_count: int) -> Mask:
    """Mark results whose place is certain: ties with the last one may be incomplete."""
    return scores > (scores[-1] if len(scores) >= fetch_count else -np.inf)


def _require_both(query: Query, condition: Query) -> Query:
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, condition)])


@cache
def _make_mode_query(mode: int) -> Query:
    return Query.const_score_query(Query.term_query(TANTIVY_SCHEMA, "mode", mode), 0.0)


class _QueryTranslator:
    """Translates expressions to queries; caches those of words and omits absent words."""

    def __init__(self, searcher: tantivy.Searcher) -> None:
        self._searcher = searcher
        self._cached_queries: dict[ExpressionLeaf, Query | None] = {}

    def translate(self, expression: ex.Expression) -> Query:
        """Return the query for an expression."""
        match expression:
            case ex.WordMatch() | ex.SequenceMatch():
                return self._get_leaf_query(expression) or Query.empty_query()
            case ex.AnyOf(parts):
                return Query.boolean_query(self._make_any_clauses(parts))
            case ex.AllOf(parts):
                return Query.boolean_query(self._make_all_clauses(parts))
            case ex.Negation():
                return Query.boolean_query(self._make_all_clauses((expression,)))
            case ex.ConstantScore(part, points):
                return Query.const_score_query(self.translate(part), points)

    def _make_any_clauses(self, parts: Iterable[ex.Expression]) -> _Clauses:
        queries = (
            self._get_leaf_query(part) if isinstance(part, ex.WordMatch | ex.SequenceMatch) else self.translate(part)
            for part in parts
        )
        return [(Occur.Should, query) for query in queries if query is not None]

    def _make_all_clauses(self, parts: Sequence[ex.Expression]) -> _Clauses:
        positive = [part for part in parts if not isinstance(part, ex.Negation)]
        negative = [part.part for part in parts if isinstance(part, ex.Negation)]
        clauses = [(Occur.Must, self.translate(part)) for part in positive]
        if not positive:
            clauses.append((Occur.Must, Query.const_score_query(Query.all_query(), 0.0)))
        return clauses + [(Occur.MustNot, self.translate(part)) for part in negative]

    def _get_leaf_query(self, leaf: ExpressionLeaf) -> Query | None:
        blocking.raise_if_stopped()
        queries = self._cached_queries
        if leaf not in queries:
            if len(queries) >= MAX_CACHED_QUERIES:
                queries = self._cached_queries = {}
            words = (leaf.word,) if isinstance(leaf, ex.WordMatch) else leaf.words
            is_there = all(self._searcher.doc_freq(leaf.field, word) for word in words)
            queries[leaf] = _make_leaf_query(leaf) if is_there else None
        return queries[leaf]


def _make_leaf_query(leaf: ExpressionLeaf) -> Query:
    if isinstance(leaf, ex.SequenceMatch):
        query = Query.phrase_query(TANTIVY_SCHEMA, leaf.field, list(leaf.words))
    else:
        option = "position" if leaf.field in POSITIONAL_FIELDS else "freq"
        query = Query.term_query(TANTIVY_SCHEMA, leaf.field, leaf.word, option)
    return query if leaf.boost == 1.0 else Query.boost_query(query, leaf.boost)

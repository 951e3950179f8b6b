"""The Tantivy indexes of all shards, asked together: the backend that ranks by words."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import Occur, Query

from cleats.toolsets.code.search import expressions as ex
from cleats.toolsets.code.search.evaluation import Leaf
from cleats.toolsets.code.search.segments import FOLDER, POSITIONAL, SCHEMA
from cleats.toolsets.code.search.vocabulary import Ids, Mask

FEW: Final = 500
"""Chunks that a filter may leave to be named one by one in a query; above that, more is fetched
than needed and thrown away."""

SMALL: Final = 16_384
"""Chunks of a shard below which it is quickest to fetch all that match and to filter that."""

REMEMBERED: Final = 20_000
"""Words whose queries are kept."""

Scores = NDArray[np.float32]
_Clauses: TypeAlias = list[tuple[Occur, Query]]


class Shard:
    """One shard, for reading. Safe for several threads."""

    def __init__(self, folder: Path) -> None:
        index = tantivy.Index.open(str(folder / FOLDER))
        index.config_reader(reload_policy="Manual")  # nothing will ever change: watch for nothing
        self._searcher = index.searcher()
        self._in_order = self._searcher.num_segments <= 1
        self.chunks = int(self._searcher.num_docs)

    def frequency(self, field: str, word: str) -> int:
        """In how many chunks a field has a word."""
        return int(self._searcher.doc_freq(field, word))

    def search(self, query: Query, limit: int) -> tuple[Ids, Scores]:
        """The best chunks and their scores, best first."""
        hits = self._searcher.search(query, limit, count=False).hits
        scores, addresses = zip(*hits, strict=True) if hits else ((), ())
        if self._in_order:
            found = [address.doc for address in addresses]
        else:
            found = self._searcher.fast_field_values("position", list(addresses))
        return np.array(found, np.int32), np.array(scores, np.float32)


class Words:
    """All shards together: what the `tantivy` backend ranks with."""

    name = "tantivy"
    kind = "bm25-fielded"

    def __init__(
        self, shards: Sequence[Shard], starts: Sequence[int], order: NDArray[np.int64]
    ) -> None:
        self._shards = shards
        self._starts = starts
        self._order = order
        self._leaves = _Leaves(shards)

    def rank(
        self, expression: ex.Expression, modes: Mapping[int, Mask | None], limit: int
    ) -> dict[int, tuple[Ids, Scores]]:
        """The best chunks of each mode that match, within its mask if it has one; best first."""
        ranked: dict[int, list[tuple[Ids, Scores]]] = {mode: [] for mode in modes}
        queries = self._leaves.translated(expression)
        for shard, start, query in zip(self._shards, self._starts, queries, strict=True):
            own = {
                mode: None if mask is None else mask[start : start + shard.chunks]
                for mode, mask in modes.items()
            }
            for mode, (found, scores) in _ranked(shard, query, own, limit):
                ranked[mode].append((found + np.int32(start), scores))
        return {mode: self._merged(parts, limit) for mode, parts in ranked.items()}

    def _merged(self, parts: Sequence[tuple[Ids, Scores]], limit: int) -> tuple[Ids, Scores]:
        if len(parts) == 1:
            return parts[0]
        positions = np.concatenate([found for found, _ in parts])
        scores = np.concatenate([points for _, points in parts])
        order = np.lexsort((self._order[positions], -scores))[:limit]
        return positions[order], scores[order]


def _ranked(
    shard: Shard, query: Query, modes: Mapping[int, Mask | None], limit: int
) -> Iterator[tuple[int, tuple[Ids, Scores]]]:
    if shard.chunks <= SMALL and all(mask is not None for mask in modes.values()):
        found, scores = shard.search(query, max(1, shard.chunks))
        for mode, mask in modes.items():
            kept = np.flatnonzero(mask[found])[:limit]  # type: ignore[index]
            yield mode, (found[kept], scores[kept])
        return
    for mode, mask in modes.items():
        of_mode = Query.boolean_query([(Occur.Must, query), (Occur.Must, _of_mode(mode))])
        yield mode, _within(shard, of_mode, mask, limit)


@cache
def _of_mode(mode: int) -> Query:
    return Query.const_score_query(Query.term_query(SCHEMA, "mode", mode), 0.0)


def _within(shard: Shard, query: Query, mask: Mask | None, limit: int) -> tuple[Ids, Scores]:
    if mask is None:
        return shard.search(query, limit)
    left = np.flatnonzero(mask)
    if len(left) > FEW:
        return _sieved(shard, query, mask, limit)
    if not len(left):
        return np.zeros(0, np.int32), np.zeros(0, np.float32)
    among = Query.term_set_query(SCHEMA, "position", left.tolist())
    return shard.search(_and(query, among), limit)


def _sieved(shard: Shard, query: Query, mask: Mask, limit: int) -> tuple[Ids, Scores]:
    """Fetch more and more until enough of it is within the mask."""
    share = mask.sum() / len(mask)
    fetch = min(shard.chunks, int(limit / share * 1.5) + 50)
    while True:
        found, scores = shard.search(query, fetch)
        kept = mask[found]
        if kept.sum() >= limit or len(found) < fetch:
            return found[kept][:limit], scores[kept][:limit]
        fetch = min(shard.chunks, fetch * 4)


def _and(query: Query, condition: Query) -> Query:
    """A query under a condition that does not count."""
    return Query.boolean_query(
        [(Occur.Must, query), (Occur.Must, Query.const_score_query(condition, 0.0))]
    )


class _Leaves:
    """Expressions as queries of each shard; those of words are made once.

    How rare a word is counts over all shards: where one shard has its own idea, the boost makes up
    for it. A shard without the word is not asked for it.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = shards
        self._sizes = [shard.chunks for shard in shards]
        self._made: dict[Leaf, list[Query | None]] = {}

    def translated(self, expression: ex.Expression) -> list[Query]:
        """One query for each shard."""
        match expression:
            case ex.Word() | ex.Sequence():
                return [query or Query.empty_query() for query in self._queries(expression)]
            case ex.AnyOf(parts):
                return list(map(Query.boolean_query, self._any(parts)))
            case ex.AllOf(parts):
                return list(map(Query.boolean_query, self._all(parts)))
            case ex.Without():
                return list(map(Query.boolean_query, self._all((expression,))))
            case ex.Bonus(part, points):
                return [Query.const_score_query(each, points) for each in self.translated(part)]

    def _any(self, parts: Iterable[ex.Expression]) -> list[_Clauses]:
        clauses: list[_Clauses] = [[] for _ in self._shards]
        for part in parts:
            queries: Sequence[Query | None]
            if isinstance(part, ex.Word | ex.Sequence):
                queries = self._queries(part)
            else:
                queries = self.translated(part)
            for own, query in zip(clauses, queries, strict=True):
                if query is not None:
                    own.append((Occur.Should, query))
        return clauses

    def _all(self, parts: Iterable[ex.Expression]) -> list[_Clauses]:
        wanted = [(Occur.Must, part) for part in parts if not isinstance(part, ex.Without)]
        without = [(Occur.MustNot, part.part) for part in parts if isinstance(part, ex.Without)]
        translated = [(how, self.translated(part)) for how, part in (*wanted, *without)]
        if not wanted:
            everything = Query.const_score_query(Query.all_query(), 0.0)
            translated.append((Occur.Must, [everything] * len(self._shards)))
        return [
            [(how, each[shard]) for how, each in translated] for shard in range(len(self._shards))
        ]

    def _queries(self, leaf: Leaf) -> Sequence[Query | None]:
        """One query for each shard; None where nothing has the word."""
        made = self._made.get(leaf)
        if made is None:
            if len(self._made) >= REMEMBERED:
                self._made = {}
            made = self._made[leaf] = list(self._make(leaf))
        return made

    def _make(self, leaf: Leaf) -> Iterator[Query | None]:
        words = (leaf.word,) if isinstance(leaf, ex.Word) else leaf.words
        counts = [[shard.frequency(leaf.field, word) for word in words] for shard in self._shards]
        total = sum(self._sizes)
        everywhere = sum(_rarity(total, sum(each)) for each in zip(*counts, strict=True))
        query = _leaf(leaf)
        for size, having in zip(self._sizes, counts, strict=True):
            if all(having):
                here = sum(_rarity(size, count) for count in having)
                yield _boosted(query, leaf.boost * everywhere / here)
            else:
                yield None


def _leaf(leaf: Leaf) -> Query:
    if isinstance(leaf, ex.Sequence):
        return Query.phrase_query(SCHEMA, leaf.field, list(leaf.words))
    option = "position" if leaf.field in POSITIONAL else "freq"
    return Query.term_query(SCHEMA, leaf.field, leaf.word, option)


def _rarity(chunks: int, having: int) -> float:
    return math.log(1 + (chunks - having + 0.5) / (having + 0.5))


def _boosted(query: Query, boost: float) -> Query:
    return query if boost == 1.0 else Query.boost_query(query, boost)

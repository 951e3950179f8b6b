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

from cleats.toolsets.code.search import expressions as ex
from cleats.toolsets.code.search.evaluation import Leaf
from cleats.toolsets.code.search.segments import FOLDER, POSITIONAL, SCHEMA, SHARD_BITS
from cleats.toolsets.code.search.vocabulary import Ids, Mask

FEW: Final = 1.5
"""Times the root of all chunks: so many of a mode, or that a filter leaves of it, are named one by
one in a query. Above that, more is fetched than needed and thrown away, which takes as long there
as naming does: one grows with the number of the few, the other with what they are few among."""

MANY: Final = 1_000
"""Chunks that are fetched at most to find those of several modes with one query."""

MORE: Final = 8
"""Times as much is fetched when what was fetched is not enough."""

REMEMBERED: Final = 20_000
"""Words whose queries are kept."""

LOCK: Final = ".tantivy-meta.lock"

Scores = NDArray[np.float32]
_Listed: TypeAlias = tuple[Ids, Scores]
_Clauses: TypeAlias = list[tuple[Occur, Query]]


def _searcher(place: Path) -> tantivy.Searcher:
    if _may_lock(place):
        return _opened(place)
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - hardly ever

    # Every file is open once there is a searcher, so that links are needed no longer than that.
    with TemporaryDirectory(prefix="cleats-") as aside:
        for path in place.resolve().iterdir():
            if not path.name.startswith("."):
                (Path(aside) / path.name).symlink_to(path)
        return _opened(Path(aside))


def _may_lock(place: Path) -> bool:
    """Whether Tantivy can open what is there: it locks for it, with a file that it writes to."""
    lock = place / LOCK
    return os.access(lock if lock.exists() else place, os.W_OK)


def _opened(place: Path) -> tantivy.Searcher:
    index = tantivy.Index.open(str(place))
    index.config_reader(reload_policy="Manual")  # nothing will ever change: watch for nothing
    return index.searcher()


class Words:
    """What the `tantivy` backend ranks with. Safe for several threads."""

    name = "tantivy"
    kind = "bm25-fielded"

    def __init__(
        self,
        folder: Path,
        starts: Sequence[int],
        modes: NDArray[np.uint8],
        order: NDArray[np.int64],
    ) -> None:
        """Open the index of a generation.

        Args:
            folder: The generation.
            starts: The position of the first chunk of each shard.
            modes: The mode of every chunk.
            order: That of chunks that score the same.
        """
        self._searcher = _searcher(folder / FOLDER)
        self._chunks = int(self._searcher.num_docs)
        self._starts = np.asarray(starts, np.int64)
        self._modes = modes
        self._order = order
        self._leaves = _Leaves(self._searcher)

    def rank(
        self, expression: ex.Expression, modes: Mapping[int, Mask | None], limit: int
    ) -> dict[int, _Listed]:
        """The best chunks of each mode that match, within its mask if it has one; best first."""
        query = self._leaves.translated(expression)
        within = {
            mode: self._modes == mode if mask is None else mask for mode, mask in modes.items()
        }
        sizes = {mode: int(np.count_nonzero(mask)) for mode, mask in within.items()}
        most = FEW * math.sqrt(self._chunks)
        few = {mode: mask for mode, mask in within.items() if sizes[mode] <= most}
        many = {mode: mask for mode, mask in within.items() if sizes[mode] > most}
        listed = self._named(query, few, limit) if few else {}
        listed |= self._together(query, many, sizes, limit) if many else {}
        return {
            mode: listed.get(mode) or self._alone(query, mode, within[mode], sizes[mode], limit)
            for mode in modes
        }

    def _named(self, query: Query, modes: Mapping[int, Mask], limit: int) -> dict[int, _Listed]:
        """All that match of the few chunks of these modes, each of which is named."""
        positions = np.flatnonzero(np.any(list(modes.values()), axis=0))
        shards = np.searchsorted(self._starts, positions, side="right") - 1
        places = (shards << SHARD_BITS) + positions - self._starts[shards]
        among = Query.const_score_query(Query.term_set_query(SCHEMA, "place", places.tolist()), 0.0)
        found, scores = self._search(_both(query, among), len(positions))
        return {
            mode: self._first(found, scores, mask[found], limit) for mode, mask in modes.items()
        }

    def _together(
        self, query: Query, modes: Mapping[int, Mask], sizes: Mapping[int, int], limit: int
    ) -> dict[int, _Listed]:
        """The modes of which one query finds enough, because many chunks are of them.

        Without a condition Tantivy passes over whatever cannot be among the best.
        """
        fetched = {mode: self._fetched(sizes[mode], limit) for mode in modes}
        fetch = max((each for each in fetched.values() if each <= MANY), default=0)
        if not fetch:
            return {}
        found, scores = self._search(query, fetch)
        sure = _sure(scores, fetch)
        kept = {mode: sure & modes[mode][found] for mode, each in fetched.items() if each <= fetch}
        return {
            mode: self._first(found, scores, some, limit)
            for mode, some in kept.items()
            if len(found) < fetch or np.count_nonzero(some) >= limit
        }

    def _fetched(self, size: int, limit: int) -> int:
        """How many of all chunks most likely hold `limit` of so many."""
        return min(int(limit * self._chunks / max(1, size) * 1.5) + 50, self._chunks + 1)

    def _alone(self, query: Query, mode: int, mask: Mask, size: int, limit: int) -> _Listed:
        """Fetch more and more until nothing is left that could be among the best."""
        of_mode = _both(query, _has_mode(mode))
        fetch = self._fetched(size, limit)
        while True:
            found, scores = self._search(of_mode, fetch)
            kept = _sure(scores, fetch) & mask[found]
            if len(found) < fetch or np.count_nonzero(kept) >= limit:
                return self._first(found, scores, kept, limit)
            fetch = min(fetch * MORE, self._chunks + 1)

    def _first(self, found: Ids, scores: Scores, kept: Mask, limit: int) -> _Listed:
        found, scores = found[kept], scores[kept]
        best = np.lexsort((self._order[found], -scores))[:limit]
        return found[best], scores[best]

    def _search(self, query: Query, limit: int) -> _Listed:
        """The best chunks and their scores, best first."""
        hits = self._searcher.search(query, max(1, limit), count=False).hits
        if not hits:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        scores, addresses = zip(*hits, strict=True)
        places = np.array(self._searcher.fast_field_values("place", list(addresses)), np.int64)
        found = self._starts[places >> SHARD_BITS] + (places & ((1 << SHARD_BITS) - 1))
        return found.astype(np.int32), np.array(scores, np.float32)


def _sure(scores: Scores, fetch: int) -> Mask:
    """What is in its place: those that score like the last one may be cut off in the middle."""
    return scores > (scores[-1] if len(scores) >= fetch else -np.inf)


def _both(query: Query, condition: Query) -> Query:
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, condition)])


@cache
def _has_mode(mode: int) -> Query:
    return Query.const_score_query(Query.term_query(SCHEMA, "mode", mode), 0.0)


class _Leaves:
    """Expressions as queries; those of words are made once, and words that nothing has left out."""

    def __init__(self, searcher: tantivy.Searcher) -> None:
        self._searcher = searcher
        self._made: dict[Leaf, Query | None] = {}

    def translated(self, expression: ex.Expression) -> Query:
        """The query that finds what matches."""
        match expression:
            case ex.Word() | ex.Sequence():
                return self._query(expression) or Query.empty_query()
            case ex.AnyOf(parts):
                return Query.boolean_query(self._any(parts))
            case ex.AllOf(parts):
                return Query.boolean_query(self._all(parts))
            case ex.Without():
                return Query.boolean_query(self._all((expression,)))
            case ex.Bonus(part, points):
                return Query.const_score_query(self.translated(part), points)

    def _any(self, parts: Iterable[ex.Expression]) -> _Clauses:
        queries = (
            self._query(part) if isinstance(part, ex.Word | ex.Sequence) else self.translated(part)
            for part in parts
        )
        return [(Occur.Should, query) for query in queries if query is not None]

    def _all(self, parts: Sequence[ex.Expression]) -> _Clauses:
        wanted = [part for part in parts if not isinstance(part, ex.Without)]
        without = [part.part for part in parts if isinstance(part, ex.Without)]
        clauses = [(Occur.Must, self.translated(part)) for part in wanted]
        if not wanted:
            clauses.append((Occur.Must, Query.const_score_query(Query.all_query(), 0.0)))
        return clauses + [(Occur.MustNot, self.translated(part)) for part in without]

    def _query(self, leaf: Leaf) -> Query | None:
        made = self._made
        if leaf not in made:
            if len(made) >= REMEMBERED:
                made = self._made = {}
            words = (leaf.word,) if isinstance(leaf, ex.Word) else leaf.words
            is_there = all(self._searcher.doc_freq(leaf.field, word) for word in words)
            made[leaf] = _leaf(leaf) if is_there else None
        return made[leaf]


def _leaf(leaf: Leaf) -> Query:
    if isinstance(leaf, ex.Sequence):
        query = Query.phrase_query(SCHEMA, leaf.field, list(leaf.words))
    else:
        option = "position" if leaf.field in POSITIONAL else "freq"
        query = Query.term_query(SCHEMA, leaf.field, leaf.word, option)
    return query if leaf.boost == 1.0 else Query.boost_query(query, leaf.boost)

"""One search in an open generation: filter, rank, fuse, for each mode.

The same masks serve every backend and the vectors, so a filter means the same everywhere.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from cleats.toolsets.code.facts import Mode
from cleats.toolsets.code.search import tokens
from cleats.toolsets.code.search.digest import MODES
from cleats.toolsets.code.search.emptiness import Passing, passing
from cleats.toolsets.code.search.fusion import Fused, Ranked, Standing, fuse
from cleats.toolsets.code.search.query_tree import Question
from cleats.toolsets.code.search.rank import (
    ABOUT_TESTS,
    COVERED,
    MEANING,
    MENTIONED,
    Plan,
    Ranking,
    plan,
)
from cleats.toolsets.code.search.request import Request
from cleats.toolsets.code.search.symbols import named
from cleats.toolsets.code.search.vocabulary import Ids, Mask

if TYPE_CHECKING:
    from cleats.toolsets.code.search.engine import Backend, Engine

NEAR: Final = 0.2
"""The cosine below which a chunk has nothing to do with a question."""

FETCHED: Final = 50
"""Chunks of a list at least, so that lists can agree on some."""

ALL_WORDS: Final = 0.02
"""Points for having every word of a short question: about what the first places are apart."""


class Hit(Struct, frozen=True):
    """One chunk that was found, and where it is."""

    fused: Fused
    path: str
    ordinal: int


class Found(Struct, frozen=True):
    """What a search found, by mode, best first."""

    request: Request
    backend: str
    kind: str
    """What the scores of its lists are."""
    hits: dict[Mode, list[Hit]]
    chunks: int
    considered: dict[Mode, int]
    """How many chunks the filters left."""
    branch: str | None
    loosened: bool = False
    """No chunk had the phrases, so their words were looked for instead."""
    passing: tuple[Passing, ...] = ()
    """What each filter lets through, when all together let nothing through."""
    no_vectors: bool = False
    """The caller asked that meaning counts, and the index was built without."""


class Weighing(Protocol):
    """Chunks, as far as their lists need to know them."""

    @property
    def weights(self) -> NDArray[np.float32]:
        """What the kind of each multiplies its scores with."""

    @property
    def order(self) -> NDArray[np.int64]:
        """That of chunks that score the same."""


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked for it
    """The search was given up by whoever asked for it."""


class Retrieval:
    """A request on its way through an engine."""

    def __init__(self, engine: "Engine", request: Request, stopped: Callable[[], bool]) -> None:
        self._engine = engine
        self._request = request
        self._stopped = stopped
        self._backend: Backend = engine.backend(request.backend)
        self._plan: Plan = plan(request)
        self._limit = max(FETCHED, 3 * request.top)

    def run(self) -> Found:
        """Search every mode that is asked for."""
        engine, request = self._engine, self._request
        branch = engine.meta.get("branch")
        hits: dict[Mode, list[Hit]] = {mode: [] for mode in request.modes}
        considered: dict[Mode, int] = dict.fromkeys(request.modes, 0)
        alone: tuple[Passing, ...] = ()
        if not request.branch or (branch or "").lower() == request.branch.lower():
            mask = engine.mask(request.filters)
            within = {
                mode: engine.of_mode(mode) if mask is None else engine.of_mode(mode) & mask
                for mode in request.modes
            }
            considered = {mode: int(np.count_nonzero(left)) for mode, left in within.items()}
            asked = {mode: left for mode, left in within.items() if considered[mode]}
            asked, limited = self._limited(asked)
            hits |= self._hits(asked, filtered=mask is not None or limited)
            alone = () if any(considered.values()) else passing(engine, request)
        return Found(
            request,
            *(self._backend.name, self._backend.kind),
            hits,
            engine.chunks,
            considered,
            branch,
            passing=alone,
            no_vectors=request.meaning_asked and not engine.meta.get("vectors", True),
        )

    def _limited(self, within: dict[Mode, Mask]) -> tuple[dict[Mode, Mask], bool]:
        """What has the phrases of a question and nothing that it bars; whether there are any."""
        limits = ((self._plan.demanded, True), (self._plan.barred, False))
        wanted = [(each, having) for each, having in limits if each is not None]
        for expression, having in wanted:
            if self._stopped():
                raise Stopped
            modes: dict[int, Mask | None] = {MODES.index(mode): None for mode in within}
            lists = self._backend.rank(expression, modes, max(1, self._engine.chunks))
            for mode, left in within.items():
                found = np.zeros(len(left), np.bool_)
                found[lists[MODES.index(mode)][0]] = True
                within[mode] = left & (found if having else ~found)
        return {mode: left for mode, left in within.items() if left.any()}, bool(wanted)

    def _hits(self, within: dict[Mode, Mask], *, filtered: bool) -> dict[Mode, list[Hit]]:
        ranked = {mode: list[Ranked]() for mode in within}
        modes = {MODES.index(mode): left if filtered else None for mode, left in within.items()}
        for ranking in self._plan.rankings:
            if self._stopped():
                raise Stopped
            lists = self._backend.rank(ranking.expression, modes, self._limit)
            for mode, rankings in ranked.items():
                positions, scores = lists[MODES.index(mode)]
                weights, order = self._engine.weights[positions], self._engine.order[positions]
                rankings.append(weighed(ranking, positions, scores, weights, order))
        cosines, strict = self._cosines(), self._plan.strict
        called = {"symbol": self._symbols(), "mention": self._mentioned()}
        for mode, left in within.items():
            if cosines is not None:
                ranked[mode].append(
                    nearest(self._engine, cosines, left, self._limit, strict=strict)
                )
        return {mode: self._best(each, called, within[mode]) for mode, each in ranked.items()}

    def _cosines(self) -> NDArray[np.float32] | None:
        if not self._request.meaning or self._request.cased or not self._plan.words:
            return None
        return self._engine.cosines(self._plan.words)

    def _symbols(self) -> dict[int, float]:
        name = self._plan.symbol
        return dict(self._called(name, cased=self._request.cased)) if name else {}

    def _mentioned(self) -> dict[int, float]:
        names = self._plan.mentioned
        return {at: MENTIONED for name in names for at, _ in self._called(name, cased=True)}

    def _called(self, name: str, *, cased: bool) -> Iterator[tuple[int, float]]:
        engine = self._engine
        for columns, start in zip(engine.columns, engine.starts, strict=True):
            for position, points in named(columns, name, cased=cased).items():
                yield start + position, points

    def _best(
        self, rankings: list[Ranked], called: dict[str, dict[int, float]], within: Mask
    ) -> list[Hit]:
        engine = self._engine
        bonuses = {
            part: {at: points for at, points in found.items() if within[at]}
            for part, found in called.items()
        }
        standing = Standing(
            worth=engine.worth if self._plan.words else None,
            place=engine.lowered if tests_lower(self._request, self._plan) else None,
            copies=engine.copies if self._plan.words else None,
        )
        order, top = engine.order, self._request.top
        found = best(self._plan, rankings, bonuses, order, most=top, standing=standing)
        return [Hit(each, *engine.place(each.position)) for each in found]


def answered(run: Callable[[Request], Found], request: Request) -> Found:
    """What a search finds; when no chunk has the phrases of a question, by their words."""
    found = run(request)
    if not needs_loosening(found):
        return found
    return replace(run(loosened(request)), loosened=True)


def needs_loosening(found: Found) -> bool:
    """Whether chunks were searched, and none had the phrases of the question."""
    query = found.request.query
    searched = any(found.considered.values()) and not any(found.hits.values())
    return searched and isinstance(query, Question) and bool(query.phrases)


def loosened(request: Request) -> Request:
    """The same with the words of the phrases instead of the phrases.

    Whoever pastes an error message has quotes in it that nobody wrote down like that.
    """
    query = request.query
    return replace(request, query=query.loosened()) if isinstance(query, Question) else request


def weighed(
    ranking: Ranking,
    positions: Ids,
    scores: NDArray[np.float32],
    weights: NDArray[np.float32],
    order: NDArray[np.int64],
) -> Ranked:
    """A list after what kind of chunk each is has been counted in."""
    bonus = np.where(scores >= COVERED, np.float32(COVERED), np.float32(0))
    counted = (scores - bonus) * weights + bonus
    best_first = np.lexsort((order, -counted))
    return Ranked(ranking.name, ranking.weight, positions[best_first], counted[best_first])


def tests_lower(request: Request, planned: Plan) -> bool:
    """Whether code of tests counts less: where the operator wants it, unless it is asked for."""
    about_tests = not ABOUT_TESTS.isdisjoint(map(tokens.stem, planned.words))
    return request.tests_lower and not about_tests


def best(
    planned: Plan,
    rankings: list[Ranked],
    called: Mapping[str, dict[int, float]],
    order: NDArray[np.int64],
    *,
    most: int,
    standing: Standing,
) -> list[Fused]:
    """The best chunks of all lists and of what is called like the question or a part of it."""
    bonuses = {**called, "words": _covered(rankings[0])}
    if planned.strict:
        rankings = _reranked(rankings)
    return fuse(rankings, bonuses, order, most, standing)


def _covered(ranking: Ranked) -> dict[int, float]:
    """Points for those whose score says that they have every word, which is then taken back."""
    whole = ranking.scores >= COVERED
    ranking.scores[whole] -= COVERED
    return dict.fromkeys(ranking.positions[whole].tolist(), ALL_WORDS)


def _reranked(rankings: list[Ranked]) -> list[Ranked]:
    """Meaning orders what a query demands, and adds nothing to it."""
    demanded = rankings[0].positions
    kept = [np.isin(each.positions, demanded) for each in rankings]
    return [
        Ranked(each.name, each.weight, each.positions[own], each.scores[own])
        for each, own in zip(rankings, kept, strict=True)
    ]


def nearest(
    engine: Weighing, cosines: NDArray[np.float32], within: Mask, limit: int, *, strict: bool
) -> Ranked:
    """The chunks that are close to a question, after what kind of chunk each is was counted in."""
    left = np.flatnonzero(within)
    counted = cosines[left] * engine.weights[left]
    count = len(left) if strict else min(limit, len(left))
    if count < len(left):
        close = np.argpartition(-counted, count - 1)[:count]
        left, counted = left[close], counted[close]
    found = left[np.lexsort((engine.order[left], -counted))]
    found = found[cosines[found] >= NEAR]
    return Ranked("meaning", MEANING, found.astype(np.int32), cosines[found])

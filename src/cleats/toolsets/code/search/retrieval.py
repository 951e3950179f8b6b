"""One search in an open generation: filter, rank and fuse, for each mode; and why nothing was found.

The same masks apply to every backend and the vectors, so a filter means the same everywhere.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.index import tokens
from cleats.toolsets.code.index.columns import Ids, Mask, sort_unique
from cleats.toolsets.code.index.digest import MODES_BY_NUMBER
from cleats.toolsets.code.query.arguments import ARGUMENTS_BY_NAME
from cleats.toolsets.code.query.request import SearchRequest
from cleats.toolsets.code.query.tree import Question
from cleats.toolsets.code.search.engine import ListingNumber, SearchBackend, SearchEngine
from cleats.toolsets.code.search.filter_effects import FilterEffect, measure_filters
from cleats.toolsets.code.search.fusion import (
    DEPRECATED_STEM,
    GENERATED_STEM,
    ChunkPoints,
    FusedHit,
    RankAdjustments,
    RankedList,
    fuse_lists,
    score_named_chunks,
)
from cleats.toolsets.code.search.hit_details import SearchHit
from cleats.toolsets.code.search.meaning import rank_by_meaning, select_closest
from cleats.toolsets.code.search.ranking import (
    ALL_WORDS_SCORE,
    EVERYTHING_LIST,
    MENTION_BONUS,
    TEST_QUESTION_STEMS,
    PlannedList,
    SearchPlan,
    add_coverage,
    plan_search,
)

MIN_FETCHED_CHUNKS: Final = 100
"""Minimum number of chunks in a list, so that lists can agree on some."""

ALL_WORDS_BONUS: Final = 0.02
"""Points for having every word of a short question: about the distance between the first ranks."""


class SearchResult(Struct, frozen=True):
    """The result of a search, by mode, best first."""

    request: SearchRequest
    backend: str
    score_kind: str
    """The kind of the scores of its lists."""
    hits: dict[Mode, list[SearchHit]]
    chunk_count: int
    considered: dict[Mode, int]
    """The number of chunks that passed the filters."""
    branch: str | None
    is_loosened: bool = False
    """True if no chunk had the phrases, so their words were searched for instead."""
    filter_effects: tuple[FilterEffect, ...] = ()
    """The effect of each filter, when no chunk passes all of them."""
    lacks_vectors: bool = False
    """True if the caller asked that meaning counts, and the index was built without vectors."""


def search_generation(engine: SearchEngine, request: SearchRequest) -> SearchResult:
    """Find the best chunks of each mode.

    Raises:
        ToolError: INVALID_REQUEST, a pattern takes too long; NO_INDEX, the backend has none.
        WorkStopped: this thread works for a call that has ended.
    """
    return search_with_fallback(lambda attempt: Retrieval(engine, attempt).run(), request)


class Retrieval:
    """Runs one request in an engine."""

    def __init__(self, engine: SearchEngine, request: SearchRequest) -> None:
        self._engine = engine
        self._request = request
        self._backend: SearchBackend = engine.get_backend(request.backend)
        self._plan: SearchPlan = add_coverage(plan_search(request), engine.measure_rarity)
        self._limit = max(MIN_FETCHED_CHUNKS, 3 * request.top)

    def run(self) -> SearchResult:
        """Search every requested mode."""
        engine, request = self._engine, self._request
        branch = engine.meta.get("branch")
        hits: dict[Mode, list[SearchHit]] = {mode: [] for mode in request.modes}
        considered: dict[Mode, int] = dict.fromkeys(request.modes, 0)
        filter_effects: tuple[FilterEffect, ...] = ()
        if not request.branch or (branch or "").lower() == request.branch.lower():
            mask = engine.compute_mask(request.filters)
            mode_masks = {
                mode: engine.get_mode_mask(mode) if mask is None else engine.get_mode_mask(mode) & mask
                for mode in request.modes
            }
            considered = {mode: int(np.count_nonzero(mode_mask)) for mode, mode_mask in mode_masks.items()}
            nonempty = {mode: mode_mask for mode, mode_mask in mode_masks.items() if considered[mode]}
            nonempty, is_constrained = self._apply_constraints(nonempty)
            hits |= self._rank_hits(nonempty, is_filtered=mask is not None or is_constrained)
            filter_effects = () if any(considered.values()) else measure_filters(engine, request)
        return SearchResult(
            request,
            *(self._backend.name, self._backend.score_kind),
            hits,
            engine.chunk_count,
            considered,
            branch,
            filter_effects=filter_effects,
            lacks_vectors=request.meaning_requested and not engine.meta.get("vectors", True),
        )

    def _apply_constraints(self, mode_masks: dict[Mode, Mask]) -> tuple[dict[Mode, Mask], bool]:
        """Apply the phrases and exclusions of a question; return whether there are any."""
        constraints = ((self._plan.required, True), (self._plan.excluded, False))
        active = [(constraint, is_required) for constraint, is_required in constraints if constraint is not None]
        for expression, is_required in active:
            modes: dict[int, Mask | None] = {MODES_BY_NUMBER.index(mode): None for mode in mode_masks}
            lists = self._backend.rank(expression, modes, max(1, self._engine.chunk_count))
            for mode, mode_mask in mode_masks.items():
                matches = np.zeros(len(mode_mask), np.bool_)
                matches[lists[MODES_BY_NUMBER.index(mode)][0]] = True
                mode_masks[mode] = mode_mask & (matches if is_required else ~matches)
        return {mode: mode_mask for mode, mode_mask in mode_masks.items() if mode_mask.any()}, bool(active)

    def _rank_hits(self, mode_masks: dict[Mode, Mask], *, is_filtered: bool) -> dict[Mode, list[SearchHit]]:
        engine, plan = self._engine, self._plan
        lists_by_mode = self._rank_planned_lists(mode_masks, is_filtered=is_filtered)
        cosines = None
        comparable_masks = mode_masks
        if plan.is_strict:  # meaning only reorders strict results
            comparable_masks = {
                mode: mask_positions(lists_by_mode[mode][0].positions, mode_mask)
                for mode, mode_mask in mode_masks.items()
            }
        if mode_masks and self._request.use_meaning and not self._request.cased and plan.words:
            cosines = engine.compare_meaning(plan.words, combine_masks(comparable_masks.values()))
        mentioned = [self._find_named_chunks(name, cased=True).positions for name in plan.mentioned_names]
        mentioned_positions = sort_unique(np.concatenate([*mentioned, np.zeros(0, np.int64)]))
        name_bonuses = {
            "symbol": self._find_named_chunks(plan.symbol, cased=self._request.cased),
            "mention": ChunkPoints.from_positions(mentioned_positions, MENTION_BONUS),
        }
        ranked_files = None
        if plan.words and not plan.is_strict:
            demote_tests = should_demote_tests(self._request, plan)
            ranked_files = engine.file_evidence.rank_files(plan.stems, demote_tests=demote_tests)
        hits: dict[Mode, list[SearchHit]] = {}
        for mode, mode_mask in mode_masks.items():
            ranked_lists, bonuses = lists_by_mode[mode], name_bonuses
            if cosines is not None:
                ranked_lists.append(rank_by_meaning(engine, cosines, comparable_masks[mode], self._limit, plan))
            if ranked_files is not None:
                opened = engine.file_evidence.list_chunks(ranked_files.opened_numbers)
                opened = select_closest(engine, cosines, opened[mode_mask[opened]])
                file_points = ranked_files.compute_points(plan.weights.file_rank, plan.weights.file_score)
                bonuses = name_bonuses | {
                    "file": score_by_file(ranked_lists, opened, engine.file_evidence.find_files, file_points)
                }
            hits[mode] = self._select_best(ranked_lists, bonuses, mode_mask)
        return hits

    def _rank_planned_lists(
        self, mode_masks: Mapping[Mode, Mask], *, is_filtered: bool
    ) -> dict[Mode, list[RankedList]]:
        lists_by_mode = {mode: list[RankedList]() for mode in mode_masks}
        modes = {
            MODES_BY_NUMBER.index(mode): mode_mask if is_filtered else None for mode, mode_mask in mode_masks.items()
        }
        for planned_list in self._plan.lists:
            if planned_list.name == EVERYTHING_LIST:
                for mode, ranked_lists in lists_by_mode.items():
                    ranked_lists.append(self._list_everything(planned_list, mode_masks[mode]))
                continue
            results = self._backend.rank(planned_list.expression, modes, self._limit)
            for mode, ranked_lists in lists_by_mode.items():
                positions, scores = results[MODES_BY_NUMBER.index(mode)]
                weights, order = self._engine.kind_weights[positions], self._engine.path_order[positions]
                ranked_lists.append(weigh_list(planned_list, positions, scores, weights, order))
        return lists_by_mode

    def _list_everything(self, planned_list: PlannedList, mode_mask: Mask) -> RankedList:
        """List all chunks by what the filters ask about, otherwise by path."""
        positions = np.flatnonzero(mode_mask).astype(np.int32)
        keys = [self._engine.path_order[positions]]
        if (number_name := choose_listing_number(self._request)) is not None:
            keys.append(-self._engine.get_listing_numbers(number_name)[positions])
        return list_in_order(planned_list, positions[np.lexsort(keys)[: self._limit]])

    def _find_named_chunks(self, name: str, *, cased: bool) -> ChunkPoints:
        engine = self._engine
        parts = []
        for columns, start in zip(engine.shards, engine.shard_starts, strict=True):
            named = score_named_chunks(columns, name, cased=cased)
            if len(named.positions):
                parts.append(ChunkPoints(named.positions + start, named.points))
        return ChunkPoints.join(parts)

    def _select_best(
        self, ranked_lists: list[RankedList], name_bonuses: dict[str, ChunkPoints], mode_mask: Mask
    ) -> list[SearchHit]:
        engine = self._engine
        bonuses = {part: matches.select(mode_mask[matches.positions]) for part, matches in name_bonuses.items()}
        adjustments = RankAdjustments(
            body_sizes=engine.body_sizes if self._plan.words else None,
            name_weight=self._plan.weights.body_names,
            line_weight=self._plan.weights.body_lines,
            path_weights=engine.test_weights if should_demote_tests(self._request, self._plan) else None,
            standing_weights=engine.standing_weights if should_demote_standing(self._plan) else None,
            mark_duplicates=engine.mark_duplicates if self._plan.words else None,
        )
        order, top = engine.path_order, self._request.top
        matches = select_best(self._plan, ranked_lists, bonuses, order, limit=top, adjustments=adjustments)
        return [SearchHit(fused, *engine.locate_chunk(fused.position)) for fused in matches]


def combine_masks(masks: Iterable[Mask]) -> Mask:
    """Return the mask of the chunks that are in any of some masks."""
    return reduce(np.logical_or, masks)


def mask_positions(positions: Ids, like: Mask) -> Mask:
    """Return a mask as long as another, with these positions."""
    mask = np.zeros_like(like)
    mask[positions] = True
    return mask


def choose_listing_number(request: SearchRequest) -> ListingNumber | None:
    """Return what orders a list of everything: severity for filters on risk, the last change for history."""
    topics = {ARGUMENTS_BY_NAME[item.argument].topic for item in request.filters}
    if "risk" in topics:
        return "severity"
    return "modified" if "history" in topics else None


def list_in_order(planned_list: PlannedList, positions: Ids) -> RankedList:
    """Return a list that has an order and no scores."""
    return RankedList(planned_list.name, planned_list.weight, positions, np.zeros(len(positions), np.float32))


def search_with_fallback(run: Callable[[SearchRequest], SearchResult], request: SearchRequest) -> SearchResult:
    """Run a search; if no chunk has the phrases of a question, search for their words instead."""
    result = run(request)
    if not needs_loosening(result):
        return result
    return replace(run(loosen_request(request)), is_loosened=True)


def needs_loosening(result: SearchResult) -> bool:
    """Return whether chunks were searched, and none had the phrases of the question."""
    query = result.request.query
    is_empty = any(result.considered.values()) and not any(result.hits.values())
    return is_empty and isinstance(query, Question) and bool(query.phrases)


def loosen_request(request: SearchRequest) -> SearchRequest:
    """Return the request with the words of its phrases instead of the phrases.

    A pasted error message contains quotes that do not occur like that in any file.
    """
    query = request.query
    return replace(request, query=query.loosen_phrases()) if isinstance(query, Question) else request


def weigh_list(
    planned_list: PlannedList,
    positions: Ids,
    scores: NDArray[np.float32],
    weights: NDArray[np.float32],
    order: NDArray[np.int64],
) -> RankedList:
    """Apply the weights of chunk kinds to a list."""
    bonus = np.where(scores >= ALL_WORDS_SCORE, np.float32(ALL_WORDS_SCORE), np.float32(0))
    weighted = (scores - bonus) * weights + bonus
    best_first = np.lexsort((order, -weighted))
    return RankedList(planned_list.name, planned_list.weight, positions[best_first], weighted[best_first])


def should_demote_tests(request: SearchRequest, search_plan: SearchPlan) -> bool:
    """Return whether to demote test code: if it is configured, unless the query is about tests."""
    about_tests = not TEST_QUESTION_STEMS.isdisjoint(map(tokens.stem_word, search_plan.words))
    return request.demote_tests and not about_tests


def should_demote_standing(search_plan: SearchPlan) -> bool:
    """Return whether to demote deprecated and generated code: unless the query is about it."""
    return bool(search_plan.words) and {DEPRECATED_STEM, GENERATED_STEM}.isdisjoint(
        map(tokens.stem_word, search_plan.words)
    )


def select_best(
    search_plan: SearchPlan,
    ranked_lists: list[RankedList],
    name_bonuses: Mapping[str, ChunkPoints],
    order: NDArray[np.int64],
    *,
    limit: int,
    adjustments: RankAdjustments,
) -> list[FusedHit]:
    """Return the best chunks of all lists and of those named like the question or a part of it."""
    bonuses = {**name_bonuses, "words": _extract_full_matches(ranked_lists[0])}
    if search_plan.is_strict:
        ranked_lists = _restrict_to_first(ranked_lists)
    return fuse_lists(ranked_lists, bonuses, order, limit, adjustments)


def _extract_full_matches(ranked_list: RankedList) -> ChunkPoints:
    """Return points for the chunks whose score shows every word, and reset that score."""
    full_matches = ranked_list.scores >= ALL_WORDS_SCORE
    ranked_list.scores[full_matches] -= ALL_WORDS_SCORE
    return ChunkPoints.from_positions(ranked_list.positions[full_matches], ALL_WORDS_BONUS)


def _restrict_to_first(ranked_lists: list[RankedList]) -> list[RankedList]:
    """Restrict all lists to the chunks of the first: meaning only reorders strict results."""
    allowed = ranked_lists[0].positions
    masked = [(item, np.isin(item.positions, allowed)) for item in ranked_lists]
    return [RankedList(item.name, item.weight, item.positions[mask], item.scores[mask]) for item, mask in masked]


def score_by_file(
    ranked_lists: Sequence[RankedList],
    opened: NDArray[np.int64],
    find_files: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    file_points: Mapping[int, float],
) -> ChunkPoints:
    """Return the points of all candidates for their files."""
    candidates = sort_unique(np.concatenate([*(item.positions for item in ranked_lists), opened]))
    files = find_files(candidates).tolist()
    return ChunkPoints.from_mapping(
        {
            position: file_points[file]
            for position, file in zip(candidates.tolist(), files, strict=True)
            if file in file_points
        }
    )

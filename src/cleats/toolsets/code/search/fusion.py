"""The fusion of several ranked lists: reciprocal ranks, weighted and added.

Scores of different kinds cannot be compared, ranks can. Duplicates do not push others down: code
that was built six times is not six times as good. The contribution of each part is kept, so a score
can be explained: it is exactly the sum of its parts.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, count
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from cleats.toolsets.code.index.columns import Ids, Mask
from cleats.toolsets.code.search.adjustments import DUPLICATE_WEIGHT
from cleats.toolsets.code.search.expressions import sum_scores

RANK_CONSTANT: Final = 20
"""Flattens the difference between the first ranks; the usual 60 flattens it too much for lists of
this quality."""


class RankedList(Struct, frozen=True):
    """One list: chunks, best first, with the scores that ordered it."""

    name: str
    weight: float
    positions: Ids
    scores: NDArray[np.float32]


class FusedHit(Struct, frozen=True):
    """One chunk in the fused list."""

    position: int
    parts: dict[str, float] = field(default_factory=dict)
    """The points that each list, each bonus and each adjustment added to the score."""
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)

    def add_rank(self, ranked_list: RankedList, rank: int, place: int) -> None:
        """Record the rank of the chunk in a list, and its place in that list, from 1."""
        self.parts[ranked_list.name] = ranked_list.weight / (RANK_CONSTANT + rank)
        self.ranks[ranked_list.name] = rank
        self.scores[ranked_list.name] = float(ranked_list.scores[place - 1])


class RankAdjustments(Struct, frozen=True):
    """Factors for scores that do not depend on the query, chunk by chunk."""

    body_weights: NDArray[np.float32] | None = None
    """Factors for list points, by what each chunk does: the part `body`."""
    path_weights: NDArray[np.float32] | None = None
    """Factors for the whole score, by the path of each chunk: the part `place`."""
    mark_duplicates: Callable[[Ids], Mask] | None = None
    """Marks the chunks, given in order, that duplicate others: the part `copy`."""


def fuse_lists(
    ranked_lists: list[RankedList],
    bonuses: Mapping[str, Mapping[int, float]],
    order: NDArray[np.int64],
    limit: int,
    adjustments: RankAdjustments = RankAdjustments(),  # noqa: B008 - frozen
) -> list[FusedHit]:
    """Return the best chunks of all lists; ties are in the order of files and positions."""
    places = [dict(zip(item.positions.tolist(), count(1), strict=False)) for item in ranked_lists]
    bonus_points = sum_scores(list(bonuses.values()))
    positions = np.fromiter(set(bonus_points).union(*places), np.int64)
    positions = positions[np.argsort(order[positions])]
    duplicates = np.zeros(len(positions), np.bool_)
    if adjustments.mark_duplicates is not None:
        duplicates = adjustments.mark_duplicates(positions.astype(np.int32))
    ranks = _assign_ranks(places, frozenset(positions[duplicates].tolist()))
    list_points = sum_scores(
        [
            {position: ranked_list.weight / (RANK_CONSTANT + rank) for position, rank in list_ranks.items()}
            for ranked_list, list_ranks in zip(ranked_lists, ranks, strict=True)
        ]
    )
    scores = np.fromiter((list_points.get(position, 0.0) for position in positions.tolist()), np.float64)
    bonus_scores = np.fromiter((bonus_points.get(position, 0.0) for position in positions.tolist()), np.float64)
    changes = dict(_compute_adjustments(adjustments, positions, duplicates, scores, bonus_scores))
    scores = sum(changes.values(), scores + bonus_scores)
    best = np.argsort(-scores, kind="stable")[:limit]
    hits = {position: FusedHit(position) for position in positions[best].tolist()}
    for ranked_list, list_places, list_ranks in zip(ranked_lists, places, ranks, strict=True):
        for position in hits.keys() & list_ranks.keys():
            hits[position].add_rank(ranked_list, list_ranks[position], list_places[position])
    for name, points in bonuses.items():
        for position in hits.keys() & points.keys():
            hits[position].parts[name] = points[position]
    for name, change in changes.items():
        for item, points in zip(hits.values(), change[best].tolist(), strict=True):
            if points:
                item.parts[name] = points
    return list(hits.values())


def _compute_adjustments(
    adjustments: RankAdjustments,
    positions: NDArray[np.int64],
    duplicates: Mask,
    list_points: NDArray[np.float64],
    bonus_points: NDArray[np.float64],
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield the points that each adjustment adds to the scores, one after the other."""
    scores = list_points + bonus_points
    if adjustments.body_weights is not None:
        change = list_points * (adjustments.body_weights[positions] - 1)
        scores = scores + change
        yield "body", change
    if adjustments.path_weights is not None:
        change = scores * (adjustments.path_weights[positions] - 1)
        scores = scores + change
        yield "place", change
    if duplicates.any():
        yield "copy", scores * np.where(duplicates, DUPLICATE_WEIGHT - 1, 0.0)


def _assign_ranks(places: list[dict[int, int]], duplicates: frozenset[int]) -> list[dict[int, int]]:
    """Return the rank of each chunk in each list: its place, not counting duplicates."""
    if not duplicates:
        return places
    ranks: list[dict[int, int]] = []
    for list_places in places:
        list_ranks = accumulate((position not in duplicates for position in list_places), initial=1)
        ranks.append(dict(zip(list_places, list_ranks, strict=False)))
    return ranks

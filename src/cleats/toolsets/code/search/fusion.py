"""Several rankings as one: reciprocal ranks, weighted and added.

Scores of different kinds cannot be compared, ranks can. What each part contributed is kept, so a
score can be explained: it is the sum of its parts and nothing else.
"""

from collections.abc import Mapping
from itertools import count
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from cleats.toolsets.code.search.vocabulary import Ids

K: Final = 20
"""Softens the difference between the first ranks; the usual 60 softens it too much for lists as
good as ours."""


class Ranked(Struct, frozen=True):
    """One list: chunks, best first, with the scores it was made by."""

    name: str
    weight: float
    positions: Ids
    scores: NDArray[np.float32]


class Fused(Struct, frozen=True):
    """One chunk in the fused list."""

    position: int
    parts: dict[str, float] = field(default_factory=dict)
    """What each ranking and each bonus added to the score."""
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)

    def add(self, ranking: Ranked, rank: int) -> None:
        """Note its rank in a list."""
        self.parts[ranking.name] = ranking.weight / (K + rank)
        self.ranks[ranking.name] = rank
        self.scores[ranking.name] = float(ranking.scores[rank - 1])


def fuse(
    rankings: list[Ranked],
    bonuses: Mapping[str, Mapping[int, float]],
    order: NDArray[np.int64],
    most: int,
    factors: NDArray[np.float32] | None = None,
) -> list[Fused]:
    """The best chunks of all lists; equal ones in the order of their files and places.

    `factors` multiply the scores of chunks by where they are.
    """
    ranks = [dict(zip(each.positions.tolist(), count(1), strict=False)) for each in rankings]
    totals = _totals(rankings, ranks, bonuses)
    positions = np.fromiter(totals, np.int64, len(totals))
    scores = np.fromiter(totals.values(), np.float64, len(totals))
    if factors is not None:
        scores *= factors[positions]
    best = positions[np.lexsort((order[positions], -scores))[:most]].tolist()
    found = {position: Fused(position) for position in best}
    for ranking, ranked in zip(rankings, ranks, strict=True):
        for position in found.keys() & ranked.keys():
            found[position].add(ranking, ranked[position])
    for name, points in bonuses.items():
        for position in found.keys() & points.keys():
            found[position].parts[name] = points[position]
    if factors is not None:
        for position, each in found.items():
            if factors[position] != 1:
                each.parts["place"] = totals[position] * (float(factors[position]) - 1)
    return list(found.values())


def _totals(
    rankings: list[Ranked],
    ranks: list[dict[int, int]],
    bonuses: Mapping[str, Mapping[int, float]],
) -> dict[int, float]:
    totals: dict[int, float] = {}
    for ranking, ranked in zip(rankings, ranks, strict=True):
        for position, rank in ranked.items():
            totals[position] = totals.get(position, 0.0) + ranking.weight / (K + rank)
    for points in bonuses.values():
        for position, bonus in points.items():
            totals[position] = totals.get(position, 0.0) + bonus
    return totals

"""Several rankings as one: reciprocal ranks, weighted and added.

Scores of different kinds cannot be compared, ranks can. What each part contributed is kept, so a
score can be explained: it is the sum of its parts and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cleats.toolsets.code.search.vocabulary import Ids

K: Final = 60
"""Softens the difference between the first ranks; the usual number, and the measured one."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One list: chunks, best first, with the scores it was made by."""

    name: str
    weight: float
    positions: Ids
    scores: NDArray[np.float32]


@dataclass(slots=True)
class Fused:
    """One chunk in the fused list."""

    position: int
    parts: dict[str, float] = field(default_factory=dict)
    """What each ranking and each bonus added to the score."""
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)

    @property
    def score(self) -> float:
        return sum(self.parts.values())


def fuse(
    rankings: list[Ranked], bonuses: Mapping[str, Mapping[int, float]], order: NDArray[np.int64]
) -> list[Fused]:
    """All chunks of all lists, best first; equal ones in the order of their files and places."""
    found: dict[int, Fused] = {}
    for ranking in rankings:
        pairs = zip(ranking.positions.tolist(), ranking.scores.tolist(), strict=True)
        for rank, (position, score) in enumerate(pairs, 1):
            fused = found.setdefault(position, Fused(position))
            fused.parts[ranking.name] = ranking.weight / (K + rank)
            fused.ranks[ranking.name] = rank
            fused.scores[ranking.name] = score
    for name, points in bonuses.items():
        for position, bonus in points.items():
            found.setdefault(position, Fused(position)).parts[name] = bonus
    return sorted(found.values(), key=lambda each: (-each.score, order[each.position]))

"""Several rankings as one: reciprocal ranks, weighted and added.

Scores of different kinds cannot be compared, ranks can. Copies take no rank away from others: what
was built six times over is not six times as good. What each part contributed is kept, so a score
can be explained: it is the sum of its parts and nothing else.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, count
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from cleats.toolsets.code.search.standing import COPY
from cleats.toolsets.code.search.vocabulary import Ids, Mask

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
    """What each ranking, each bonus and the standing of the chunk added to the score."""
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)

    def add(self, ranking: Ranked, rank: int, place: int) -> None:
        """Note its rank in a list, and the place where it stands there, from 1."""
        self.parts[ranking.name] = ranking.weight / (K + rank)
        self.ranks[ranking.name] = rank
        self.scores[ranking.name] = float(ranking.scores[place - 1])


class Standing(Struct, frozen=True):
    """What multiplies scores whatever was asked for, chunk by chunk."""

    worth: NDArray[np.float32] | None = None
    """For the points of lists, by what each chunk does: the part `body`."""
    place: NDArray[np.float32] | None = None
    """For the whole score, by where each chunk is: the part `place`."""
    copies: Callable[[Ids], Mask] | None = None
    """Which of the chunks that were found are copies of others, given in order: the part `copy`."""


def fuse(
    rankings: list[Ranked],
    bonuses: Mapping[str, Mapping[int, float]],
    order: NDArray[np.int64],
    most: int,
    standing: Standing = Standing(),  # noqa: B008 - frozen
) -> list[Fused]:
    """The best chunks of all lists; equal ones in the order of their files and places."""
    places = [dict(zip(each.positions.tolist(), count(1), strict=False)) for each in rankings]
    given = _given(bonuses)
    positions = np.fromiter(set(given).union(*places), np.int64)
    positions = positions[np.argsort(order[positions])]
    copied = np.zeros(len(positions), np.bool_)
    if standing.copies is not None:
        copied = standing.copies(positions.astype(np.int32))
    ranks = _ranks(places, frozenset(positions[copied].tolist()))
    listed = _listed(rankings, ranks)
    scores = np.fromiter((listed.get(at, 0.0) for at in positions.tolist()), np.float64)
    more = np.fromiter((given.get(at, 0.0) for at in positions.tolist()), np.float64)
    changes = dict(_changes(standing, positions, copied, scores, more))
    scores = sum(changes.values(), scores + more)
    best = np.argsort(-scores, kind="stable")[:most]
    found = {position: Fused(position) for position in positions[best].tolist()}
    for ranking, placed, ranked in zip(rankings, places, ranks, strict=True):
        for position in found.keys() & ranked.keys():
            found[position].add(ranking, ranked[position], placed[position])
    for name, points in bonuses.items():
        for position in found.keys() & points.keys():
            found[position].parts[name] = points[position]
    for name, change in changes.items():
        for each, points in zip(found.values(), change[best].tolist(), strict=True):
            if points:
                each.parts[name] = points
    return list(found.values())


def _changes(
    standing: Standing,
    positions: NDArray[np.int64],
    copied: Mask,
    listed: NDArray[np.float64],
    given: NDArray[np.float64],
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """What the standing of chunks adds to their scores, one after the other."""
    scores = listed + given
    if standing.worth is not None:
        change = listed * (standing.worth[positions] - 1)
        scores = scores + change
        yield "body", change
    if standing.place is not None:
        change = scores * (standing.place[positions] - 1)
        scores = scores + change
        yield "place", change
    if copied.any():
        yield "copy", scores * np.where(copied, COPY - 1, 0.0)


def _ranks(places: list[dict[int, int]], copied: frozenset[int]) -> list[dict[int, int]]:
    """The rank of each chunk in each list: its place, if copies had none."""
    if not copied:
        return places
    ranks: list[dict[int, int]] = []
    for each in places:
        before = accumulate((position not in copied for position in each), initial=1)
        ranks.append(dict(zip(each, before, strict=False)))
    return ranks


def _listed(rankings: list[Ranked], ranks: list[dict[int, int]]) -> dict[int, float]:
    totals: dict[int, float] = {}
    for ranking, ranked in zip(rankings, ranks, strict=True):
        for position, rank in ranked.items():
            totals[position] = totals.get(position, 0.0) + ranking.weight / (K + rank)
    return totals


def _given(bonuses: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    totals: dict[int, float] = {}
    for points in bonuses.values():
        for position, bonus in points.items():
            totals[position] = totals.get(position, 0.0) + bonus
    return totals

"""Where an answer stands in a list, and what that is worth."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

DEPTH = 10
"""Results that are looked at."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One result of any system: lines of a file, counted from 1, both included."""

    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Score:
    """Means over questions. An answer further down than `DEPTH` counts as not found."""

    ndcg: float
    hit: float
    """Share with an answer at the top."""
    recall: float
    """Share with an answer anywhere."""
    questions: int


def place(results: Iterable[Passage], fits: Callable[[Passage], bool]) -> int | None:
    """The place of the first answer, counted from 0; None when there is none in reach."""
    for number, passage in zip(range(DEPTH), results, strict=False):
        if fits(passage):
            return number
    return None


def score(places: Sequence[int | None]) -> Score:
    """With one answer per question, nDCG is what its place is discounted to."""
    count = max(1, len(places))
    found = [each for each in places if each is not None]
    return Score(
        ndcg=sum(1 / math.log2(each + 2) for each in found) / count,
        hit=sum(each == 0 for each in found) / count,
        recall=len(found) / count,
        questions=len(places),
    )

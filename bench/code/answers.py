"""The rank of an answer in a result list, and the score for it."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

MAX_RESULTS = 10
"""The number of results that are considered."""


@dataclass(frozen=True, slots=True)
class ResultPassage:
    """One result of any system: lines of a file, counted from 1, both included."""

    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class QualityScore:
    """Means over questions. An answer below the first `MAX_RESULTS` counts as not found."""

    ndcg: float
    hit: float
    """The share of questions with an answer at the top."""
    recall: float
    """The share of questions with an answer anywhere."""
    questions: int


def find_rank(results: Iterable[ResultPassage], is_answer: Callable[[ResultPassage], bool]) -> int | None:
    """Return the rank of the first answer, counted from 0, or None if there is none in reach."""
    for number, passage in zip(range(MAX_RESULTS), results, strict=False):
        if is_answer(passage):
            return number
    return None


def score_ranks(ranks: Sequence[int | None]) -> QualityScore:
    """Compute the mean scores; with one answer per question, nDCG is the discount of its rank."""
    count = max(1, len(ranks))
    found_ranks = [rank for rank in ranks if rank is not None]
    return QualityScore(
        ndcg=sum(1 / math.log2(rank + 2) for rank in found_ranks) / count,
        hit=sum(rank == 0 for rank in found_ranks) / count,
        recall=len(found_ranks) / count,
        questions=len(ranks),
    )

"""Expressions worked out chunk by chunk, for backends that can only look words up."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from cleats.toolsets.code.search import expressions as ex

Leaf: TypeAlias = ex.Word | ex.Sequence
Scores: TypeAlias = dict[int, float]
LookUp: TypeAlias = Callable[[Sequence[Leaf]], Scores]
"""Every chunk that has any of these, and how well together."""


def evaluate(expression: ex.Expression, look_up: LookUp, chunks: int) -> Scores:
    """Every chunk that matches, and how well; `chunks` is how many there are."""
    match expression:
        case ex.Word() | ex.Sequence():
            return look_up([expression])
        case ex.Bonus(part, points):
            return dict.fromkeys(evaluate(part, look_up, chunks), points)
        case ex.AnyOf(parts):
            leaves = [part for part in parts if isinstance(part, ex.Word | ex.Sequence)]
            rest = [part for part in parts if not isinstance(part, ex.Word | ex.Sequence)]
            return added([look_up(leaves), *(evaluate(each, look_up, chunks) for each in rest)])
        case ex.AllOf(parts):
            return _all(parts, look_up, chunks)
        case ex.Without():
            return _all((expression,), look_up, chunks)


def _all(parts: Sequence[ex.Expression], look_up: LookUp, chunks: int) -> Scores:
    demanded: list[Scores] = []
    left = set(range(chunks))
    for part in parts:
        if isinstance(part, ex.Without):
            left -= evaluate(part.part, look_up, chunks).keys()
        else:
            demanded.append(evaluate(part, look_up, chunks))
            left &= demanded[-1].keys()
    total = added(demanded)
    return {position: total.get(position, 0.0) for position in left}


def added(parts: Sequence[Scores]) -> Scores:
    """The scores of all parts, added."""
    total: Scores = {}
    for part in parts:
        for position, score in part.items():
            total[position] = total.get(position, 0.0) + score
    return total

"""How sure a guess is.

Every signal speaks for one value with a weight. Those that agree add up as independent chances do
(1 - the product of what each leaves open); half of what speaks for the strongest other value is
taken off again. A guess counts when it is over the threshold and nothing else comes near it. So a
new signal for a value never makes it less sure, and one for another never makes it more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, Final

THRESHOLD: Final = 0.80
"""A guess has to be above this."""

RIVAL: Final = 0.50
"""Whatever else there is has to stay below this."""

SUGGESTED: Final = 0.20
"""What is worth mentioning."""

_DIGITS: Final = 4
"""Weights have two digits; more than these are noise of the arithmetic."""


@dataclass(frozen=True, slots=True, order=True)
class Signal:
    """One observation: which field, which value, where it was seen, how much it weighs."""

    field: str
    value: str
    source: str
    weight: float
    seen: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "field": self.field,
            "value": self.value,
            "source": self.source,
            "weight": round(self.weight, _DIGITS),
            "seen": self.seen,
        }


@dataclass(frozen=True, slots=True)
class Guess:
    """What the signals say about one field."""

    field: str
    value: str
    """Empty when it is not sure enough."""
    confidence: float
    rival: float
    candidates: tuple[tuple[str, float], ...]
    """Every value that was seen, the surest first, by name where they are as sure."""

    @property
    def suggested(self) -> list[str]:
        return [value for value, confidence in self.candidates if confidence >= SUGGESTED]


def guess(field: str, signals: Iterable[Signal]) -> Guess:
    """What the signals for a field come to, in whatever order they are given."""
    weights: dict[str, list[float]] = {}
    for signal in signals:
        if signal.field == field:
            weights.setdefault(signal.value, []).append(signal.weight)
    raw = {value: 1 - prod(1 - each for each in sorted(ws)) for value, ws in weights.items()}
    judged = []
    for value, own in raw.items():
        rival = max((each for other, each in raw.items() if other != value), default=0.0)
        judged.append((value, max(0.0, round(own - rival / 2, _DIGITS)), rival))
    judged.sort(key=lambda each: (-each[1], each[0]))
    candidates = tuple((value, confidence) for value, confidence, _ in judged)
    if not judged:
        return Guess(field, "", 0.0, 0.0, ())
    value, confidence, rival = judged[0]
    sure = confidence > THRESHOLD and round(rival, _DIGITS) < RIVAL
    return Guess(field, value if sure else "", confidence, round(rival, _DIGITS), candidates)

"""A concrete value on which two schemas disagree: the shortest argument there is.

A search, not a proof: of the values that `samples` makes, it keeps what the one schema takes and
the other refuses. It is deterministic, and it is bounded, so that a comparison takes milliseconds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from cleats.contract.compat.keywords import Schema
from cleats.contract.compat.prover import comparable
from cleats.contract.compat.samples import Maker
from cleats.contract.pointer import pointer


@dataclass(frozen=True, slots=True)
class Reason:
    """The keyword that refused a value, and the properties it complained about."""

    pointer: str
    subjects: frozenset[str]


Fits = Callable[[Iterable[Reason]], bool]
"""Whether a refusal is the one that is looked for."""


class Disagreement:
    """Schemas as judges: each of `smalls` has to take a value, each of `larges` to refuse it.

    Raises:
        ValueError: one of them is no schema that can be used.
    """

    def __init__(
        self, smalls: Sequence[Schema], larges: Sequence[Schema], *, formats: bool
    ) -> None:
        self._smalls, self._larges = (
            [
                jsonschema_rs.validator_for(one, validate_formats=formats, offline=True)
                for one in side
            ]
            for side in (smalls, larges)
        )

    def holds(self, value: Any) -> bool:
        if not all(one.is_valid(value) for one in self._smalls):
            return False
        return not any(one.is_valid(value) for one in self._larges)

    def reasons(self, value: Any) -> list[Reason]:
        """Why the first of `larges` refuses the value."""
        return [
            Reason(pointer(error.schema_path), _subjects(error.kind.as_dict()))
            for error in self._larges[0].iter_errors(value)
        ]

    def shrink(self, value: Any, fits: Fits) -> Any:
        """Drop whatever can go while the value is still refused for the same reason."""
        for smaller in _smaller(value):
            if self.holds(smaller) and fits(self.reasons(smaller)):
                return self.shrink(smaller, fits)
        return value


def _subjects(facts: dict[str, Any]) -> frozenset[str]:
    return frozenset([*facts.get("unexpected", []), *filter(None, [facts.get("property")])])


def disagreements(
    small: Schema, large: Schema, *others: tuple[Schema, Schema]
) -> Iterator[tuple[Disagreement, Any]]:
    """Values that `small` takes and `large` refuses, simple ones first.

    `others` are pairs that have to disagree about the value as well. Values that do not depend on
    `format` come before those that only a server which enforces formats would refuse.
    """
    pairs = [comparable(*pair) for pair in ((small, large), *others)]
    smalls, larges = zip(*pairs, strict=True)
    for formats in (False, True):
        try:
            judges = Disagreement(smalls, larges, formats=formats)
        except ValueError:
            return
        values = Maker(*pairs[0]).values(*pairs[0])
        yield from ((judges, value) for value in values if judges.holds(value))


def _smaller(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name in value:
            yield {other: held for other, held in value.items() if other != name}
        for name, held in value.items():
            yield from ({**value, name: less} for less in _smaller(held))
    elif isinstance(value, list):
        for place in range(len(value)):
            yield value[:place] + value[place + 1 :]
        for place, held in enumerate(value):
            yield from ([*value[:place], less, *value[place + 1 :]] for less in _smaller(held))

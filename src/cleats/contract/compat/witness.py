"""A concrete value on which two schemas disagree: the shortest argument there is.

A search, not a proof: of the values that `samples` makes, it keeps what the one schema takes and
the other refuses. It is deterministic, and it is bounded, so that a comparison takes milliseconds.
"""

from collections.abc import Callable, Iterable, Iterator
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
    """Two schemas as judges: `small` has to take a value and `large` to refuse it.

    Raises:
        ValueError: one of them is no schema that can be used.
    """

    def __init__(self, small: Schema, large: Schema, *, formats: bool) -> None:
        self._small, self._large = (
            jsonschema_rs.validator_for(schema, validate_formats=formats, offline=True)
            for schema in (small, large)
        )

    def holds(self, value: Any) -> bool:
        return self._small.is_valid(value) and not self._large.is_valid(value)

    def reasons(self, value: Any) -> list[Reason]:
        """Why `large` refuses the value."""
        return [
            Reason(pointer(error.schema_path), _subjects(error.kind.as_dict()))
            for error in self._large.iter_errors(value)
        ]

    def shrink(self, value: Any, fits: Fits) -> Any:
        """Drop whatever can go while the value is still refused for the same reason."""
        for smaller in _smaller(value):
            if self.holds(smaller) and fits(self.reasons(smaller)):
                return self.shrink(smaller, fits)
        return value


def _subjects(facts: dict[str, Any]) -> frozenset[str]:
    return frozenset([*facts.get("unexpected", []), *filter(None, [facts.get("property")])])


def disagreements(small: Schema, large: Schema) -> Iterator[tuple[Disagreement, Any]]:
    """Values that `small` takes and `large` refuses, simple ones first.

    Values that do not depend on `format` come before those that only a server which enforces
    formats would refuse.
    """
    small, large = comparable(small, large)
    for formats in (False, True):
        try:
            judges = Disagreement(small, large, formats=formats)
        except ValueError:
            return
        values = Maker(small, large).values(small, large)
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

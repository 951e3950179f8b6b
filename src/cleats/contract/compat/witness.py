"""Witnesses: concrete values on which two schemas disagree, the simplest evidence there is.

A search, not a proof: of the values that `samples` makes, it keeps those that one schema accepts
and the other refuses. It is deterministic and bounded, so that a comparison takes milliseconds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from cleats.contract.compat.containment import expand_reserved
from cleats.contract.compat.keywords import Schema
from cleats.contract.compat.sample_pool import SamplePool
from cleats.contract.compat.samples import SampleMaker
from cleats.contract.compat.value_builder import ValueBuilder
from cleats.contract.pointer import join_pointer


@dataclass(frozen=True, slots=True)
class RefusalReason:
    """The keyword that refused a value, and the properties it complained about.

    Below a reference, the keyword has two pointers: where it is, and how it was reached.
    """

    pointers: tuple[str, str]
    subjects: frozenset[str]


RefusalPredicate = Callable[[Iterable[RefusalReason]], bool]
"""Returns True for the refusal that is searched for."""


class SchemaDisagreement:
    """Two sets of schemas: each of `smalls` has to accept a value, each of `larges` to refuse it.

    Raises:
        ValueError: One of the schemas cannot be used.
    """

    def __init__(self, smalls: Sequence[Schema], larges: Sequence[Schema], *, formats: bool) -> None:
        self._smalls, self._larges = (
            [jsonschema_rs.validator_for(schema, validate_formats=formats, offline=True) for schema in schemas]
            for schemas in (smalls, larges)
        )

    def applies_to(self, value: Any) -> bool:
        if not all(validator.is_valid(value) for validator in self._smalls):
            return False
        return not any(validator.is_valid(value) for validator in self._larges)

    def list_reasons(self, value: Any) -> list[RefusalReason]:
        """Return the reasons for which the first of `larges` refuses the value."""
        return [
            RefusalReason(
                (join_pointer(error.schema_path), join_pointer(error.evaluation_path)),
                _collect_subjects(error.kind.as_dict()),
            )
            for error in self._larges[0].iter_errors(value)
        ]

    def shrink(self, value: Any, is_match: RefusalPredicate) -> Any:
        """Drop everything that can go while the value is still refused for the same reason."""
        for smaller_value in _iterate_smaller_values(value):
            if self.applies_to(smaller_value) and is_match(self.list_reasons(smaller_value)):
                return self.shrink(smaller_value, is_match)
        return value


def _collect_subjects(facts: dict[str, Any]) -> frozenset[str]:
    return frozenset([*facts.get("unexpected", []), *filter(None, [facts.get("property")])])


def find_disagreements(
    small: Schema, large: Schema, *other_pairs: tuple[Schema, Schema]
) -> Iterator[tuple[SchemaDisagreement, Any]]:
    """Yield values that `small` accepts and `large` refuses, simple ones first.

    `other_pairs` have to disagree about the value as well. Values that do not depend on `format`
    come before those that only a server which enforces formats would refuse.
    """
    pairs = [(expand_reserved(one), expand_reserved(other)) for one, other in ((small, large), *other_pairs)]
    smalls, larges = zip(*pairs, strict=True)
    for formats in (False, True):
        try:
            disagreement = SchemaDisagreement(smalls, larges, formats=formats)
        except ValueError:
            return
        values = SampleMaker(*pairs[0], SamplePool(*pairs[0])).list_values(*pairs[0])
        yield from ((disagreement, value) for value in values if disagreement.applies_to(value))


class WitnessSearch:
    """A search for values that are refused at a place, for changes on which no sample disagrees."""

    def __init__(self, small: Schema, large: Schema, *other_pairs: tuple[Schema, Schema]) -> None:
        pairs = [(expand_reserved(one), expand_reserved(other)) for one, other in ((small, large), *other_pairs)]
        self._pairs = pairs
        self._builder = ValueBuilder(*pairs[0], SamplePool(*pairs[0]))

    def find_disagreements(self, target: str, attempts: int) -> Iterator[tuple[SchemaDisagreement, Any]]:
        """Yield values about which every pair disagrees, of those that are built for a pointer."""
        smalls, larges = zip(*self._pairs, strict=True)
        try:
            disagreements = [SchemaDisagreement(smalls, larges, formats=formats) for formats in (False, True)]
        except ValueError:
            return
        for value in self._builder.build_values(target, attempts):
            for disagreement in disagreements:
                if disagreement.applies_to(value):
                    yield disagreement, value
                    break


def _iterate_smaller_values(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name in value:
            yield {key: item for key, item in value.items() if key != name}
        for name, item in value.items():
            yield from ({**value, name: smaller_item} for smaller_item in _iterate_smaller_values(item))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
        for index, item in enumerate(value):
            yield from (
                [*value[:index], smaller_item, *value[index + 1 :]] for smaller_item in _iterate_smaller_values(item)
            )

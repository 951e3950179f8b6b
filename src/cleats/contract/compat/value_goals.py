"""What a value has to be like: schemas that it fits or violates, and the shape that follows from them."""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from cleats.contract.compat.keywords import JSON_TYPES, Schema, resolve_reference, walk_in_place
from cleats.contract.pointer import join_pointer

NUMBER_KEYWORDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
TEXT_KEYWORDS: Final = ("minLength", "maxLength", "pattern", "format")
ARRAY_TYPES: Final = frozenset({"array"})
MAX_COUNT: Final = 10_000
"""More properties or items than any value has that is built."""

OBJECT_TYPES: Final = frozenset({"object"})
NUMBER_TYPES: Final = frozenset({"number", "integer"})


class DeadEndError(Exception):
    """Raised when the choices made so far contradict each other."""


class Requirement(NamedTuple):
    """A schema that a value has to fit or, if `holds` is False, to violate."""

    schema: Schema
    root: Schema
    holds: bool
    pointer: str = ""

    def descend(self, *tokens: str | int, holds: bool | None = None) -> "Requirement":
        subschema: Any = self.schema
        for token in tokens:
            subschema = subschema[token]
        holds = self.holds if holds is None else holds
        return Requirement(subschema, self.root, holds, self.pointer + join_pointer(tokens))


class NameRule(NamedTuple):
    """A requirement for the values of all names that are neither listed nor matched by a pattern."""

    listed: frozenset[str]
    patterns: tuple[str, ...]
    requirement: Requirement


class NameDemand(NamedTuple):
    """A property that has to be there, under a name that fits."""

    requirement: Requirement | None
    pattern: str | None = None
    outside: NameRule | None = None
    name_requirement: Requirement | None = None


@dataclass
class ValueShape:
    """What is known about a value after every requirement was expanded."""

    types: set[str] = field(default_factory=lambda: set(JSON_TYPES))
    constants: list[Any] | None = None
    checks: list[tuple[str, Any, bool]] = field(default_factory=list)
    """Keywords of scalars with their values, and whether they have to hold."""
    properties: dict[str, list[Requirement]] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    pattern_rules: list[tuple[str, Requirement]] = field(default_factory=list)
    rest_rules: list[NameRule] = field(default_factory=list)
    name_rules: list[Requirement] = field(default_factory=list)
    name_demands: list[NameDemand] = field(default_factory=list)
    dependents: list[tuple[str, list[str]]] = field(default_factory=list)
    least_count: int = 0
    most_count: int = MAX_COUNT
    item_rules: list[tuple[int, int | None, Requirement]] = field(default_factory=list)
    """Requirements for the items from one index up to another."""
    item_demands: list[tuple[int, Requirement]] = field(default_factory=list)
    """Items that have to be there, at an index or after it."""
    is_unique: bool = False
    has_duplicates: bool = False

    def limit_types(self, types: frozenset[str]) -> None:
        self.types &= types
        if not self.types:
            raise DeadEndError


def follow_reference(goal: Requirement, ref: str) -> Requirement:
    """Return the requirement for the target of a reference.

    Raises:
        DeadEndError: The reference leads out of the document.
    """
    target = resolve_reference(goal.root, ref)
    if target is None:
        raise DeadEndError
    return Requirement(target, goal.root, goal.holds, unquote(ref[1:]))


def list_rest_keywords(schema: dict[str, Any]) -> list[str]:
    """Return the keyword that judges the names that are not listed, if the schema has one."""
    keywords = ("additionalProperties", "unevaluatedProperties")
    return [keyword for keyword in keywords if keyword in schema][:1]


def make_rest_rule(goal: Requirement, keyword: str) -> NameRule:
    """Return the rule that such a keyword makes."""
    parts = [goal.schema] if keyword == "additionalProperties" else walk_in_place(goal.schema, goal.root)
    bodies = [part for part in parts if isinstance(part, dict)]
    listed = frozenset(name for body in bodies for name in body.get("properties", {}))
    patterns = tuple(pattern for body in bodies for pattern in body.get("patternProperties", {}))
    return NameRule(listed, patterns, goal.descend(keyword))


def count_described_items(goal: Requirement) -> int:
    """Return the number of first items that a schema, or one for the same value, describes."""
    return max(len(part.get("prefixItems", [])) for part in walk_in_place(goal.schema, goal.root))

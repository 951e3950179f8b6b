"""The ways to violate a schema: one for each of its keywords, and for each part of a keyword."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any, Final, NamedTuple

from cleats.contract.compat.keywords import JSON_TYPES, list_types
from cleats.contract.compat.value_goals import (
    ARRAY_TYPES,
    MAX_COUNT,
    NUMBER_KEYWORDS,
    NUMBER_TYPES,
    OBJECT_TYPES,
    TEXT_KEYWORDS,
    NameDemand,
    Requirement,
    ValueShape,
    count_described_items,
    follow_reference,
    list_rest_keywords,
    make_rest_rule,
)
from cleats.contract.pointer import join_pointer

ALL_TYPES: Final = frozenset(JSON_TYPES)


class ViolationOption(NamedTuple):
    """One way to violate a schema, and the pointer to what is violated."""

    pointer: str
    apply: Callable[[], None]


class ViolationLister:
    """Lists violations for one value, whose shape they change when they are applied."""

    def __init__(self, shape: ValueShape, waiting: list[Requirement], target: str) -> None:
        self._shape = shape
        self._waiting = waiting
        self._target = target

    def list_options(self, goal: Requirement, schema: dict[str, Any]) -> Iterator[ViolationOption]:
        """Yield every way to violate a schema; applying one changes the shape, or adds requirements."""
        yield from self._list_scalar_options(goal, schema)
        yield from self._list_branch_options(goal, schema)
        yield from self._list_object_options(goal, schema)
        yield from self._list_array_options(goal, schema)

    def _list_scalar_options(self, goal: Requirement, schema: dict[str, Any]) -> Iterator[ViolationOption]:
        if "type" in schema:
            lost = set(list_types(schema)) - ({"integer"} if "number" not in list_types(schema) else set())
            others = ALL_TYPES - lost - (NUMBER_TYPES if "number" in lost else set())
            yield ViolationOption(f"{goal.pointer}/type", partial(self._violate_check, "type", schema["type"], others))
        for keyword in ("const", "enum"):
            if keyword in schema:
                constants = [schema["const"]] if keyword == "const" else schema["enum"]
                yield ViolationOption(
                    f"{goal.pointer}/{keyword}", partial(self._violate_check, "enum", constants, ALL_TYPES)
                )
        for keywords, types in ((NUMBER_KEYWORDS, NUMBER_TYPES), (TEXT_KEYWORDS, frozenset({"string"}))):
            for keyword in keywords:
                if keyword in schema:
                    apply = partial(self._violate_check, keyword, schema[keyword], types)
                    yield ViolationOption(f"{goal.pointer}/{keyword}", apply)

    def _list_branch_options(self, goal: Requirement, schema: dict[str, Any]) -> Iterator[ViolationOption]:
        if isinstance(schema.get("$ref"), str):
            target = follow_reference(goal, schema["$ref"])
            yield ViolationOption(target.pointer, partial(self._add, target))
        for index in range(len(schema.get("allOf", []))):
            part = goal.descend("allOf", index)
            yield ViolationOption(part.pointer, partial(self._add, part))
        for keyword in ("anyOf", "oneOf"):
            if schema.get(keyword):
                parts = [goal.descend(keyword, index) for index in range(len(schema[keyword]))]
                yield ViolationOption(f"{goal.pointer}/{keyword}", partial(self._add, *parts))
        for one, other in combinations(range(len(schema.get("oneOf", []))), 2):
            pair = [goal.descend("oneOf", index, holds=True) for index in (one, other)]
            yield ViolationOption(f"{goal.pointer}/oneOf", partial(self._add, *pair))
        if "not" in schema:
            yield ViolationOption(f"{goal.pointer}/not", partial(self._add, goal.descend("not", holds=True)))
        for keyword in ("then", "else") if "if" in schema else ():
            if keyword in schema:
                condition = goal.descend("if", holds=keyword == "then")
                part = goal.descend(keyword)
                yield ViolationOption(part.pointer, partial(self._add, condition, part))
        for name in schema.get("dependentSchemas", {}):
            part = goal.descend("dependentSchemas", name)
            yield ViolationOption(part.pointer, partial(self._depend, name, part))

    def _add(self, *requirements: Requirement) -> None:
        self._waiting += requirements

    def _violate_check(self, keyword: str, value: Any, types: frozenset[str]) -> None:
        self._shape.limit_types(types)
        self._shape.checks.append((keyword, value, False))

    def _depend(self, name: str, requirement: Requirement) -> None:
        self._require(name)
        self._add(requirement)

    def _demand_items(self, index: int, *requirements: Requirement) -> None:
        self._shape.limit_types(ARRAY_TYPES)
        self._shape.item_demands += ((index, requirement) for requirement in requirements)

    def _require(self, name: str, requirement: Requirement | None = None) -> None:
        self._shape.limit_types(OBJECT_TYPES)
        self._shape.required.add(name)
        if requirement is not None:
            self._shape.properties.setdefault(name, []).append(requirement)

    def _remove(self, name: str, because_of: str | None = None) -> None:
        self._shape.limit_types(OBJECT_TYPES)
        self._shape.absent.add(name)
        if because_of is not None:
            self._shape.required.add(because_of)

    def _demand_name(self, demand: NameDemand) -> None:
        self._shape.limit_types(OBJECT_TYPES)
        self._shape.name_demands.append(demand)

    def _limit_count(self, types: frozenset[str], least: int, most: int) -> None:
        shape = self._shape
        shape.limit_types(types)
        shape.least_count, shape.most_count = max(shape.least_count, least), min(shape.most_count, most)

    def _list_object_options(self, goal: Requirement, schema: dict[str, Any]) -> Iterator[ViolationOption]:
        for name in schema.get("properties", {}):
            part = goal.descend("properties", name)
            yield ViolationOption(part.pointer, partial(self._require, name, part))
        for name in schema.get("required", []):
            pointer = goal.pointer + join_pointer(("properties", name))
            yield ViolationOption(pointer, partial(self._remove, name))
        for pattern in schema.get("patternProperties", {}):
            part = goal.descend("patternProperties", pattern)
            demand = NameDemand(part, pattern=pattern)
            yield ViolationOption(part.pointer, partial(self._demand_name, demand))
        for keyword in list_rest_keywords(schema):
            rule = make_rest_rule(goal, keyword)
            demand = NameDemand(rule.requirement, outside=rule)
            # A property that is gone has no pointer of its own here: its name is one that is not listed.
            pointer = (
                goal.pointer
                if is_on_the_way(f"{goal.pointer}/properties", self._target)
                else f"{goal.pointer}/{keyword}"
            )
            yield ViolationOption(pointer, partial(self._demand_name, demand))
        if "propertyNames" in schema:
            part = goal.descend("propertyNames")
            yield ViolationOption(part.pointer, partial(self._demand_name, NameDemand(None, name_requirement=part)))
        for name, others in schema.get("dependentRequired", {}).items():
            for other in others:
                pointer = f"{goal.pointer}/dependentRequired"
                yield ViolationOption(pointer, partial(self._remove, other, because_of=name))
        yield from self._list_count_options(goal, schema, "Properties", OBJECT_TYPES)

    def _list_count_options(
        self, goal: Requirement, schema: dict[str, Any], noun: str, types: frozenset[str]
    ) -> Iterator[ViolationOption]:
        if schema.get(f"min{noun}"):
            most = int(schema[f"min{noun}"]) - 1
            yield ViolationOption(f"{goal.pointer}/min{noun}", partial(self._limit_count, types, 0, most))
        if f"max{noun}" in schema:
            least = int(schema[f"max{noun}"]) + 1
            yield ViolationOption(f"{goal.pointer}/max{noun}", partial(self._limit_count, types, least, MAX_COUNT))

    def _list_array_options(self, goal: Requirement, schema: dict[str, Any]) -> Iterator[ViolationOption]:
        prefix = len(schema.get("prefixItems", []))
        for index in range(prefix):
            part = goal.descend("prefixItems", index)
            yield ViolationOption(part.pointer, partial(self._demand_items, index, part))
        if "items" in schema:
            yield ViolationOption(f"{goal.pointer}/items", partial(self._demand_items, prefix, goal.descend("items")))
        elif "unevaluatedItems" in schema:
            first = count_described_items(goal)
            yield ViolationOption(
                f"{goal.pointer}/unevaluatedItems", partial(self._demand_items, first, goal.descend("unevaluatedItems"))
            )
        if "contains" in schema:
            yield ViolationOption(f"{goal.pointer}/contains", partial(self._avoid_items, goal.descend("contains")))
        if "maxContains" in schema:
            parts = [goal.descend("contains", holds=True)] * min(int(schema["maxContains"]) + 1, 20)
            yield ViolationOption(f"{goal.pointer}/maxContains", partial(self._demand_items, 0, *parts))
        if schema.get("uniqueItems"):
            yield ViolationOption(f"{goal.pointer}/uniqueItems", self._repeat_items)
        yield from self._list_count_options(goal, schema, "Items", ARRAY_TYPES)

    def _avoid_items(self, requirement: Requirement) -> None:
        self._shape.limit_types(ARRAY_TYPES)
        self._shape.item_rules.append((0, None, requirement))

    def _repeat_items(self) -> None:
        self._limit_count(ARRAY_TYPES, 2, MAX_COUNT)
        self._shape.has_duplicates = True


def is_on_the_way(pointer: str, target: str) -> bool:
    """Return True if one of two pointers leads to the other."""
    return f"{target}/".startswith(f"{pointer}/") or pointer.startswith(f"{target}/")

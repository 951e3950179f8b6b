"""Expansion of the schemas that a value has to fit or to violate into its shape.

Every keyword either has to hold or is the one that the value violates. Where there is a choice (a
branch, a keyword to violate), it is made at random; a choice that contradicts another one is found
when the value is built, or when it is validated, and the caller tries again.
"""

import random
from typing import Any, Final

from cleats.contract.compat.keywords import JSON_TYPES, list_types
from cleats.contract.compat.value_goals import (
    NUMBER_KEYWORDS,
    NUMBER_TYPES,
    TEXT_KEYWORDS,
    DeadEndError,
    Requirement,
    ValueShape,
    count_described_items,
    follow_reference,
    list_rest_keywords,
    make_rest_rule,
)
from cleats.contract.compat.value_violations import ViolationLister, is_on_the_way

TARGET_CHANCE: Final = 0.9
"""How often a choice follows the pointer to the change, if one of its options does."""

MAX_EXPANSIONS: Final = 60
"""The number of schemas that are expanded for one value: references can lead back to where they are."""


class GoalExpander:
    """Expands requirements about one value into its shape."""

    def __init__(self, rng: random.Random, target: str) -> None:
        self._rng = rng
        self._target = target
        self._shape = ValueShape()
        self._waiting: list[Requirement] = []

    def expand(self, requirements: list[Requirement]) -> ValueShape:
        """Return a shape that fits the requirements.

        Raises:
            DeadEndError: The requirements contradict each other, at least with the choices made.
        """
        self._waiting = list(requirements)
        for _ in range(MAX_EXPANSIONS):
            if not self._waiting:
                return self._shape
            self._expand_one(self._waiting.pop())
        raise DeadEndError

    def _expand_one(self, requirement: Requirement) -> None:
        if isinstance(requirement.schema, bool):
            if requirement.schema is not requirement.holds:
                raise DeadEndError
        elif requirement.holds:
            self._satisfy(requirement, requirement.schema)
        else:
            self._violate(requirement, requirement.schema)

    def _add(self, requirement: Requirement) -> None:
        self._waiting.append(requirement)

    # Keywords that hold

    def _satisfy(self, goal: Requirement, schema: dict[str, Any]) -> None:
        shape = self._shape
        if "type" in schema:
            shape.limit_types(_expand_types(list_types(schema)))
            if "integer" in list_types(schema) and "number" not in list_types(schema):
                shape.checks.append(("type", [name for name in JSON_TYPES if name != "number"], True))
        for constants in ([schema["const"]] if "const" in schema else None, schema.get("enum")):
            if constants is not None:
                shape.constants = constants if shape.constants is None else shape.constants + constants
                shape.checks.append(("enum", constants, True))
        shape.checks += [
            (keyword, schema[keyword], True) for keyword in (*NUMBER_KEYWORDS, *TEXT_KEYWORDS) if keyword in schema
        ]
        self._satisfy_branches(goal, schema)
        self._satisfy_object(goal, schema)
        self._satisfy_array(goal, schema)

    def _satisfy_branches(self, goal: Requirement, schema: dict[str, Any]) -> None:
        if isinstance(schema.get("$ref"), str):
            self._add(follow_reference(goal, schema["$ref"]))
        for index in range(len(schema.get("allOf", []))):
            self._add(goal.descend("allOf", index))
        if schema.get("anyOf"):
            self._add(goal.descend("anyOf", self._rng.randrange(len(schema["anyOf"]))))
        if schema.get("oneOf"):
            chosen = self._rng.randrange(len(schema["oneOf"]))
            for index in range(len(schema["oneOf"])):
                self._add(goal.descend("oneOf", index, holds=index == chosen))
        if "not" in schema:
            self._add(goal.descend("not", holds=False))
        if "if" in schema:
            branch = self._rng.choice(("then", "else"))
            self._add(goal.descend("if", holds=branch == "then"))
            if branch in schema:
                self._add(goal.descend(branch))

    def _satisfy_object(self, goal: Requirement, schema: dict[str, Any]) -> None:
        shape = self._shape
        for name in schema.get("properties", {}):
            shape.properties.setdefault(name, []).append(goal.descend("properties", name))
        shape.required.update(schema.get("required", []))
        for pattern in schema.get("patternProperties", {}):
            shape.pattern_rules.append((pattern, goal.descend("patternProperties", pattern)))
        shape.rest_rules += (make_rest_rule(goal, keyword) for keyword in list_rest_keywords(schema))
        if "propertyNames" in schema:
            shape.name_rules.append(goal.descend("propertyNames"))
        shape.dependents += schema.get("dependentRequired", {}).items()
        for name in schema.get("dependentSchemas", {}):
            if name in shape.required or self._rng.random() < 0.5:
                self._add(goal.descend("dependentSchemas", name))
            else:
                shape.absent.add(name)
        if "object" in shape.types:
            shape.least_count = max(shape.least_count, schema.get("minProperties", 0))
            shape.most_count = min(shape.most_count, schema.get("maxProperties", shape.most_count))

    def _satisfy_array(self, goal: Requirement, schema: dict[str, Any]) -> None:
        shape = self._shape
        prefix = len(schema.get("prefixItems", []))
        shape.item_rules += ((index, index + 1, goal.descend("prefixItems", index)) for index in range(prefix))
        if "items" in schema:
            shape.item_rules.append((prefix, None, goal.descend("items")))
        elif "unevaluatedItems" in schema:
            shape.item_rules.append((count_described_items(goal), None, goal.descend("unevaluatedItems")))
        if "contains" in schema:
            count = int(schema.get("minContains", 1))
            shape.item_demands += [(0, goal.descend("contains"))] * min(count, 5)
        shape.is_unique |= bool(schema.get("uniqueItems"))
        if "array" in shape.types and ("minItems" in schema or "maxItems" in schema):
            shape.least_count = max(shape.least_count, schema.get("minItems", 0))
            shape.most_count = min(shape.most_count, schema.get("maxItems", shape.most_count))

    def _violate(self, goal: Requirement, schema: dict[str, Any]) -> None:
        options = list(ViolationLister(self._shape, self._waiting, self._target).list_options(goal, schema))
        if not options:
            raise DeadEndError
        on_the_way = [option for option in options if is_on_the_way(option.pointer, self._target)]
        follows_target = on_the_way and self._target and self._rng.random() < TARGET_CHANCE
        self._rng.choice(on_the_way if follows_target else options).apply()


def _expand_types(types: list[str]) -> frozenset[str]:
    return frozenset(types) | (NUMBER_TYPES if not NUMBER_TYPES.isdisjoint(types) else frozenset())

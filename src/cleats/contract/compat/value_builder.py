"""Values built to order: accepted by one schema, refused by another, at a place in it."""

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from cleats.contract.compat.goal_expander import GoalExpander
from cleats.contract.compat.keywords import Schema, encode_canonical
from cleats.contract.compat.patterns import UnsupportedPatternError, find_text
from cleats.contract.compat.sample_pool import SamplePool
from cleats.contract.compat.value_goals import DeadEndError, NameDemand, Requirement, ValueShape
from cleats.contract.pointer import split_pointer

MAX_BUILT_DEPTH: Final = 8
"""The nesting depth of values; recursive schemas would never end."""

MAX_BUILT_COUNT: Final = 200
"""Properties or items of a value; more would be unreadable."""

OPTIONAL_NAME_CHANCE: Final = 0.1
"""How often a property is set that nothing asks for."""

LATER_ITEM_CHANCE: Final = 0.3
"""How often an item that is asked for is put one place later."""

FIRST_SEED: Final = 7
"""Values have to be the same in every run, so the choices are drawn from a fixed seed."""


class ValueBuilder:
    """Builds values that `small` accepts and `large` refuses. Callers have to validate them."""

    def __init__(self, small: Schema, large: Schema, pool: SamplePool) -> None:
        self._requirements = [Requirement(small, small, holds=True), Requirement(large, large, holds=False)]
        self._pool = pool
        self._rng = random.Random(FIRST_SEED)  # noqa: S311 - not for secrets
        self._target = ""

    def build_values(self, target: str, attempts: int) -> Iterator[Any]:
        """Yield values that are refused at a pointer into `large`, as far as the choices allow."""
        self._target = target
        for _ in range(attempts):
            try:
                yield self._build(self._requirements, 0)
            except DeadEndError:
                continue

    def _build(self, requirements: Sequence[Requirement], depth: int) -> Any:
        if depth > MAX_BUILT_DEPTH:
            raise DeadEndError
        # The violated schemas come first: they decide about the type.
        ordered = sorted(requirements, key=lambda requirement: not requirement.holds)
        shape = GoalExpander(self._rng, self._target).expand(ordered)
        if shape.constants is not None:
            return self._pick([value for value in shape.constants if _fits(value, shape)])
        types = sorted(shape.types - ({"integer"} if "number" in shape.types else set()))
        # What is asked of an object or an array is usually the point of the change.
        if shape.required or shape.name_demands:
            types = [name for name in types if name == "object"] or types
        elif shape.item_demands or shape.has_duplicates:
            types = [name for name in types if name == "array"] or types
        kind = self._rng.choice(types)
        if kind == "object":
            return self._build_object(shape, depth)
        if kind == "array":
            return self._build_array(shape, depth)
        return self._build_scalar(shape, kind)

    def _pick(self, values: Sequence[Any]) -> Any:
        if not values:
            raise DeadEndError
        # Simple values come first and are more likely.
        return values[min(self._rng.randrange(len(values)), self._rng.randrange(len(values)))]

    # Scalars

    def _build_scalar(self, shape: ValueShape, kind: str) -> Any:
        if kind == "null":
            candidates: Sequence[Any] = [None]
        elif kind == "boolean":
            candidates = [True, False]
        elif kind == "string":
            candidates = [*self._pool.texts, *_list_long_texts(shape), *_list_pattern_texts(shape)]
        else:
            candidates = [*self._pool.numbers, *_list_steps(shape)]
        return self._pick([value for value in candidates if _fits(value, shape)])

    # Objects

    def _build_object(self, shape: ValueShape, depth: int) -> dict[str, Any]:
        requirements: dict[str, list[Requirement]] = {name: [] for name in sorted(shape.required)}
        for demand in shape.name_demands:
            name = self._choose_name(shape, demand)
            requirements.setdefault(name, []).extend(filter(None, [demand.requirement]))
        for name in shape.properties:
            if self._rng.random() < OPTIONAL_NAME_CHANCE and name not in shape.absent:
                requirements.setdefault(name, [])
        for name, others in shape.dependents:
            if name in requirements:
                for other in others:
                    requirements.setdefault(other, [])
        self._add_fillers(shape, requirements)
        if shape.absent & requirements.keys() or len(requirements) > shape.most_count:
            raise DeadEndError
        return {
            name: self._build([*demanded, *_list_name_requirements(shape, name)], depth + 1)
            for name, demanded in requirements.items()
        }

    def _add_fillers(self, shape: ValueShape, requirements: dict[str, list[Requirement]]) -> None:
        """Add properties until there are enough."""
        for name in (*self._pool.names, *(f"other{index}" for index in range(MAX_BUILT_COUNT))):
            if len(requirements) >= shape.least_count:
                return
            if name not in shape.absent and self._is_allowed_name(shape, name):
                requirements.setdefault(name, [])
        raise DeadEndError

    def _is_allowed_name(self, shape: ValueShape, name: str) -> bool:
        is_refused = any(item.schema is False and item.holds for item in _list_name_requirements(shape, name))
        return not is_refused and all(_accepts(rule.schema, name) for rule in shape.name_rules)

    def _choose_name(self, shape: ValueShape, demand: NameDemand) -> str:
        names = [*split_pointer(self._target)[-1:], *self._pool.names, *self._pool.texts, "other"]
        if demand.pattern is not None:
            names = [name for name in names if _matches(demand.pattern, name)]
        if demand.outside is not None:
            listed, patterns, _ = demand.outside
            names = [name for name in names if name not in listed and not any(_matches(p, name) for p in patterns)]
        if demand.name_requirement is not None:
            names = [name for name in names if not _accepts(demand.name_requirement.schema, name)]
        allowed = [name for name in names if name not in shape.absent and self._is_allowed_name(shape, name)]
        return str(self._pick(allowed))

    # Arrays

    def _build_array(self, shape: ValueShape, depth: int) -> list[Any]:
        demanded: dict[int, list[Requirement]] = {}
        for index, requirement in shape.item_demands:
            place = index
            # The first items often have schemas of their own, which the item might not fit.
            while self._rng.random() < (0.9 if place in demanded else LATER_ITEM_CHANCE):
                place += 1
            demanded.setdefault(place, []).append(requirement)
        length = max([shape.least_count, *(index + 1 for index in demanded)])
        if length < shape.most_count and self._rng.random() < OPTIONAL_NAME_CHANCE:
            length += 1
        if length > min(shape.most_count, MAX_BUILT_COUNT):
            raise DeadEndError
        items: list[Any] = []
        for index in range(length):
            if shape.has_duplicates and index == length - 1 and items:
                items.append(items[-1])
            else:
                items.append(self._build_item(shape, index, demanded.get(index, []), items, depth))
        return items

    def _build_item(
        self, shape: ValueShape, index: int, demanded: list[Requirement], items: list[Any], depth: int
    ) -> Any:
        rules = [item for first, end, item in shape.item_rules if first <= index and (end is None or index < end)]
        taken = {encode_canonical(item) for item in items} if shape.is_unique else set()
        for _ in range(6):
            item = self._build([*demanded, *rules], depth + 1)
            if encode_canonical(item) not in taken:
                return item
        raise DeadEndError


def _list_name_requirements(shape: ValueShape, name: str) -> list[Requirement]:
    """Return what is asked of the value of a property."""
    requirements = list(shape.properties.get(name, []))
    requirements += [item for pattern, item in shape.pattern_rules if _matches(pattern, name)]
    requirements += [
        rule.requirement
        for rule in shape.rest_rules
        if name not in rule.listed and not any(_matches(pattern, name) for pattern in rule.patterns)
    ]
    return requirements


def _fits(value: Any, shape: ValueShape) -> bool:
    return all(_accepts({keyword: limit}, value) is holds for keyword, limit, holds in shape.checks)


def _accepts(schema: Schema, value: Any) -> bool:
    return bool(_compile_check(encode_canonical(schema)).is_valid(value))


@lru_cache(maxsize=512)
def _compile_check(encoded: str) -> Any:
    try:
        return jsonschema_rs.validator_for(encoded, validate_formats=True, offline=True)
    except ValueError:
        raise DeadEndError from None


def _matches(pattern: str, name: str) -> bool:
    return _accepts({"pattern": pattern}, name)


def _collect_limits(shape: ValueShape, *keywords: str) -> list[Any]:
    return [limit for keyword, limit, _ in shape.checks if keyword in keywords]


def _list_long_texts(shape: ValueShape) -> Iterator[str]:
    for length in _collect_limits(shape, "minLength", "maxLength"):
        yield from ("a" * int(size) for size in (length, length + 1, length - 1) if size >= 0)


def _list_pattern_texts(shape: ValueShape) -> Iterator[str]:
    """Yield a text that matches what has to match, and nothing of what must not; also longer ones."""
    wanted = [limit for keyword, limit, holds in shape.checks if keyword == "pattern" and holds]
    unwanted = [limit for keyword, limit, holds in shape.checks if keyword == "pattern" and not holds]
    if not wanted and not unwanted:
        return
    lengths = [int(limit) for limit in _collect_limits(shape, "minLength", "maxLength")]
    for length in dict.fromkeys((0, *lengths, *(size + 1 for size in lengths))):
        try:
            text = find_text(tuple(wanted), tuple(unwanted), length)
        except UnsupportedPatternError:
            continue
        if text is not None:
            yield text


def _list_steps(shape: ValueShape) -> Iterator[float]:
    """Yield multiples beside the limits, one for each `multipleOf`, and their products."""
    steps = _collect_limits(shape, "multipleOf")
    product: float = 1
    for step in steps:
        product *= step
    limits = [0, *_collect_limits(shape, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")]
    for limit in limits:
        yield from (limit, limit - 1, limit + 1, limit + 0.5, limit - 0.5)
        for step in dict.fromkeys((*steps, product)):
            nearest = limit // step * step
            yield from (nearest + step * count for count in (0, 1, -1, 2, 3, 5, 7))

"""Values that a schema might accept, made to tell two schemas apart."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import Any, Final

import jsonschema_rs

from cleats.contract.compat.keywords import (
    Schema,
    encode_canonical,
    list_types,
    resolve_reference,
)
from cleats.contract.compat.sample_pool import SAMPLE_NUMBERS, SAMPLE_TEXTS, SamplePool, drop_duplicates

MAX_VALUES_PER_LOCATION: Final = 100
"""The number of values tried for one location in a schema."""

MAX_OBJECT_DEPTH: Final = 6
"""The nesting depth of sample objects; recursive schemas would never end."""

MAX_FILLERS: Final = 20
"""The number of properties added to a sample that has too few."""


class SampleMaker:
    """Makes values that a schema might accept. Callers have to validate them.

    The schema is read together with the one it is compared with (`counterpart`, as far as that has
    the same shape): where both are equal, one value is as good as another.
    """

    def __init__(self, small: Schema, large: Schema, pool: SamplePool) -> None:
        self._root = small
        self._other_root = large
        self._pool = pool
        self._values_by_location: dict[tuple[int, int, int], tuple[Schema, Schema, Sequence[Any]]] = {}

    def list_values(self, schema: Schema, counterpart: Schema, depth: int = MAX_OBJECT_DEPTH) -> Sequence[Any]:
        """Return values for a location in the schema, simple ones first."""
        if schema is False or depth < 0:
            return []
        if schema is True:
            return [*SAMPLE_TEXTS[:2], *SAMPLE_NUMBERS[:2], True, None, [], {}]
        # Computed once per location and depth: a recursive schema reaches its parts repeatedly.
        # The schemas are stored with the values, so that no other object can reuse their ids.
        key = (id(schema), id(counterpart), depth)
        if key not in self._values_by_location:
            self._values_by_location[key] = (schema, counterpart, self._make_values(schema, counterpart, depth))
        return self._values_by_location[key][2]

    def _make_values(self, schema: dict[str, Any], counterpart: Schema, depth: int) -> Sequence[Any]:
        flat_schema, flat_counterpart = self._flatten_schema(schema, self._root), _as_dict(counterpart)
        flat_counterpart = self._flatten_schema(flat_counterpart, self._other_root)
        value_limit = (
            2
            if depth < MAX_OBJECT_DEPTH and encode_canonical(flat_schema) == encode_canonical(flat_counterpart)
            else MAX_VALUES_PER_LOCATION
        )
        series = (
            self._make_typed_values(flat_schema, flat_counterpart, kind, depth) for kind in list_types(flat_schema)
        )
        values = chain(self._list_constants(flat_schema), _interleave(*series))
        return list(islice(drop_duplicates(values), value_limit * 20 if depth == MAX_OBJECT_DEPTH else value_limit))

    def _flatten_schema(self, schema: dict[str, Any], root: Schema, depth: int = MAX_OBJECT_DEPTH) -> dict[str, Any]:
        """Follow references and merge conjunctions and conditions, as far as possible."""
        if "if" in schema and "anyOf" not in schema and "oneOf" not in schema:
            schema = _convert_condition(schema)
        if schema.keys().isdisjoint(("$ref", "allOf")):
            return schema
        flat = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        referenced_schema = resolve_reference(root, schema["$ref"]) if "$ref" in schema else True
        for part in (referenced_schema, *schema.get("allOf", [])):
            if isinstance(part, dict) and depth > 0:
                flat = _merge_schemas(flat, self._flatten_schema(part, root, depth - 1))
        return flat

    def _list_constants(self, schema: dict[str, Any]) -> Iterator[Any]:
        if "const" in schema:
            yield schema["const"]
        yield from schema.get("enum", [])

    def _make_typed_values(
        self, schema: dict[str, Any], counterpart: dict[str, Any], kind: str, depth: int
    ) -> Iterator[Any]:
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                yield from self._make_branch_values(keyword, schema, counterpart, kind, depth)
                return
        makers: dict[str, Callable[[], Iterable[Any]]] = {
            "object": lambda: self._make_objects(schema, counterpart, depth),
            "array": lambda: self._make_arrays(schema, counterpart, depth),
            "string": lambda: self._pool.texts,
            "integer": lambda: [number for number in self._pool.numbers if number == int(number)],
            "number": lambda: self._pool.numbers,
            "boolean": lambda: [True, False],
            "null": lambda: [None],
        }
        is_valid = _make_checker(schema)
        yield from (value for value in makers.get(kind, list)() if is_valid(value))

    def _make_branch_values(
        self, keyword: str, schema: dict[str, Any], counterpart: dict[str, Any], kind: str, depth: int
    ) -> Iterator[Any]:
        rest = {key: value for key, value in schema.items() if key != keyword}
        known_branches = {encode_canonical(branch) for branch in counterpart.get(keyword, [])}
        new_branches_first = sorted(schema[keyword], key=lambda branch: encode_canonical(branch) in known_branches)
        series = []
        for branch in new_branches_first if depth > 0 else ():
            if branch is False:
                continue
            merged = _merge_schemas(rest, self._flatten_schema(_as_dict(branch), self._root))
            if kind in list_types(merged):
                series.append(self._make_typed_values(merged, {}, kind, depth - 1))
        return _interleave(*series)

    def _make_objects(
        self, schema: dict[str, Any], counterpart: dict[str, Any], depth: int
    ) -> Iterator[dict[str, Any]]:
        counterpart_properties = _as_dict(counterpart.get("properties"))
        counterpart_rest = counterpart.get("additionalProperties", True)
        values_by_name = {
            name: self.list_values(part, counterpart_properties.get(name, counterpart_rest), depth - 1)
            for name, part in schema.get("properties", {}).items()
        }
        unlisted_values = self._list_unlisted_values(schema, counterpart_rest, depth)
        base: dict[str, Any] = {}
        for name in schema.get("required", []):
            values = values_by_name.get(name) or unlisted_values
            if not values:
                return
            base[name] = values[0]
        yield base
        objects = _interleave(
            *(_set_property(base, name, values) for name, values in values_by_name.items()),
            self._make_objects_with_unlisted_names(base, schema, unlisted_values),
        )
        fillers = {f"other{index}": value for index, value in enumerate(unlisted_values[:1] * _get_minimum(schema))}
        for sample in objects:
            yield sample
            if len(sample) < _get_minimum(schema):
                yield {**fillers, **sample}
        yield base | {name: values[0] for name, values in values_by_name.items() if values}

    def _list_unlisted_values(self, schema: dict[str, Any], counterpart_rest: Schema, depth: int) -> list[Any]:
        """Return values for names that the schema does not list."""
        unlisted_schemas = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties", True)]
        return list(
            chain.from_iterable(
                self.list_values(unlisted_schema, counterpart_rest, depth - 1) for unlisted_schema in unlisted_schemas
            )
        )

    def _make_objects_with_unlisted_names(
        self, base: dict[str, Any], schema: dict[str, Any], values: Sequence[Any]
    ) -> Iterator[dict[str, Any]]:
        """Yield objects with names that the schema does not list, one and many."""
        unlisted_names = [name for name in self._pool.names if name not in schema.get("properties", {})]
        if not values:
            return
        for name in [*unlisted_names, *self._pool.texts[:8]]:
            yield from _set_property(base, name, values)
        for count in self._pool.lengths:
            yield {**base, **{f"other{index}": values[0] for index in range(count - len(base))}}

    def _make_arrays(self, schema: dict[str, Any], counterpart: dict[str, Any], depth: int) -> Iterator[list[Any]]:
        counterpart_items = counterpart.get("items", True)
        pairs = zip_longest(schema.get("prefixItems", []), counterpart.get("prefixItems", []))
        prefix = [
            self.list_values(part, counterpart_items if other is None else other, depth - 1)
            for part, other in pairs
            if part is not None
        ]
        items = schema.get("items", True)
        items = items if isinstance(items, dict | bool) else True
        rest = self.list_values(items, counterpart_items, depth - 1)
        first_items = [values[0] for values in prefix if values]
        yield []
        yield first_items
        yield from _interleave(
            self._make_long_arrays(first_items, rest),
            ([*first_items, value] for value in rest),
            (
                [*first_items[:index], value, *first_items[index + 1 :]]
                for index, item_values in enumerate(prefix)
                for value in item_values
            ),
        )

    def _make_long_arrays(self, first_items: list[Any], rest: Sequence[Any]) -> Iterator[list[Any]]:
        """Yield arrays of every length that is a limit, with different and with equal items."""
        for length in self._pool.lengths if rest else ():
            missing = length - len(first_items)
            yield [*first_items, *(rest[index % len(rest)] for index in range(missing))]
            yield [*first_items, *(rest[0] for _ in range(missing))]


def _convert_condition(schema: dict[str, Any]) -> dict[str, Any]:
    """Write a condition as two alternatives: what then has to hold, and what otherwise."""
    rest = {key: value for key, value in schema.items() if key not in {"if", "then", "else"}}
    condition, consequence, otherwise = (_as_dict(schema.get(keyword, {})) for keyword in ("if", "then", "else"))
    return {**rest, "anyOf": [_merge_schemas(condition, consequence), otherwise]}


def _set_property(base: dict[str, Any], name: str, values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    return ({**base, name: value} for value in values)


def _merge_schemas(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Merge two schemas roughly: in a conflict the narrower type or the second keyword wins."""
    merged = {**first, **second}
    if "properties" in first and "properties" in second:
        shared = first["properties"].keys() & second["properties"].keys()
        for name in shared:
            subschemas = [first["properties"][name], second["properties"][name]]
            merged["properties"] = {**merged["properties"], name: {"allOf": subschemas}}
    if "required" in first and "required" in second:
        merged["required"] = [*first["required"], *second["required"]]
    if "type" in first and "type" in second:
        merged["type"] = [
            type_name for type_name in list_types(first) if type_name in list_types(second)
        ] or list_types(second)
    return merged


def _make_checker(schema: dict[str, Any]) -> Callable[[Any], bool]:
    """Return a check of the simple keywords; the caller checks references and branches."""
    checked_keywords = {"minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum"}
    checked_keywords |= {"exclusiveMaximum", "multipleOf", "enum", "const", "format"}
    simple_schema = {key: value for key, value in schema.items() if key in checked_keywords}
    try:
        return jsonschema_rs.validator_for(simple_schema, validate_formats=True, offline=True).is_valid
    except ValueError:
        return lambda _: True


def _get_minimum(schema: dict[str, Any]) -> int:
    """Return the least number of properties, as far as a sample is that large."""
    return min(int(schema.get("minProperties", 0)), MAX_FILLERS)


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _interleave(*series: Iterable[Any]) -> Iterator[Any]:
    """Yield one value of each series in turn, so that no long series starves the others."""
    iterators = [iter(values) for values in series]
    while iterators:
        for values in list(iterators):
            try:
                yield next(values)
            except StopIteration:
                iterators.remove(values)

"""Values that a schema might accept, made to tell two schemas apart."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, zip_longest
from typing import Any, Final

import jsonschema_rs

from cleats.contract.compat.keywords import (
    Schema,
    encode_canonical,
    list_announced_names,
    list_types,
    resolve_reference,
    walk_schemas,
)
from cleats.contract.compat.patterns import UnsupportedPatternError, find_unmatched_text

MAX_VALUES_PER_LOCATION: Final = 100
"""The number of values tried for one location in a schema."""

MAX_COMPARED_PATTERNS: Final = 40
"""The number of pairs of patterns for which a text is made that tells them apart."""

MAX_MULTIPLES: Final = 8
"""The number of multiples of a `multipleOf` that are tried."""

MAX_OBJECT_DEPTH: Final = 6
"""The nesting depth of sample objects; recursive schemas would never end."""

MAX_FILLERS: Final = 20
"""The number of properties added to a sample that has too few."""

MAX_SAMPLE_LENGTH: Final = 2000
"""In characters or items: a higher limit is not tried, since its witness would be unreadable."""

SAMPLE_TEXTS: Final = (
    *("a", "", "A", "0", "a-b", "a_b", "a.b", "a/b", "a b", "aa", "é", "a1", "1a", "-", "/a"),
    *("2020-01-01", "2020-01-01T00:00:00Z", "00:00:00Z", "P1D", "https://example.org/"),
    *("a@example.org", "example.org", "127.0.0.1", "::1", "00000000-0000-4000-8000-000000000000"),
)
"""One of each kind that patterns and formats commonly require."""

SAMPLE_NUMBERS: Final = (0, 1, -1, 2, 0.5, 10, 1000000)


class SampleMaker:
    """Makes values that a schema might accept. Callers have to validate them.

    The schema is read together with the one it is compared with (`counterpart`, as far as that has
    the same shape): where both are equal, one value is as good as another.
    """

    def __init__(self, small: Schema, large: Schema) -> None:
        self._root = small
        self._other_root = large
        parts = [part for root in (small, large) for part in walk_schemas(root) if isinstance(part, dict)]
        limits = [value for part in parts for value in part.values() if _is_number(value)]
        steps = [part["multipleOf"] for part in parts if _is_number(part.get("multipleOf"))]
        multiples = (step * count for step in steps for count in range(1, MAX_MULTIPLES + 1))
        self._numbers = _list_distinct(
            chain(SAMPLE_NUMBERS, *((number, number - 1, number + 1) for number in limits), multiples)
        )
        length_candidates = _list_distinct(
            chain(*((number + 1, number, number - 1) for number in limits), SAMPLE_NUMBERS)
        )
        self._lengths = [
            number for number in length_candidates if isinstance(number, int) and 0 <= number <= MAX_SAMPLE_LENGTH
        ]
        mentioned_values = _list_distinct(chain.from_iterable(map(_list_mentioned_values, parts)))
        texts = [*_list_pattern_texts(small, large), *(value for value in mentioned_values if isinstance(value, str))]
        long_texts = ("a" * length for length in self._lengths)
        self._texts = _list_distinct(chain(SAMPLE_TEXTS, texts, (f"{text_value}x" for text_value in texts), long_texts))
        names = (name for part in parts for name in _list_property_names(part))
        self._names = _list_distinct(chain(names, _list_pattern_names(small, large), ["other"]))
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
        return list(islice(_drop_duplicates(values), value_limit * 20 if depth == MAX_OBJECT_DEPTH else value_limit))

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
            "string": lambda: self._texts,
            "integer": lambda: [number for number in self._numbers if number == int(number)],
            "number": lambda: self._numbers,
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
        unlisted_names = [name for name in self._names if name not in schema.get("properties", {})]
        if not values:
            return
        for name in [*unlisted_names, *self._texts[:8]]:
            yield from _set_property(base, name, values)
        for count in self._lengths:
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
        for length in self._lengths if rest else ():
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


def _list_pattern_texts(small: Schema, large: Schema) -> Iterator[str]:
    """Yield texts that tell the patterns of the two schemas apart, and texts that match them."""
    return _tell_patterns_apart(*(_collect_patterns(schema, "pattern") for schema in (small, large)))


def _list_pattern_names(small: Schema, large: Schema) -> Iterator[str]:
    """Yield names that tell the patterns for properties apart."""
    return _tell_patterns_apart(*(_collect_patterns(schema, "patternProperties") for schema in (small, large)))


def _collect_patterns(schema: Schema, keyword: str) -> list[str]:
    parts = (part[keyword] for part in walk_schemas(schema) if isinstance(part, dict) and keyword in part)
    return _list_distinct(chain.from_iterable([value] if isinstance(value, str) else value for value in parts))


def _tell_patterns_apart(patterns: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    pairs = [(one, other) for one in patterns for other in others if one != other]
    pairs += [(one, other) for other, one in pairs]
    singles: list[tuple[str, str | None]] = [(one, None) for one in (*patterns, *others)]
    for one, other in islice(chain(pairs, singles), MAX_COMPARED_PATTERNS):
        with suppress(UnsupportedPatternError):
            if (text := find_unmatched_text(one, other)) is not None:
                yield text


def _list_mentioned_values(part: dict[str, Any]) -> Iterator[Any]:
    """Yield the values that a schema mentions."""
    yield from (part[keyword] for keyword in ("const", "default") if keyword in part)
    for keyword in ("enum", "examples"):
        yield from part[keyword] if isinstance(part.get(keyword), list) else []


def _list_property_names(part: dict[str, Any]) -> Iterator[str]:
    for keyword in ("properties", "dependentSchemas", "dependentRequired"):
        yield from part[keyword] if isinstance(part.get(keyword), dict) else ()
    yield from part["required"] if isinstance(part.get("required"), list) else ()
    yield from list_announced_names(part)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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


def _drop_duplicates(values: Iterable[Any]) -> Iterator[Any]:
    """Yield each value once, in the original order."""
    encoded_values = set()
    for value in values:
        if (encoded := encode_canonical(value)) not in encoded_values:
            encoded_values.add(encoded)
            yield value


def _list_distinct(values: Iterable[Any]) -> list[Any]:
    return list(_drop_duplicates(values))

"""Values that a schema might take, made from what the schemas themselves mention.

Numbers at and around each limit, texts of each length, names and constants that occur; one thing
is varied at a time. Nothing is random: the same schemas always give the same values.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

import jsonschema_rs

from cleats.contract.compat.keywords import Schema, everywhere, target, text, types

BREADTH: Final = 100
"""Values tried for one place in a schema."""

DEPTH: Final = 6
"""Objects inside objects; recursive schemas go on for ever."""

LONGEST: Final = 2000
"""Characters or items: a limit above this is not tried, its witness would be unreadable."""

TEXTS: Final = (
    *("a", "", "A", "0", "a-b", "a_b", "a.b", "a/b", "a b", "aa", "é", "a1", "1a", "-", "/a"),
    *("2020-01-01", "2020-01-01T00:00:00Z", "00:00:00Z", "P1D", "https://example.org/"),
    *("a@example.org", "example.org", "127.0.0.1", "::1", "00000000-0000-4000-8000-000000000000"),
)
"""One of each kind that patterns and formats tend to ask for."""

NUMBERS: Final = (0, 1, -1, 2, 0.5, 10, 1000000)


class Maker:
    """Makes values that a schema might take. Whoever uses them has to check.

    The schema is read beside the one it is compared with (`beside`, as far as that has the same
    shape): where both say the same, one value is as good as another.
    """

    def __init__(self, small: Schema, large: Schema) -> None:
        self._root = small
        self._other_root = large
        parts = [
            part for root in (small, large) for part in everywhere(root) if isinstance(part, dict)
        ]
        limits = [value for part in parts for value in part.values() if _is_number(value)]
        self._numbers = _distinct(chain(NUMBERS, *((n, n - 1, n + 1) for n in limits)))
        around = _distinct(chain(*((n + 1, n, n - 1) for n in limits), NUMBERS))
        self._lengths = [n for n in around if isinstance(n, int) and 0 <= n <= LONGEST]
        given = _distinct(chain.from_iterable(map(_given, parts)))
        texts = [value for value in given if isinstance(value, str)]
        grown = ("a" * length for length in self._lengths)
        self._texts = _distinct(chain(TEXTS, texts, (f"{t}x" for t in texts), grown))
        self._names = _distinct(chain((name for part in parts for name in _names(part)), ["other"]))
        self._made: dict[tuple[int, int, int], tuple[Schema, Schema, Sequence[Any]]] = {}

    def values(self, schema: Schema, beside: Schema, depth: int = DEPTH) -> Sequence[Any]:
        """Values for a place in the schema, simple ones first."""
        if schema is False or depth < 0:
            return []
        if schema is True:
            return [*TEXTS[:2], *NUMBERS[:2], True, None, [], {}]
        # Once for each place and depth: a recursive schema meets its parts again and again. The
        # schemas are kept beside the values, so that no other gets the same id.
        key = (id(schema), id(beside), depth)
        if key not in self._made:
            self._made[key] = (schema, beside, self._values(schema, beside, depth))
        return self._made[key][2]

    def _values(self, schema: dict[str, Any], beside: Schema, depth: int) -> Sequence[Any]:
        here, there = self._flat(schema, self._root), _dict(beside)
        there = self._flat(there, self._other_root)
        breadth = 2 if depth < DEPTH and text(here) == text(there) else BREADTH
        made = (self._typed(here, there, kind, depth) for kind in types(here))
        found = chain(self._listed(here), _in_turn(*made))
        return list(islice(_fresh(found), breadth * 20 if depth == DEPTH else breadth))

    def _flat(self, schema: dict[str, Any], root: Schema, depth: int = DEPTH) -> dict[str, Any]:
        """References followed and conjunctions merged, as well as that can be done."""
        if schema.keys().isdisjoint(("$ref", "allOf")):
            return schema
        flat = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        found = target(root, schema["$ref"]) if "$ref" in schema else True
        for part in (found, *schema.get("allOf", [])):
            if isinstance(part, dict) and depth > 0:
                flat = _merge(flat, self._flat(part, root, depth - 1))
        return flat

    def _listed(self, schema: dict[str, Any]) -> Iterator[Any]:
        if "const" in schema:
            yield schema["const"]
        yield from schema.get("enum", [])

    def _typed(
        self, schema: dict[str, Any], beside: dict[str, Any], kind: str, depth: int
    ) -> Iterator[Any]:
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                yield from self._branches(keyword, schema, beside, kind, depth)
                return
        makers: dict[str, Callable[[], Iterable[Any]]] = {
            "object": lambda: self._objects(schema, beside, depth),
            "array": lambda: self._arrays(schema, beside, depth),
            "string": lambda: self._texts,
            "integer": lambda: [n for n in self._numbers if n == int(n)],
            "number": lambda: self._numbers,
            "boolean": lambda: [True, False],
            "null": lambda: [None],
        }
        takes = _checker(schema)
        yield from (value for value in makers.get(kind, list)() if takes(value))

    def _branches(
        self, keyword: str, schema: dict[str, Any], beside: dict[str, Any], kind: str, depth: int
    ) -> Iterator[Any]:
        rest = {key: value for key, value in schema.items() if key != keyword}
        others = {text(branch) for branch in beside.get(keyword, [])}
        fresh_first = sorted(schema[keyword], key=lambda branch: text(branch) in others)
        made = []
        for branch in filter(_dict, fresh_first) if depth > 0 else ():
            merged = _merge(rest, self._flat(branch, self._root))
            if kind in types(merged):
                made.append(self._typed(merged, {}, kind, depth - 1))
        return _in_turn(*made)

    def _objects(
        self, schema: dict[str, Any], beside: dict[str, Any], depth: int
    ) -> Iterator[dict[str, Any]]:
        others = _dict(beside.get("properties"))
        rest = schema.get("additionalProperties", True)
        made = {
            name: self.values(part, others.get(name, False), depth - 1)
            for name, part in schema.get("properties", {}).items()
        }
        base: dict[str, Any] = {}
        for name in schema.get("required", []):
            values = made.get(name) or self.values(rest, False, depth - 1)
            if not values:
                return
            base[name] = values[0]
        yield base
        yield from _in_turn(
            *(_with(base, name, values) for name, values in made.items()),
            self._with_others(base, schema, rest, depth),
        )
        yield base | {name: values[0] for name, values in made.items() if values}

    def _with_others(
        self, base: dict[str, Any], schema: dict[str, Any], rest: Schema, depth: int
    ) -> Iterator[dict[str, Any]]:
        """Objects with names that the schema does not list, one and many."""
        free = [name for name in self._names if name not in schema.get("properties", {})]
        others = [*schema.get("patternProperties", {}).values(), rest]
        values = list(chain.from_iterable(self.values(o, False, depth - 1) for o in others))
        if not values:
            return
        for name in [*free, *self._texts[:8]]:
            yield from _with(base, name, values)
        for count in self._lengths:
            yield {**base, **{f"other{n}": values[0] for n in range(count - len(base))}}

    def _arrays(
        self, schema: dict[str, Any], beside: dict[str, Any], depth: int
    ) -> Iterator[list[Any]]:
        prefix = [self.values(part, False, depth - 1) for part in schema.get("prefixItems", [])]
        items = schema.get("items", True)
        items = items if isinstance(items, dict | bool) else True
        rest = self.values(items, beside.get("items", True), depth - 1)
        heads = [values[0] for values in prefix if values]
        yield []
        yield heads
        yield from _in_turn(
            self._long(heads, rest),
            ([*heads, value] for value in rest),
            ([*heads[:n], value, *heads[n + 1 :]] for n, vs in enumerate(prefix) for value in vs),
        )

    def _long(self, heads: list[Any], rest: Sequence[Any]) -> Iterator[list[Any]]:
        """Arrays of each length that is a limit somewhere, of different items and of equal ones."""
        for length in self._lengths if rest else ():
            missing = length - len(heads)
            yield [*heads, *(rest[n % len(rest)] for n in range(missing))]
            yield [*heads, *(rest[0] for _ in range(missing))]


def _with(base: dict[str, Any], name: str, values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    return ({**base, name: value} for value in values)


def _merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Both at once, roughly: where they clash the narrower type or the later word wins."""
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        shared = one["properties"].keys() & other["properties"].keys()
        for name in shared:
            both = [one["properties"][name], other["properties"][name]]
            merged["properties"] = {**merged["properties"], name: {"allOf": both}}
    if "required" in one and "required" in other:
        merged["required"] = [*one["required"], *other["required"]]
    if "type" in one and "type" in other:
        merged["type"] = [t for t in types(one) if t in types(other)] or types(other)
    return merged


def _checker(schema: dict[str, Any]) -> Callable[[Any], bool]:
    """What can be checked here and now; references and branches are left to the caller."""
    simple = {"minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum"}
    simple |= {"exclusiveMaximum", "multipleOf", "enum", "const", "format"}
    kept = {key: value for key, value in schema.items() if key in simple}
    try:
        return jsonschema_rs.validator_for(kept, validate_formats=True, offline=True).is_valid
    except ValueError:
        return lambda _: True


def _given(part: dict[str, Any]) -> Iterator[Any]:
    """The values that a schema mentions."""
    yield from (part[keyword] for keyword in ("const", "default") if keyword in part)
    for keyword in ("enum", "examples"):
        yield from part[keyword] if isinstance(part.get(keyword), list) else []


def _names(part: dict[str, Any]) -> Iterator[str]:
    for keyword in ("properties", "dependentSchemas", "dependentRequired"):
        yield from part[keyword] if isinstance(part.get(keyword), dict) else ()
    yield from part["required"] if isinstance(part.get("required"), list) else ()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _in_turn(*series: Iterable[Any]) -> Iterator[Any]:
    """One of each, then the next of each: no long series keeps the others from being tried."""
    waiting = [iter(values) for values in series]
    while waiting:
        for values in list(waiting):
            try:
                yield next(values)
            except StopIteration:
                waiting.remove(values)


def _fresh(values: Iterable[Any]) -> Iterator[Any]:
    """Each value once, in the order in which they come."""
    seen = set()
    for value in values:
        if (written := text(value)) not in seen:
            seen.add(written)
            yield value


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(_fresh(values))

"""Random values that a schema might accept, made from what two documents mention.

Independent of the samples of the gate: values are drawn at random along the schema, without any
idea of what tells two schemas apart.
"""

import random
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from conformance.contract.edits import list_places
from conformance.contract.grammar import PROPERTY_NAMES, SCALAR_VALUES, TYPE_NAMES, Json

MAX_VALUE_DEPTH = 3
SAMPLE_TEXTS = ("", "a", "b", "ab", "ba", "abc", "c", "x1", "xa", "0", "a0", "abb", "bb", "zz")
SAMPLE_NUMBERS = (-2, -1, 0, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 7, 10, 14, 15, 21, 99, 100, 101)
LIMITED_LENGTHS = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")


class ValueSampler:
    """Draws values for a document; half of them also follow the second document."""

    def __init__(self, rng: random.Random, document: dict[str, Json], other: dict[str, Json]) -> None:
        self._rng = rng
        self._documents = (document, other)
        parts = [part for root in self._documents for part in _list_parts(root)]
        limits = {part[keyword] for part in parts for keyword in LIMITED_LENGTHS if keyword in part}
        self._lengths = sorted({0, 1, 2, 3, *limits, *(limit + 1 for limit in limits)})
        constants = [part["const"] for part in parts if "const" in part]
        self._constants = constants + [value for part in parts for value in part.get("enum", [])]
        self._root = document

    def draw(self) -> Json:
        """Draw a value from one of the documents, rarely a wild one."""
        self._root = self._documents[self._rng.random() < 0.3]
        return self._draw_value(self._root, MAX_VALUE_DEPTH)

    def _draw_value(self, schema: Json, depth: int) -> Json:
        rng = self._rng
        if depth < 0 or not isinstance(schema, dict) or rng.random() < 0.05:
            return self._draw_anything(max(depth, 0))
        schema = self._flatten(schema, depth)
        if "const" in schema and rng.random() < 0.9:
            return schema["const"]
        if schema.get("enum") and rng.random() < 0.9:
            return rng.choice(schema["enum"])
        types = schema.get("type", TYPE_NAMES)
        kind = types if isinstance(types, str) else rng.choice(list(types))
        makers: dict[str, Callable[[], Json]] = {
            "object": lambda: self._draw_object(schema, depth),
            "array": lambda: self._draw_array(schema, depth),
        }
        return makers[kind]() if kind in makers else self._draw_scalar(kind)

    def _flatten(self, schema: dict[str, Json], depth: int) -> dict[str, Json]:
        """Merge what also describes the value: references, and some of the alternatives."""
        merged = dict(schema)
        extras = [part for part in schema.get("allOf", []) if self._rng.random() < 0.9]
        for keyword in ("anyOf", "oneOf"):
            extras += [self._rng.choice(schema[keyword])] if schema.get(keyword) else []
        if "if" in schema:
            extras += [schema["if"], schema.get("then")] if self._rng.random() < 0.6 else [schema.get("else")]
        for dependents in (schema.get("dependentSchemas", {}), schema.get("dependencies", {})):
            extras += [part for part in dependents.values() if self._rng.random() < 0.5]
        if "$ref" in schema:
            extras.append(self._follow(schema["$ref"]))
        for part in extras:
            if isinstance(part, dict) and depth > 0:
                flat = self._flatten(part, depth - 1)
                properties = {**merged.get("properties", {}), **flat.get("properties", {})}
                required = [*merged.get("required", []), *flat.get("required", [])]
                merged = {**merged, **flat, "properties": properties, "required": required}
        return merged

    def _follow(self, ref: str) -> Json:
        """Find a definition by the last part of a reference, whichever way that is written."""
        name = unquote(ref.rpartition("/")[2])
        if ref == "#":
            return self._root
        wanted = "named" if ref == "#node" else name
        places = (place for place in list_places(self._root) if place and place[-1] == wanted)
        place = next((place for place in places if place[-2] in {"$defs", "definitions"}), ())
        target: Any = self._root
        for step in place:
            target = target[step]
        return target if place else {}

    def _draw_object(self, schema: dict[str, Json], depth: int) -> Json:
        rng = self._rng
        properties = schema.get("properties") or {}
        rest = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties", True)]
        names = [name for name in properties if rng.random() < 0.5]
        names += [name for name in schema.get("required", []) if rng.random() < 0.95]
        names += [name for name in (*PROPERTY_NAMES, *SAMPLE_TEXTS[-6:]) if rng.random() < 0.04]
        count = rng.choice(self._lengths) if rng.random() < 0.1 else 0
        names += [f"n{index}" for index in range(min(count, 70) - len(names))]
        return {name: self._draw_value(properties.get(name, rng.choice(rest)), depth - 1) for name in names}

    def _draw_array(self, schema: dict[str, Json], depth: int) -> Json:
        rng = self._rng
        items = schema.get("items", True)
        prefix = items if isinstance(items, list) else schema.get("prefixItems", [])
        rest = schema.get("additionalItems", True) if isinstance(items, list) else items
        length = rng.choice(self._lengths) if rng.random() < 0.2 else rng.randint(0, 3)
        values = [self._draw_value(part, depth - 1) for part in prefix[: rng.randint(0, len(prefix))]]
        wanted = [rest, schema["contains"]] if "contains" in schema else [rest]
        missing = max(0, min(length, 70) - len(values))
        if rng.random() < 0.2:
            return [*values, *[self._draw_value(rest, depth - 1)] * missing]
        return [*values, *(self._draw_value(rng.choice(wanted), depth - 1) for _ in range(missing))]

    def _draw_scalar(self, kind: str) -> Json:
        rng = self._rng
        if kind == "string" and rng.random() < 0.1:
            return rng.choice("ab") * rng.choice(self._lengths)
        mentioned = [value for value in self._constants if _is_kind(value, kind)]
        if mentioned and rng.random() < 0.3:
            return rng.choice(mentioned)
        pools: dict[str, tuple[Json, ...]] = {"string": SAMPLE_TEXTS, "boolean": (True, False), "null": (None,)}
        numbers = tuple(number for number in SAMPLE_NUMBERS if kind == "number" or isinstance(number, int))
        return rng.choice(pools.get(kind, numbers))

    def _draw_anything(self, depth: int) -> Json:
        rng = self._rng
        if depth > 0 and rng.random() < 0.2:
            return {rng.choice(PROPERTY_NAMES): self._draw_anything(depth - 1) for _ in range(rng.randint(0, 2))}
        if depth > 0 and rng.random() < 0.15:
            return [self._draw_anything(depth - 1) for _ in range(rng.randint(0, 2))]
        return rng.choice((*SCALAR_VALUES, *self._constants))


def _list_parts(root: Json) -> list[dict[str, Json]]:
    parts = []
    for place in list_places(root):
        part: Any = root
        for step in place:
            part = part[step]
        parts += [part] if isinstance(part, dict) else []
    return parts


def _is_kind(value: Json, kind: str) -> bool:
    if kind == "string":
        return isinstance(value, str)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (kind == "number" or isinstance(value, int))

"""Random edits of a schema document, of the kinds that people make."""

import copy
import random
from collections.abc import Iterator
from typing import Any

from conformance.contract.grammar import MAX_DEPTH, PATTERNS, PROPERTY_NAMES, SCALAR_VALUES, Json, SchemaGrammar

IDENTITY_KEYWORDS = ("$id", "$anchor", "$schema", "$defs", "definitions")
"""Keywords that stay when a schema is replaced, so that references to it keep their target."""

MAP_KEYWORDS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies")
LIST_KEYWORDS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
SINGLE_KEYWORDS = (
    *("items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
BRANCH_KEYWORDS = ("anyOf", "oneOf", "allOf")
LIMIT_KEYWORDS = (
    *("minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems"),
    *("minProperties", "maxProperties", "minContains", "multipleOf"),
)

Place = tuple[str | int, ...]


def list_places(schema: Json, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every schema inside a document."""
    yield place
    if not isinstance(schema, dict):
        return
    for keyword in MAP_KEYWORDS:
        for name, part in schema.get(keyword, {}).items():
            if isinstance(part, dict | bool):
                yield from list_places(part, (*place, keyword, name))
    for keyword in LIST_KEYWORDS:
        for index, part in enumerate(schema[keyword] if isinstance(schema.get(keyword), list) else ()):
            yield from list_places(part, (*place, keyword, index))
    for keyword in SINGLE_KEYWORDS:
        if isinstance(schema.get(keyword), dict | bool):
            yield from list_places(schema[keyword], (*place, keyword))


def edit_document(document: dict[str, Json], grammar: SchemaGrammar, rng: random.Random) -> dict[str, Json]:
    """Return a document with one edit, sometimes two."""
    edited = copy.deepcopy(document)
    for _ in range(1 if rng.random() < 0.75 else 2):
        places = list(list_places(edited))
        # Many definitions are not referred to, and a change of those changes nothing.
        used = [place for place in places if {"$defs", "definitions"}.isdisjoint(place)]
        place = rng.choice(used if rng.random() < 0.7 else places)
        _set_part(edited, place, _edit_schema(_get_part(edited, place), place, grammar, rng))
    return edited


def _get_part(document: Any, place: Place) -> Json:
    for step in place:
        document = document[step]
    return document


def _set_part(document: dict[str, Json], place: Place, part: Json) -> None:
    if place:
        _get_part(document, place[:-1])[place[-1]] = part
    elif isinstance(part, dict):
        identity = {keyword: document[keyword] for keyword in IDENTITY_KEYWORDS if keyword in document}
        document.clear()
        document.update({**part, **identity})


GUARD_KEYWORDS = {
    *("properties", "patternProperties", "additionalProperties", "items", "prefixItems", "contains"),
    *("additionalItems", "unevaluatedProperties", "unevaluatedItems"),
}
"""The schemas in these keywords describe a part of the value, so that a reference in them cannot loop."""


def _edit_schema(schema: Json, place: Place, grammar: SchemaGrammar, rng: random.Random) -> Json:
    is_guarded = not GUARD_KEYWORDS.isdisjoint(place[-2:]) and place[-1] not in {"if", "then", "else", "not"}
    in_definition = not {"$defs", "definitions"}.isdisjoint(place)
    fresh = grammar.make_part(max(1, MAX_DEPTH - len(place)), is_guarded=is_guarded, in_definition=in_definition)
    if not isinstance(schema, dict):
        return fresh
    identity = {keyword: schema[keyword] for keyword in IDENTITY_KEYWORDS if keyword in schema}
    kind = rng.choice(("replace", "merge", "drop", "limit", "limit", "detail", "detail", "detail"))
    if kind == "replace" and isinstance(fresh, dict):
        return {**fresh, **identity}
    if kind == "merge" and isinstance(fresh, dict) and "type" in fresh and fresh["type"] == schema.get("type"):
        return {**schema, **{key: value for key, value in fresh.items() if key != "$ref"}, **identity}
    if kind == "drop":
        removable = [keyword for keyword in schema if keyword not in IDENTITY_KEYWORDS]
        removed = rng.choice(removable) if removable else None
        return {keyword: value for keyword, value in schema.items() if keyword != removed}
    limits = [keyword for keyword in LIMIT_KEYWORDS if keyword in schema]
    if kind == "limit" and limits:
        keyword = rng.choice(limits)
        step = rng.choice((2, 3)) if keyword == "multipleOf" else rng.choice((-1, 1, 2))
        value = schema[keyword] * step if keyword == "multipleOf" else max(schema[keyword] + step, 0)
        return {**schema, keyword: value}
    return _edit_detail(schema, grammar, rng, in_definition=in_definition)


def _edit_detail(schema: dict[str, Json], grammar: SchemaGrammar, rng: random.Random, *, in_definition: bool) -> Json:
    """Change one keyword in the way that is usual for it."""
    if any(keyword in schema for keyword in BRANCH_KEYWORDS) and rng.random() < 0.6:
        return _edit_branches(schema, grammar, rng, in_definition=in_definition)
    if "enum" in schema:
        values = [value for value in schema["enum"] if rng.random() < 0.7] or [rng.choice(SCALAR_VALUES)]
        return {**schema, "enum": values if rng.random() < 0.5 else [*schema["enum"], rng.choice(SCALAR_VALUES)]}
    if "pattern" in schema or schema.get("type") == "string":
        return {**schema, "pattern": rng.choice(PATTERNS)}
    if "properties" in schema:
        return _edit_object(schema, grammar, rng, in_definition=in_definition)
    return {**schema, "type": rng.choice(("integer", "string", "object", "array", ["integer", "null"]))}


def _edit_branches(
    schema: dict[str, Json], grammar: SchemaGrammar, rng: random.Random, *, in_definition: bool
) -> dict[str, Json]:
    keyword = rng.choice([keyword for keyword in BRANCH_KEYWORDS if keyword in schema])
    parts = list(schema[keyword])
    if len(parts) > 1 and rng.random() < 0.5:
        del parts[rng.randrange(len(parts))]
    else:
        part = grammar.make_part(1, is_guarded=False, in_definition=in_definition)
        parts.insert(rng.randint(0, len(parts)), part)
    return {**schema, keyword: parts}


def _edit_object(
    schema: dict[str, Json], grammar: SchemaGrammar, rng: random.Random, *, in_definition: bool
) -> dict[str, Json]:
    name = rng.choice(PROPERTY_NAMES)
    required, properties = list(schema.get("required", [])), schema["properties"]
    match rng.choice(("require", "release", "add", "remove", "rename", "close", "open")):
        case "require":
            return {**schema, "required": sorted({*required, name})}
        case "release":
            return {**schema, "required": required[1:]}
        case "add":
            properties = {**properties, name: grammar.make_part(1, is_guarded=True, in_definition=in_definition)}
        case "remove":
            properties = {key: part for key, part in properties.items() if key != name}
        case "rename":
            properties = {f"{key}2" if key == name else key: part for key, part in properties.items()}
        case "close":
            return {**schema, "additionalProperties": False}
        case _:
            return {keyword: value for keyword, value in schema.items() if keyword != "additionalProperties"}
    return {**schema, "properties": properties}

"""What each JSON Schema keyword is to a comparison, and how to move around in a schema.

Drafts 7 and 2020-12 are known by heart; a keyword that is listed nowhere here has no known
meaning, and a change to it can never be called safe.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from cleats.contract.binding import RESERVED
from cleats.contract.pointer import tokens

Schema: TypeAlias = dict[str, Any] | bool

DIALECTS: Final = frozenset(
    {f"http://json-schema.org/draft-0{number}/schema" for number in (4, 6, 7)}
    | {f"https://json-schema.org/draft/{year}/schema" for year in ("2019-09", "2020-12")}
)
"""What `$schema` may say. Any other would be looked for on the network, which must not happen."""

WORDS: Final = frozenset(
    {"title", "description", "examples", "$comment", "deprecated", "markdownDescription"}
    | {"enumDescriptions", "enumNames"}
)
"""For readers only. People and models read them, validators do not."""

MEANING: Final = "x-meaning"
"""A whole number beside a property, raised by hand when the same value comes to mean something
else: no machine can see that. Leaving it out says 1."""

MEANINGS: Final = frozenset({MEANING, "contentEncoding", "contentMediaType", "contentSchema"})
"""What a value stands for. The value itself stays as valid as it was."""

PLUMBING: Final = frozenset({"$schema", "$id", "$defs", "definitions", "$anchor", "$vocabulary"})
"""Says where things are. Followed, never compared for itself."""

ASSERTIONS: Final = frozenset(
    {"type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum"}
    | {"exclusiveMinimum", "maxLength", "minLength", "pattern", "format", "maxItems", "minItems"}
    | {"uniqueItems", "contains", "maxContains", "minContains", "maxProperties", "minProperties"}
    | {"dependentRequired", "dependencies", "not", "additionalItems"}
    | {RESERVED}
)
"""Judged together, at the place where they stand, by the prover."""

MAPS: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLES: Final = (
    *("additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else"),
    *("unevaluatedProperties", "unevaluatedItems", "additionalItems", "contentSchema"),
)

WALKED: Final = frozenset(
    {"properties", "patternProperties", "additionalProperties", "propertyNames", "items"}
    | {"prefixItems", "allOf", "anyOf", "oneOf", "dependentSchemas", "required", "$ref"}
    | {"if", "then", "else"}
)
"""Compared part by part: each is a conjunct of its own, and takes more when a part takes more."""

WHOLE: Final = frozenset(
    {"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"}
)
"""A schema with one of these cannot be taken apart: the keyword depends on its neighbours."""

KNOWN: Final = WORDS | MEANINGS | PLUMBING | ASSERTIONS | WALKED | WHOLE | {"default"}

SAME_IN_EVERY_DRAFT: Final = (
    KNOWN
    - WHOLE
    - {"prefixItems", "dependentSchemas", "dependentRequired", "dependencies", "$anchor", "$id"}
    - {"additionalItems", "maxContains", "minContains", "$vocabulary"}
)
"""Means the same in draft 7 and in 2020-12, so that schemas of both can be compared."""


def text(value: Any) -> str:
    """One text per JSON value. Python would call `true` and `1` equal; JSON does not."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def same(one: Any, other: Any) -> bool:
    return text(one) == text(other)


def branches(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The schemas directly inside a schema, each with the keyword that holds it."""
    if isinstance(schema, bool):
        return
    for keyword in MAPS:
        if isinstance(held := schema.get(keyword), dict):
            yield from ((keyword, part) for part in held.values())
    for keyword in LISTS:
        if isinstance(held := schema.get(keyword), list):
            yield from ((keyword, part) for part in held)
    for keyword in SINGLES:
        held = schema.get(keyword)
        if isinstance(held, dict | bool):
            yield keyword, held
        elif isinstance(held, list):  # the tuples of draft 7
            yield from ((keyword, part) for part in held)


def everywhere(schema: Schema) -> Iterator[Schema]:
    """A schema and every schema inside it."""
    yield schema
    for _, part in branches(schema):
        yield from everywhere(part)


def refers(schema: Schema) -> bool:
    """Whether anything in it is written elsewhere, so that equal texts may differ in meaning."""
    return any(isinstance(s, dict) and not s.keys().isdisjoint(REFS) for s in everywhere(schema))


REFS: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def target(root: Schema, ref: str) -> Schema | None:
    """What a reference into the same document points at; None for any other reference."""
    if not ref.startswith("#") or (ref != "#" and not ref.startswith("#/")):
        return None
    found: Any = root
    for token in tokens(ref[1:]):
        if isinstance(found, Mapping) and token in found:
            found = found[token]
        elif isinstance(found, list) and token.isdecimal() and int(token) < len(found):
            found = found[int(token)]
        else:
            return None
    return found if isinstance(found, dict | bool) else None


def foreign(schema: Schema) -> bool:
    """Whether anything in it is in a dialect that is not known here."""
    stated = (part.get("$schema") for part in everywhere(schema) if isinstance(part, dict))
    return any(one is not None and str(one).rstrip("#") not in DIALECTS for one in stated)


def recursive(root: Schema) -> bool:
    """Whether some schema of a document refers, by whatever way round, to itself."""
    leads = {ref: _refs(target(root, ref) or {}) for ref in _refs(root)}

    def returns(start: str, ref: str, seen: set[str]) -> bool:
        following = leads.get(ref, set()) - seen
        seen |= following
        return start in following or any(returns(start, one, seen) for one in following)

    return any(returns(ref, ref, set()) for ref in leads)


def _refs(schema: Schema) -> set[str]:
    parts = (part for part in everywhere(schema) if isinstance(part, dict))
    return {str(part[keyword]) for part in parts for keyword in REFS if keyword in part}


def old_draft(root: Schema) -> bool:
    """Whether the document is of draft 7 or older, where `$ref` silences its neighbours."""
    dialect = root.get("$schema", "") if isinstance(root, dict) else ""
    return any(f"draft-0{number}" in str(dialect) for number in (3, 4, 6, 7))


def definitions(root: Schema) -> dict[str, Any]:
    """The parts of a document that references need, to put beside a part cut out of it."""
    if isinstance(root, bool):
        return {}
    return {key: root[key] for key in ("$schema", "$defs", "definitions") if key in root}


def pairs(old: Sequence[Schema], new: Sequence[Schema]) -> list[tuple[int, int]] | None:
    """Which branch of the old list became which of the new one; None when the counts differ.

    Equal branches belong together wherever they stand; the rest keep their order.
    """
    if len(old) != len(new):
        return None
    free = list(range(len(new)))
    matched: list[tuple[int, int]] = []
    rest: list[int] = []
    for place, branch in enumerate(old):
        twin = next((index for index in free if same(branch, new[index])), None)
        if twin is None:
            rest.append(place)
        else:
            free.remove(twin)
            matched.append((place, twin))
    return sorted([*matched, *zip(rest, free, strict=True)])


def only(schema: dict[str, Any], keywords: Iterable[str]) -> dict[str, Any]:
    """The part of a schema that these keywords are."""
    return {keyword: schema[keyword] for keyword in sorted(keywords) if keyword in schema}


def differing(old: dict[str, Any], new: dict[str, Any], keywords: Iterable[str]) -> list[str]:
    """The keywords that are not the same in both."""
    return [
        keyword
        for keyword in sorted(keywords)
        if (keyword in old) is not (keyword in new) or not same(old.get(keyword), new.get(keyword))
    ]


def as_object(schema: Schema) -> dict[str, Any]:
    """`true` and `false` in the words of the other schemas."""
    if isinstance(schema, dict):
        return schema
    return {} if schema else {"not": {}}


TYPES: Final = ("object", "string", "integer", "number", "boolean", "array", "null")


def types(schema: dict[str, Any]) -> list[str]:
    """The types that a schema allows; all of them when it does not say."""
    found = schema.get("type", TYPES)
    return [found] if isinstance(found, str) else list(found)


# Which names a schema speaks of

IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas")
"""What these hold is about the same value as the schema they stand in."""

DESCRIBING: Final = frozenset(
    {"properties", "patternProperties", "additionalProperties", "propertyNames", "items", "$ref"}
    | {"prefixItems", "contains", "additionalItems", "dependencies"}
    | WHOLE
)
"""Says something about the parts of a value."""


def names(schema: Schema, root: Schema) -> set[str]:
    """The properties of a value that a schema speaks of, whatever it says and wherever in it."""
    found: set[str] = set()
    for part in in_place(schema, root):
        found |= {*part.get("properties", {}), *part.get("required", [])}
        for keyword in ("dependentRequired", "dependencies", "dependentSchemas"):
            for name, others in part.get(keyword, {}).items():
                found |= {name, *(others if isinstance(others, list) else ())}
    return found


def described(schema: Schema, root: Schema) -> set[str]:
    """The properties of a value that a schema has a schema for, wherever in it."""
    return {name for part in in_place(schema, root) for name in part.get("properties", {})}


def in_place(
    schema: Schema, root: Schema, seen: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """A schema, and all inside it or referred to that are about the same value."""
    if isinstance(schema, bool):
        return
    yield schema
    for keyword, part in branches(schema):
        if keyword in IN_PLACE:
            yield from in_place(part, root, seen)
    ref = schema.get("$ref")
    if ref is not None and ref not in seen:
        yield from in_place(target(root, ref) or {}, root, seen | {ref})


def crossing(root: Schema) -> bool:
    """Whether two parts of a document describe the same value, each with names of its own."""
    return any(isinstance(part, dict) and _crossing_here(part) for part in everywhere(root))


def _crossing_here(schema: dict[str, Any]) -> bool:
    if "$ref" in schema and schema.keys() - WORDS - MEANINGS - PLUMBING - {"$ref", "default"}:
        return True
    conditions = [schema.get(keyword, {}) for keyword in ("if", "then", "else")]
    parts = [
        not DESCRIBING.isdisjoint(schema),
        *map(_describes, schema.get("allOf", [])),
        any(map(_describes, schema.get("anyOf", []))),
        any(map(_describes, schema.get("oneOf", []))),
        any(map(_describes, conditions)),
        any(map(_describes, schema.get("dependentSchemas", {}).values())),
    ]
    return sum(parts) > 1


def _describes(schema: Schema) -> bool:
    if isinstance(schema, bool):
        return False
    if not DESCRIBING.isdisjoint(schema):
        return True
    return any(_describes(part) for keyword, part in branches(schema) if keyword in IN_PLACE)

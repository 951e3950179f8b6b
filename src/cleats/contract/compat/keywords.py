"""The role of each JSON Schema keyword in a comparison, and navigation inside a schema.

Schemas are in their plain form, draft 2020-12. A keyword that is not listed here has no known meaning,
and a change to it can never be called safe.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from cleats.contract.arguments import RESERVED_KEYWORD
from cleats.contract.pointer import join_pointer, split_pointer

Schema: TypeAlias = dict[str, Any] | bool

DOCUMENTATION_KEYWORDS: Final = frozenset(
    {"title", "description", "examples", "$comment", "deprecated", "markdownDescription"}
    | {"enumDescriptions", "enumNames", "readOnly", "writeOnly", "example", "nullable", "discriminator"}
)
"""Keywords for readers only: people, models and generators read them, validators do not."""

MEANING_KEYWORD: Final = "x-meaning"
"""An integer next to a property, raised by hand when the same value comes to mean something else,
which no machine can detect. The default is 1."""

MEANING_KEYWORDS: Final = frozenset({MEANING_KEYWORD, "contentEncoding", "contentMediaType", "contentSchema"})
"""Keywords that say what a value stands for. They do not affect whether the value is valid."""

STRUCTURE_KEYWORDS: Final = frozenset({"$schema", "$id", "$defs", "definitions", "$anchor", "$vocabulary"})
"""Keywords that say where things are. They are followed, never compared for themselves."""

ASSERTION_KEYWORDS: Final = frozenset(
    {"type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum"}
    | {"exclusiveMinimum", "maxLength", "minLength", "pattern", "format", "maxItems", "minItems"}
    | {"uniqueItems", "contains", "maxContains", "minContains", "maxProperties", "minProperties"}
    | {"dependentRequired", "dependencies", "not", "additionalItems"}
    | {RESERVED_KEYWORD}
)
"""Keywords that the prover judges together, at their location."""

DEFINITION_KEYWORDS: Final = ("$defs", "definitions")
SCHEMA_MAP_KEYWORDS: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
SCHEMA_LIST_KEYWORDS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE_SCHEMA_KEYWORDS: Final = (
    *("additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else"),
    *("unevaluatedProperties", "unevaluatedItems", "additionalItems", "contentSchema"),
)

WALKED_KEYWORDS: Final = frozenset(
    {"properties", "patternProperties", "additionalProperties", "propertyNames", "items"}
    | {"prefixItems", "allOf", "anyOf", "oneOf", "dependentSchemas", "required", "$ref"}
    | {"if", "then", "else"}
)
"""Keywords that are compared part by part: each is a separate conjunct, and accepts more when one
of its parts accepts more."""

INSEPARABLE_KEYWORDS: Final = frozenset({"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"})
"""A schema with one of these cannot be taken apart: the keyword depends on its neighbours."""

KNOWN_KEYWORDS: Final = (
    DOCUMENTATION_KEYWORDS
    | MEANING_KEYWORDS
    | STRUCTURE_KEYWORDS
    | ASSERTION_KEYWORDS
    | WALKED_KEYWORDS
    | INSEPARABLE_KEYWORDS
    | {"default"}
)


def is_annotation(keyword: str) -> bool:
    """Return True for a keyword that no validator looks at: one for readers, or an extension."""
    is_extension = keyword.startswith("x-") and keyword not in (MEANING_KEYWORD, RESERVED_KEYWORD)
    return is_extension or keyword in DOCUMENTATION_KEYWORDS


def encode_canonical(value: Any) -> str:
    """Encode a JSON value as one canonical text. Python equates `true` and `1`; JSON does not."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def is_same_json(one: Any, other: Any) -> bool:
    return encode_canonical(one) == encode_canonical(other)


def iterate_subschemas(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the schemas directly inside a schema, each with the keyword that holds it."""
    if isinstance(schema, bool):
        return
    for keyword in SCHEMA_MAP_KEYWORDS:
        if isinstance(value := schema.get(keyword), dict):
            yield from ((keyword, part) for part in value.values())
    for keyword in SCHEMA_LIST_KEYWORDS:
        if isinstance(value := schema.get(keyword), list):
            yield from ((keyword, part) for part in value)
    for keyword in SINGLE_SCHEMA_KEYWORDS:
        value = schema.get(keyword)
        if isinstance(value, dict | bool):
            yield keyword, value
        elif isinstance(value, list):  # the tuples of draft 7
            yield from ((keyword, part) for part in value)


def walk_schemas(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and every schema inside it."""
    yield schema
    for _, part in iterate_subschemas(schema):
        yield from walk_schemas(part)


def map_subschemas(schema: dict[str, Any], change: Callable[[Schema, tuple[str | int, ...]], Schema]) -> dict[str, Any]:
    """Return a schema with each schema directly inside it changed; `change` also gets its place."""
    result = dict(schema)
    for keyword in (*SCHEMA_MAP_KEYWORDS, *SCHEMA_LIST_KEYWORDS, *SINGLE_SCHEMA_KEYWORDS):
        value = result.get(keyword)
        if isinstance(value, dict) and keyword in SCHEMA_MAP_KEYWORDS:
            result[keyword] = {
                name: change(part, (keyword, name)) if is_schema(part) else part for name, part in value.items()
            }
        elif isinstance(value, list):
            result[keyword] = [
                change(part, (keyword, index)) if is_schema(part) else part for index, part in enumerate(value)
            ]
        elif isinstance(value, dict | bool):
            result[keyword] = change(value, (keyword,))
    return result


def is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def has_references(schema: Schema) -> bool:
    """Return True if the schema has references, so that equal texts may differ in meaning."""
    return any(
        isinstance(part, dict) and not part.keys().isdisjoint(REFERENCE_KEYWORDS) for part in walk_schemas(schema)
    )


REFERENCE_KEYWORDS: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def resolve_reference(root: Schema, ref: str) -> Schema | None:
    """Resolve a pointer into the document; return None for any other reference."""
    if not ref.startswith("#") or (ref != "#" and not ref.startswith("#/")):
        return None
    node = follow_pointer(root, unquote(ref[1:]))
    return node if isinstance(node, dict | bool) else None


def follow_pointer(root: Any, pointer: str) -> Any:
    """Return what a pointer leads to, or None."""
    node = root
    for token in split_pointer(pointer):
        if isinstance(node, Mapping) and token in node:
            node = node[token]
        elif isinstance(node, list) and token.isdecimal() and int(token) < len(node):
            node = node[int(token)]
        else:
            return None
    return node


def replace_at_pointer(root: Any, pointer: str, part: Any) -> Any:
    """Return a copy of a document with another part at a pointer that leads to one."""
    tokens = split_pointer(pointer)
    if not tokens:
        return part
    holder = follow_pointer(root, join_pointer(tokens[:-1]))
    copy: Any = [*holder] if isinstance(holder, list) else {**holder}
    copy[int(tokens[-1]) if isinstance(copy, list) else tokens[-1]] = part
    return replace_at_pointer(root, join_pointer(tokens[:-1]), copy)


def is_recursive(root: Schema) -> bool:
    """Return True if any schema of a document refers to itself, directly or indirectly."""
    next_refs_by_ref = {ref: list_references(resolve_reference(root, ref) or {}) for ref in list_references(root)}

    def leads_back(start: str, ref: str, visited: set[str]) -> bool:
        next_refs = next_refs_by_ref.get(ref, set()) - visited
        visited |= next_refs
        return start in next_refs or any(leads_back(start, next_ref, visited) for next_ref in next_refs)

    return any(leads_back(ref, ref, set()) for ref in next_refs_by_ref)


def list_references(schema: Schema) -> set[str]:
    """Return every reference inside a schema, dynamic ones too."""
    parts = (part for part in walk_schemas(schema) if isinstance(part, dict))
    return {str(part[keyword]) for part in parts for keyword in REFERENCE_KEYWORDS if keyword in part}


def pick_definitions(root: Schema) -> dict[str, Any]:
    """Return the parts of a document that references need, to accompany a part cut out of it."""
    if isinstance(root, bool):
        return {}
    return {key: root[key] for key in DEFINITION_KEYWORDS if key in root}


def pair_branches(old: Sequence[Schema], new: Sequence[Schema]) -> list[tuple[int, int]] | None:
    """Match the branches of the old list with those of the new one; None if the counts differ.

    Equal branches are paired regardless of their position; the rest keep their order.
    """
    if len(old) != len(new):
        return None
    unmatched_indexes = list(range(len(new)))
    matched: list[tuple[int, int]] = []
    unmatched_positions: list[int] = []
    for position, branch in enumerate(old):
        twin = next((index for index in unmatched_indexes if is_same_json(branch, new[index])), None)
        if twin is None:
            unmatched_positions.append(position)
        else:
            unmatched_indexes.remove(twin)
            matched.append((position, twin))
    return sorted([*matched, *zip(unmatched_positions, unmatched_indexes, strict=True)])


def pick_keywords(schema: dict[str, Any], keywords: Iterable[str]) -> dict[str, Any]:
    """Return the part of a schema that consists of these keywords."""
    return {keyword: schema[keyword] for keyword in sorted(keywords) if keyword in schema}


def find_changed_keywords(old: dict[str, Any], new: dict[str, Any], keywords: Iterable[str]) -> list[str]:
    """Return the keywords whose values differ between the two schemas."""
    return [
        keyword
        for keyword in sorted(keywords)
        if (keyword in old) is not (keyword in new) or not is_same_json(old.get(keyword), new.get(keyword))
    ]


def to_object_schema(schema: Schema) -> dict[str, Any]:
    """Return the schema as an object, with `true` and `false` expressed by keywords."""
    if isinstance(schema, dict):
        return schema
    return {} if schema else {"not": {}}


JSON_TYPES: Final = ("object", "string", "integer", "number", "boolean", "array", "null")


def list_types(schema: dict[str, Any]) -> list[str]:
    """Return the types that a schema allows; all of them if it does not say."""
    stated_types = schema.get("type", JSON_TYPES)
    return [stated_types] if isinstance(stated_types, str) else list(stated_types)


def list_possible_types(schema: dict[str, Any]) -> list[str]:
    """Return the types that a schema allows, also by the values that it lists."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if "type" in schema or not isinstance(values, list):
        return list_types(schema)
    return sorted({_get_json_type(value) for value in values})


def _get_json_type(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "null" if value is None else "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names[type(value)]


# The property names that a schema mentions

IN_PLACE_KEYWORDS: Final = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas")
"""The schemas in these keywords describe the same value as the schema that contains them."""

DESCRIBING_KEYWORDS: Final = frozenset(
    {"properties", "patternProperties", "additionalProperties", "propertyNames", "items", "$ref"}
    | {"prefixItems", "contains", "additionalItems", "dependencies"}
    | INSEPARABLE_KEYWORDS
)
"""Keywords that describe the parts of a value."""


def find_property_names(schema: Schema, root: Schema) -> set[str]:
    """Return the properties that a schema mentions anywhere for its value, in whatever way."""
    property_names: set[str] = set()
    for part in walk_in_place(schema, root):
        property_names |= {*part.get("properties", {}), *part.get("required", []), *list_announced_names(part)}
        for keyword in ("dependentRequired", "dependencies", "dependentSchemas"):
            for name, dependents in part.get(keyword, {}).items():
                property_names |= {name, *(dependents if isinstance(dependents, list) else ())}
    return property_names


def list_announced_names(schema: dict[str, Any]) -> list[str]:
    """Return the names that `propertyNames` lists."""
    names = schema.get("propertyNames")
    listed = [names.get("const"), *names.get("enum", [])] if isinstance(names, dict) else []
    return [name for name in listed if isinstance(name, str)]


def find_described_names(schema: Schema, root: Schema) -> set[str]:
    """Return the properties of a value for which a schema anywhere holds a schema."""
    return {name for part in walk_in_place(schema, root) for name in part.get("properties", {})}


def walk_in_place(
    schema: Schema, root: Schema, followed_refs: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Yield a schema, and every inner or referenced schema that describes the same value."""
    if isinstance(schema, bool):
        return
    yield schema
    for keyword, part in iterate_subschemas(schema):
        if keyword in IN_PLACE_KEYWORDS:
            yield from walk_in_place(part, root, followed_refs)
    ref = schema.get("$ref")
    if ref is not None and ref not in followed_refs:
        yield from walk_in_place(resolve_reference(root, ref) or {}, root, followed_refs | {ref})


def has_crossing_descriptions(root: Schema) -> bool:
    """Return True if two parts of a document describe the same value with different names."""
    return any(isinstance(part, dict) and _is_crossing_here(part) for part in walk_schemas(root))


def _is_crossing_here(schema: dict[str, Any]) -> bool:
    if "$ref" in schema and schema.keys() - DOCUMENTATION_KEYWORDS - MEANING_KEYWORDS - STRUCTURE_KEYWORDS - {
        "$ref",
        "default",
    }:
        return True
    conditions = [schema.get(keyword, {}) for keyword in ("if", "then", "else")]
    descriptions = [
        not DESCRIBING_KEYWORDS.isdisjoint(schema),
        *map(_describes, schema.get("allOf", [])),
        any(map(_describes, schema.get("anyOf", []))),
        any(map(_describes, schema.get("oneOf", []))),
        any(map(_describes, conditions)),
        any(map(_describes, schema.get("dependentSchemas", {}).values())),
    ]
    return sum(descriptions) > 1


def _describes(schema: Schema) -> bool:
    if isinstance(schema, bool):
        return False
    if not DESCRIBING_KEYWORDS.isdisjoint(schema):
        return True
    return any(_describes(part) for keyword, part in iterate_subschemas(schema) if keyword in IN_PLACE_KEYWORDS)

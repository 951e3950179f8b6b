"""The plain form of a schema document: draft 2020-12, with every reference as a pointer.

Comparison would otherwise have to know each draft and each way to name a place. A reference whose
target is not found keeps its text, and a comparison that meets it stays unproven.
"""

from collections import Counter
from typing import Any, Final
from urllib.parse import quote, unquote, urldefrag, urljoin

from cleats.contract.compat.keywords import (
    DEFINITION_KEYWORDS,
    Schema,
    follow_pointer,
    is_annotation,
    is_schema,
    list_references,
    map_subschemas,
    resolve_reference,
    walk_schemas,
)
from cleats.contract.pointer import join_pointer, split_pointer

DRAFTS: Final = {
    **{f"json-schema.org/draft-0{number}/schema": number for number in (4, 6, 7)},
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
}
"""The accepted values of `$schema` without their scheme. Any other would be fetched from the
network, which must not happen."""

LATEST_DRAFT: Final = 2020

FIRST_DRAFT_BY_KEYWORD: Final = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 6),
    **dict.fromkeys(("if", "then", "else"), 7),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"), 2019),
    **dict.fromkeys(("minContains", "maxContains", "$anchor", "$recursiveRef"), 2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef", "$dynamicAnchor"), 2020),
}
"""Keywords that a validator of an older draft passes over."""

UNRESOLVED_PREFIX: Final = "unresolved:"
"""Before a local reference whose target was not found, so that nobody follows it by chance."""

POINTER_SAFE_CHARACTERS: Final = "/~!$&'()*+,;=:@?-._"
"""The characters that a fragment may have unescaped (RFC 3986)."""


def find_draft(schema: Schema) -> int | None:
    """Return the draft of a document; None if it is unknown, or if a part is of another one."""
    root_draft = _read_draft(schema) if isinstance(schema, dict) and "$schema" in schema else LATEST_DRAFT
    parts = (part for part in walk_schemas(schema) if isinstance(part, dict) and "$schema" in part)
    return root_draft if all(_read_draft(part) == root_draft for part in parts) else None


def _read_draft(schema: dict[str, Any]) -> int | None:
    dialect = str(schema["$schema"]).removesuffix("#")
    return DRAFTS.get(dialect.removeprefix("https://").removeprefix("http://"))


def to_plain_schema(schema: Schema) -> Schema:
    """Return a document in its plain form; one of an unknown draft is returned as it is."""
    draft = find_draft(schema)
    if draft is None:
        return schema
    return _drop_unused_definitions(_ReferenceRewriter(_modernize(schema, draft)).rewrite())


def _drop_unused_definitions(root: Schema) -> Schema:
    """Return a plain document without the definitions that nothing leads to: they cannot change its meaning."""
    if isinstance(root, bool):
        return root
    body = {keyword: value for keyword, value in root.items() if keyword not in DEFINITION_KEYWORDS}
    waiting, followed = list_references(body), {"#"}
    while waiting - followed:
        ref = (waiting - followed).pop()
        followed.add(ref)
        target = resolve_reference(root, ref)
        if target is None:  # it might lead anywhere, a dynamic one to every anchor
            return root
        waiting |= list_references(target)
    used = {tuple(split_pointer(unquote(ref[1:]))[:2]) for ref in followed}
    definitions = {
        keyword: {name: part for name, part in root[keyword].items() if (keyword, name) in used}
        for keyword in DEFINITION_KEYWORDS
        if isinstance(root.get(keyword), dict)
    }
    return {**body, **{keyword: parts for keyword, parts in definitions.items() if parts}}


# Older drafts


def _modernize(schema: Schema, draft: int) -> Schema:
    """Write a schema of an older draft as one of 2020-12 that means the same."""
    if isinstance(schema, bool):
        return schema
    result = {
        keyword: value
        for keyword, value in schema.items()
        if keyword != "$schema" and FIRST_DRAFT_BY_KEYWORD.get(keyword, 0) <= draft
    }
    if draft < 2019:
        _convert_dependencies(result)
    if draft < 2019 and isinstance(result.get("$ref"), str):  # its neighbours have no effect
        kept = {"$ref", "$defs", "definitions"}
        result = {keyword: value for keyword, value in result.items() if keyword in kept or is_annotation(keyword)}
    if draft == 4 and "id" in result:
        result.setdefault("$id", result.pop("id"))
    if draft == 4:
        _convert_exclusive_limits(result)
    if draft < LATEST_DRAFT:
        _convert_tuples(result)
        if result.get("$recursiveRef") == "#" and not result.get("$recursiveAnchor"):
            result["$ref"] = result.pop("$recursiveRef")
    names = result.get("propertyNames")
    if isinstance(names, dict) and names.get("type") == "string":  # every name is one
        result["propertyNames"] = {keyword: value for keyword, value in names.items() if keyword != "type"}
    return map_subschemas(result, lambda part, _tokens: _modernize(part, draft))


def _convert_exclusive_limits(schema: dict[str, Any]) -> None:
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.pop(exclusive, False) is True and limit in schema:
            schema[exclusive] = schema.pop(limit)


def _convert_tuples(schema: dict[str, Any]) -> None:
    additional = schema.pop("additionalItems", None)
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if additional is not None:
            schema["items"] = additional


def _convert_dependencies(schema: dict[str, Any]) -> None:
    dependencies = schema.get("dependencies")
    if not isinstance(dependencies, dict):
        return
    del schema["dependencies"]
    names = {name: value for name, value in dependencies.items() if isinstance(value, list)}
    schemas = {name: value for name, value in dependencies.items() if not isinstance(value, list)}
    if names:
        schema["dependentRequired"] = {**schema.get("dependentRequired", {}), **names}
    if schemas:
        schema["dependentSchemas"] = {**schema.get("dependentSchemas", {}), **schemas}


# References


class _ReferenceRewriter:
    """Replaces the names of places in one document by pointers."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._pointers: dict[str, str] = {"": ""}
        """Pointers to the resources and anchors of the document, by their absolute URIs."""
        self._bases: dict[str, str] = {}
        """The base URI of every schema, by its pointer."""
        self._dynamic_anchors: Counter[str] = Counter()
        self._collect_names(root, "", "")

    def _collect_names(self, schema: Schema, pointer: str, base: str) -> Schema:
        if isinstance(schema, bool):
            return schema
        own_id = schema.get("$id")
        if isinstance(own_id, str) and own_id.startswith("#"):  # how drafts up to 7 write an anchor
            self._pointers[base + unquote(own_id)] = pointer
        elif isinstance(own_id, str):
            base = urldefrag(urljoin(base, own_id)).url
            self._pointers[base] = pointer
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := schema.get(keyword), str):
                self._pointers[f"{base}#{anchor}"] = pointer
                self._dynamic_anchors[anchor] += keyword == "$dynamicAnchor"
        self._bases[pointer] = base
        map_subschemas(schema, lambda part, tokens: self._collect_names(part, pointer + join_pointer(tokens), base))
        return schema

    def rewrite(self, schema: Schema | None = None, pointer: str = "") -> Schema:
        """Return the document, or a part of it, with pointers for references and without names."""
        schema = self._root if schema is None else schema
        if isinstance(schema, bool):
            return schema
        result = {key: value for key, value in schema.items() if key not in {"$id", "$anchor"}}
        base = self._bases[pointer]
        if isinstance(ref := result.get("$ref"), str):
            result["$ref"] = self._resolve(ref, base)
        # A dynamic reference that can mean only one place is a plain one.
        dynamic_ref = result.get("$dynamicRef")
        if isinstance(dynamic_ref, str) and "$ref" not in result and self._is_unique(urldefrag(dynamic_ref).fragment):
            target = self._resolve(dynamic_ref, base)
            if target.startswith("#") and is_schema(follow_pointer(self._root, unquote(target[1:]))):
                del result["$dynamicRef"]
                result["$ref"] = target
        if self._is_unique(str(result.get("$dynamicAnchor"))):
            result.pop("$dynamicAnchor", None)
        return map_subschemas(result, lambda part, tokens: self.rewrite(part, pointer + join_pointer(tokens)))

    def _is_unique(self, dynamic_anchor: str) -> bool:
        return self._dynamic_anchors[dynamic_anchor] <= 1

    def _resolve(self, ref: str, base: str) -> str:
        """Return a reference as a pointer into the document; unchanged if it leads elsewhere."""
        try:
            uri, fragment = urldefrag(base + ref if ref.startswith("#") else urljoin(base, ref))
        except ValueError:  # not a URI
            return ref
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            pointer = self._pointers.get(f"{uri}#{fragment}")
        else:
            pointer = self._pointers[uri] + fragment if uri in self._pointers else None
        if pointer is None or not is_schema(follow_pointer(self._root, pointer)):
            return UNRESOLVED_PREFIX + ref if ref.startswith("#") else ref
        return "#" + quote(pointer, safe=POINTER_SAFE_CHARACTERS)

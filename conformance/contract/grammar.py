"""Random schema documents over a small world of names and values, so that random values often fit them.

Every document has a few features of JSON Schema, drawn at random: with all of them at once, most
schemas would contradict themselves, and one that no value fits says nothing about a verdict.
"""

import random
from typing import Any

Json = Any

PROPERTY_NAMES = ("a", "b", "c", "x1")
SCALAR_VALUES = (None, True, False, -1, 0, 1, 2, 3, 0.5, "", "a", "ab", "abc", "b", "x1")
PATTERNS = ("^a", "b$", "^a?b*$", "^[a-c]+$", "[0-9]", "^x", "^(a|b){2}$", "c")
LONG_LIMITS = (60, 2_500, 5_000)
TYPE_NAMES = ("integer", "number", "string", "object", "array", "boolean", "null")

FEATURES = (
    *("references", "recursion", "patterns", "names", "dependencies", "unevaluated", "contains", "tuples"),
    *("alternatives", "conditions", "negations", "limits", "steps", "counts"),
)
FEATURES_PER_DOCUMENT = 4

MAX_DEPTH = 3
"""The depth of nested schemas. Deeper ones are found by random values too rarely."""

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
ROOT_ID = "https://schemas.example/root.json"
GENERIC_NAME = "Tree<Foo>"
"""A name that has to be percent-encoded in a reference, as generators write it for generic types."""


class SchemaGrammar:
    """Makes documents of one draft, with one way to write references."""

    def __init__(self, rng: random.Random, *, is_draft_7: bool) -> None:
        self._rng = rng
        self._is_draft_7 = is_draft_7
        self.features = frozenset(rng.sample(FEATURES, FEATURES_PER_DOCUMENT))
        self._definitions_keyword = "definitions" if is_draft_7 else "$defs"
        self._refs: list[str] = []
        """References that may be used anywhere below a property or an item."""
        self._in_place_refs: list[str] = []
        """References that may be used in the place itself: they never lead back to it."""

    def make_document(self) -> dict[str, Json]:
        """Make an object schema and, with references, the definitions that they lead to."""
        identity: dict[str, Json] = {"$schema": DRAFT_7} if self._is_draft_7 else {}
        if not self.features.isdisjoint({"references", "recursion"}):
            identity |= self._make_definitions()
        root = self._make_object(MAX_DEPTH)
        if not self.features.isdisjoint({"alternatives", "conditions", "negations"}) and self._rng.random() < 0.4:
            root.update(self._make_combination(MAX_DEPTH, of_objects=True))
        return {**root, **identity}

    def _make_definitions(self) -> dict[str, Json]:
        has_root_id = self._rng.random() < 0.5
        base = self._rng.choice((ROOT_ID, "root.json")) if has_root_id else ""
        pointer = f"{base}#/{self._definitions_keyword}"
        definition_refs = [f"{pointer}/one", "#node", f"{pointer}/Tree%3CFoo%3E"]
        definition_refs += [f"nested.json#/{self._definitions_keyword}/inner"] if has_root_id else []
        is_recursive = "recursion" in self.features
        self._refs = [*definition_refs, "#", "#"] if is_recursive else []
        anchor = {"$id": "#node"} if self._is_draft_7 else {"$anchor": "node"}
        definitions = {
            "one": self.make_schema(MAX_DEPTH - 1, allow_reference=False),
            "named": {**anchor, **self._make_object(MAX_DEPTH - 1)},
            GENERIC_NAME: self.make_schema(MAX_DEPTH - 1, allow_reference=False),
        }
        if has_root_id:
            self._refs = [ref for ref in self._refs if not ref.startswith("#")]  # those would lead elsewhere from there
            inner = {self._definitions_keyword: {"inner": self.make_schema(1, allow_reference=False)}}
            definitions["nested"] = {"$id": "nested.json", **inner}
        self._refs = [*definition_refs, "#"] if is_recursive else definition_refs
        self._in_place_refs = definition_refs
        return {self._definitions_keyword: definitions, **({"$id": ROOT_ID} if has_root_id else {})}

    def make_part(self, depth: int, *, is_guarded: bool, in_definition: bool) -> Json:
        """Make a schema for a place in the document, such that no value leads into an endless loop of references."""
        refs, in_place_refs = self._refs, self._in_place_refs
        self._in_place_refs = [] if in_definition else in_place_refs
        part = self.make_schema(depth, allow_reference=is_guarded)
        self._refs, self._in_place_refs = refs, in_place_refs
        return part

    def make_schema(self, depth: int, *, allow_reference: bool = True) -> Json:
        """Make a schema, which may be a reference."""
        if allow_reference and self._refs and self._rng.random() < 0.3:
            return {"$ref": self._rng.choice(self._refs)}
        if depth <= 0 or self._rng.random() < 0.35:
            return self._make_leaf()
        makers = [self._make_object, self._make_array]
        if not self.features.isdisjoint({"alternatives", "conditions", "negations"}):
            makers += [self._make_combination, self._make_combination]
        return self._rng.choice(makers)(depth)

    def _maybe(self, feature: str | None, **keywords: Json) -> dict[str, Json]:
        """Return keywords by chance, if the document has their feature."""
        is_used = feature is None or feature in self.features
        return keywords if is_used and self._rng.random() < 0.4 else {}

    def _make_leaf(self) -> Json:
        rng = self._rng
        match rng.choice(("string", "string", "integer", "number", "enum", "const", "types", "any")):
            case "string":
                return {
                    "type": "string",
                    **self._maybe("limits", minLength=rng.randint(0, 2)),
                    **self._maybe("limits", maxLength=rng.choice((2, 3, *LONG_LIMITS))),
                    **self._maybe("patterns", pattern=rng.choice(PATTERNS)),
                }
            case "integer" | "number" as kind:
                return {
                    "type": kind,
                    **self._maybe("limits", minimum=rng.randint(-1, 3)),
                    **self._maybe("limits", maximum=rng.choice((30, 60, 100))),
                    **self._maybe("steps", exclusiveMinimum=rng.randint(-1, 2)),
                    **self._maybe("steps", multipleOf=rng.choice((2, 3, 5, 0.5, 7))),
                }
            case "enum":
                return {"enum": rng.sample(SCALAR_VALUES, rng.randint(1, 4))}
            case "const":
                return {"const": rng.choice(SCALAR_VALUES)}
            case "types":
                return {"type": rng.sample(TYPE_NAMES, rng.randint(1, 3))}
        return rng.choice(({}, True, {"type": "object"}, {"type": "array"}, {"type": "boolean"}, False))

    def _make_object(self, depth: int) -> dict[str, Json]:
        rng = self._rng
        names = rng.sample(PROPERTY_NAMES, rng.randint(1, 3))
        properties = {name: self.make_schema(depth - 1) for name in names}
        # A reference that is required might require itself, and no value would ever end.
        requirable = [name for name, part in properties.items() if part is not False and "$ref" not in str(part)]
        schema: dict[str, Json] = {
            "type": "object",
            "properties": properties,
            **(self._maybe(None, required=requirable[: rng.randint(1, 2)]) if requirable else {}),
            **self._maybe(None, additionalProperties=rng.choice((False, False, self.make_schema(depth - 1)))),
            **self._maybe("patterns", patternProperties={rng.choice(PATTERNS): self.make_schema(depth - 1)}),
            **self._maybe("names", propertyNames=self._make_name_schema(names)),
            **self._maybe("counts", minProperties=rng.randint(0, 2)),
            **self._maybe("counts", maxProperties=rng.choice((2, 3, 60))),
            **self._make_dependencies(depth),
        }
        if not self._is_draft_7 and schema.get("additionalProperties") is None:
            schema.update(self._maybe("unevaluated", unevaluatedProperties=rng.choice((False, self._make_leaf()))))
        if self._in_place_refs and not self._is_draft_7 and rng.random() < 0.1:
            schema["$ref"] = rng.choice(self._in_place_refs)
        return schema

    def _make_name_schema(self, names: list[str]) -> Json:
        rng = self._rng
        enum = sorted({*names, *rng.sample(PROPERTY_NAMES, 1)})
        return rng.choice(({"enum": enum}, {"pattern": "^[a-x]"}, {"maxLength": rng.randint(2, 3)}, {"minLength": 1}))

    def _make_dependencies(self, depth: int) -> dict[str, Json]:
        rng = self._rng
        name, other = rng.sample(PROPERTY_NAMES, 2)
        if "dependencies" not in self.features or depth <= 0:
            return {}
        if self._is_draft_7:
            part = [other] if rng.random() < 0.5 else self._make_object(depth - 1)
            return self._maybe(None, dependencies={name: part})
        return {
            **self._maybe(None, dependentRequired={name: [other]}),
            **self._maybe(None, dependentSchemas={name: self._make_object(depth - 2)}),
        }

    def _make_array(self, depth: int) -> dict[str, Json]:
        rng = self._rng
        tuple_keyword, rest_keyword = ("items", "additionalItems") if self._is_draft_7 else ("prefixItems", "items")
        schema: dict[str, Json] = {
            "type": "array",
            **self._maybe("counts", minItems=rng.randint(0, 2)),
            **self._maybe("counts", maxItems=rng.choice((2, 3, 60))),
            **self._maybe("counts", uniqueItems=True),
            **self._maybe("contains", contains=self._make_leaf()),
        }
        if "tuples" in self.features and rng.random() < 0.6:
            schema[tuple_keyword] = [self.make_schema(depth - 1) for _ in range(rng.randint(1, 2))]
            schema.update(self._maybe(None, **{rest_keyword: self.make_schema(depth - 1)}))
        elif rng.random() < 0.7:
            schema["items"] = self.make_schema(depth - 1)
        if not self._is_draft_7:
            schema.update(self._maybe("contains", minContains=rng.randint(0, 2)) if "contains" in schema else {})
            schema.update(self._maybe("unevaluated", unevaluatedItems=rng.choice((False, self._make_leaf()))))
        return schema

    def _make_combination(self, depth: int, *, of_objects: bool = False) -> dict[str, Json]:
        rng = self._rng
        keywords = {"alternatives": ("anyOf", "oneOf", "allOf"), "conditions": ("if",), "negations": ("not",)}
        keyword = rng.choice([word for name, words in keywords.items() if name in self.features for word in words])
        of_objects = of_objects or keyword == "allOf"
        if keyword == "not":
            return {"not": {"required": rng.sample(PROPERTY_NAMES, 2)} if of_objects else {"enum": ["a", 1, None]}}
        branches = [self._make_branch(depth - 1, of_objects=of_objects) for _ in range(rng.randint(2, 3))]
        if keyword == "if":
            return dict(zip(("if", "then", "else"), branches, strict=False))
        return {keyword: branches}

    def _make_branch(self, depth: int, *, of_objects: bool) -> Json:
        """Make a schema for the same value as the one around it."""
        if self._in_place_refs and self._rng.random() < 0.2:
            return {"$ref": self._rng.choice(self._in_place_refs)}
        if of_objects or (depth > 0 and self._rng.random() < 0.6):
            return self._make_object(max(depth, 0))
        return self._make_leaf()

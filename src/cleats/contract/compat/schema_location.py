"""A place inside a schema document, and the ways to the places below it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from cleats.contract.compat.containment import NO_NAMES, PropertyNames
from cleats.contract.compat.keywords import (
    IN_PLACE_KEYWORDS,
    STRUCTURE_KEYWORDS,
    Schema,
    find_property_names,
    is_annotation,
    resolve_reference,
)
from cleats.contract.pointer import join_pointer


@dataclass(frozen=True, slots=True)
class SchemaLocation:
    """A schema inside a document, its pointer, and the names that outer schemas mention."""

    schema: Schema
    pointer: str
    root: Schema
    outer_names: PropertyNames = NO_NAMES
    is_required: bool = False
    """True for a property that always has to be there."""

    def descend(self, *parts: str | int) -> "SchemaLocation":
        """Return the schema at a keyword below; an absent one accepts everything."""
        subschema: Any = self.schema
        for part in parts:
            if isinstance(subschema, list):
                subschema = subschema[int(part)]
            else:
                subschema = subschema.get(part, True) if isinstance(subschema, dict) else True
        outer_names = self.known_names if parts[0] in IN_PLACE_KEYWORDS else NO_NAMES
        is_required = parts[0] == "properties" and parts[-1] in self.body.get("required", [])
        return SchemaLocation(subschema, self.pointer + join_pointer(parts), self.root, outer_names, is_required)

    def follow_reference(self, ref: str) -> "SchemaLocation | None":
        """Return the location that a reference leads to, or None if it is outside the document."""
        referenced_schema = resolve_reference(self.root, ref)
        return (
            None
            if referenced_schema is None
            else SchemaLocation(referenced_schema, unquote(ref[1:]), self.root, self.known_names)
        )

    def point_to_property(self, name: str) -> str:
        """Return the pointer to a property, or to the list that requires it if it has no schema."""
        has_schema = name in self.body.get("properties", {})
        return self.pointer + join_pointer(("properties", name) if has_schema else ("required",))

    def resolve_bare_reference(self, other: "SchemaLocation") -> "SchemaLocation":
        """Return the target of a bare reference, unless the other side is a reference as well."""
        ref = self.body.get("$ref")
        if ref is None or "$ref" in other.body:
            return self
        is_bare = all(keyword in {"$ref", *STRUCTURE_KEYWORDS} or is_annotation(keyword) for keyword in self.body)
        return (self.follow_reference(ref) or self) if is_bare else self

    @property
    def known_names(self) -> PropertyNames:
        """The property names that this schema, or one around it, mentions."""
        return self.outer_names | find_property_names(self.schema, self.root)

    @property
    def body(self) -> dict[str, Any]:
        return self.schema if isinstance(self.schema, dict) else {}

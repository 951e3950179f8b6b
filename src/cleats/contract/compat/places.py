"""Places in a schema: where the walk is, in both documents at once."""

from dataclasses import dataclass
from typing import Any

from cleats.contract.compat.additions import NOBODY, Names
from cleats.contract.compat.keywords import IN_PLACE, WORDS, Schema, names, old_draft, target
from cleats.contract.pointer import pointer


@dataclass(frozen=True, slots=True)
class Place:
    """A schema inside a document, the way there, and the names that are spoken of around it."""

    schema: Schema
    pointer: str
    root: Schema
    around: Names = NOBODY

    def down(self, *parts: str | int) -> "Place":
        """The schema at a keyword below; an absent one lets everything pass."""
        found: Any = self.schema
        for part in parts:
            if isinstance(found, list):
                found = found[int(part)]
            else:
                found = found.get(part, True) if isinstance(found, dict) else True
        around = self.known if parts[0] in IN_PLACE else NOBODY
        return Place(found, self.pointer + pointer(parts), self.root, around)

    def to(self, ref: str) -> "Place | None":
        """What a reference here leads to; None when that is outside of the document."""
        found = target(self.root, ref)
        return None if found is None else Place(found, ref[1:], self.root, self.known)

    def of(self, name: str) -> str:
        """The pointer to a property, or to the list that demands it when it has no schema."""
        declared = name in self.body.get("properties", {})
        return self.pointer + pointer(("properties", name) if declared else ("required",))

    def followed(self, other: "Place") -> "Place":
        """What a bare reference leads to, when the other side is not one as well."""
        ref = self.body.get("$ref")
        if ref is None or "$ref" in other.body:
            return self
        bare = not (self.body.keys() - WORDS - {"$ref"}) or old_draft(self.root)
        return (self.to(ref) or self) if bare else self

    @property
    def known(self) -> Names:
        """The names that this schema, or one around it, speaks of."""
        return self.around | names(self.schema, self.root)

    @property
    def body(self) -> dict[str, Any]:
        return self.schema if isinstance(self.schema, dict) else {}

"""Optional additions are forgiven before anything is proved.

By proof alone, a new optional property is never safe: a closed output schema forbade it, and an
open input schema let any value pass under its name. Yet additions are what a MINOR version is
for. So the old schema is first brought up to date with the names that are only new:

- on the input side a new name is `false` in the old schema: no caller was sending it;
- on the output side it is `true`: a reader passes over what it does not know.

The rest is then proved as it stands. A value that does not use a new name fares exactly as it did
under the old schema, wherever in the schema that name was added.

Not forgiven: a new name that the input requires, and a name that the old schema spoke of already,
be it by a pattern, a schema for additional properties, or another part that describes the same
value, since callers may well use it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import jsonschema_rs

from cleats.contract.compat.keywords import (
    IN_PLACE,
    LISTS,
    Schema,
    as_object,
    crossing,
    everywhere,
    names,
    pairs,
)
from cleats.contract.compat.sides import Side

CATCH_ALL: Final = ("additionalProperties", "unevaluatedProperties")
Names = frozenset[str]
NOBODY: Final[Names] = frozenset()


@dataclass(frozen=True)
class Additions:
    """What may be added to a document on one side of the contract.

    `around` are the names that the schemas speak of in which the one at hand stands.
    """

    root: Schema
    side: Side

    def forgive(self, old: Schema, new: Schema, around: Names = NOBODY) -> Schema:
        """The old schema, brought up to date with the optional names that the new one adds."""
        if isinstance(old, bool) or isinstance(new, bool):
            return old
        merged = dict(old)
        for name in self.names(old, new, around):
            value = self.side is not Side.INPUT
            merged["properties"] = {**merged.get("properties", {}), name: value}
        here = around | names(old, self.root)
        for keyword in old.keys() & new.keys():
            inside = here if keyword in IN_PLACE else NOBODY
            merged[keyword] = self._part(keyword, merged[keyword], new[keyword], inside)
        return merged

    def _part(self, keyword: str, old: Any, new: Any, around: Names) -> Any:
        both = (old, new)
        if keyword in FAMILIES and all(isinstance(part, dict) for part in both):
            return {
                name: self.forgive(part, new[name], around) if name in new else part
                for name, part in old.items()
            }
        if keyword in LISTS and all(isinstance(part, list) for part in both):
            merged = list(old)
            for left, right in pairs(old, new) or []:
                merged[left] = self.forgive(old[left], new[right], around)
            return merged
        if keyword in LONERS and all(isinstance(part, dict) for part in both):
            return self.forgive(old, new, around)
        return old

    def names(self, old: dict[str, Any], new: dict[str, Any], around: Names = NOBODY) -> list[str]:
        """The names that are new here and that no caller or reader can trip over."""
        if any(as_object(old.get(keyword, {})) not in OPEN_OR_SHUT for keyword in CATCH_ALL):
            return []
        demanded = set(new.get("required", [])) if self.side is Side.INPUT else set()
        taken = around | names(old, self.root) | self._elsewhere | demanded
        fresh = [name for name in new.get("properties", {}) if name not in taken]
        return [name for name in fresh if not _matched(name, old)]

    @cached_property
    def _elsewhere(self) -> set[str]:
        """Where descriptions cross, a name that occurs anywhere may be known everywhere."""
        if not crossing(self.root):
            return set()
        return {name for part in everywhere(self.root) for name in names(part, self.root)}


FAMILIES: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
LONERS: Final = ("additionalProperties", "items", "then", "else", "contains")
OPEN_OR_SHUT: Final[tuple[dict[str, Any], ...]] = ({}, {"not": {}})


def _matched(name: str, schema: dict[str, Any]) -> bool:
    # Not with `re`: another server's pattern could keep it busy for ever.
    patterns = schema.get("patternProperties", {})
    try:
        return any(jsonschema_rs.is_valid({"pattern": pattern}, name) for pattern in patterns)
    except ValueError:
        return True

"""Optional additions are forgiven before anything is proved.

By proof alone, a new optional property is never safe: a closed output schema forbade it, and an
open input schema let any value pass under its name. Yet additions are what a MINOR version is
for. So the old schema is first brought up to date with the names that are only new:

- on the input side a new name is `false` in the old schema: no caller was sending it;
- on the output side it is `true`: a reader passes over what it does not know.

The rest is then proved as it stands. A value that does not use a new name fares exactly as it did
under the old schema, wherever in the schema that name was added.

Not forgiven: a new name that the input requires, and a name that the old schema had something to
say about (a pattern, a schema for additional properties), since callers may well use it.
"""

import re
from typing import Any

from cleats.contract.compat.keywords import LISTS, Schema, pairs
from cleats.contract.compat.sides import Side

CATCH_ALL = ("additionalProperties", "unevaluatedProperties")


def forgive(old: Schema, new: Schema, side: Side) -> Schema:
    """The old schema, brought up to date with the optional names that the new one adds."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old
    merged = dict(old)
    for name in added(old, new, side):
        merged["properties"] = {**merged.get("properties", {}), name: side is not Side.INPUT}
    for keyword in ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"):
        if isinstance(old.get(keyword), dict) and isinstance(new.get(keyword), dict):
            merged[keyword] = _parts(merged[keyword], new[keyword], side)
    for keyword in ("additionalProperties", "items", "then", "else", "contains"):
        if isinstance(old.get(keyword), dict) and isinstance(new.get(keyword), dict):
            merged[keyword] = forgive(old[keyword], new[keyword], side)
    for keyword in LISTS:
        if isinstance(old.get(keyword), list) and isinstance(new.get(keyword), list):
            merged[keyword] = _branches(old[keyword], new[keyword], side)
    return merged


def _parts(old: dict[str, Any], new: dict[str, Any], side: Side) -> dict[str, Any]:
    return {
        name: forgive(part, new[name], side) if name in new else part for name, part in old.items()
    }


def _branches(old: list[Any], new: list[Any], side: Side) -> list[Any]:
    merged = list(old)
    for left, right in pairs(old, new) or []:
        merged[left] = forgive(old[left], new[right], side)
    return merged


def added(old: dict[str, Any], new: dict[str, Any], side: Side) -> list[str]:
    """The names that are new here and that no caller or reader can trip over."""
    if any(isinstance(old.get(keyword), dict) for keyword in CATCH_ALL):
        return []
    known = old.get("properties", {})
    demanded = new.get("required", []) if side is Side.INPUT else []
    return [
        name
        for name in new.get("properties", {})
        if name not in known and name not in demanded and not _matched(name, old)
    ]


def _matched(name: str, schema: dict[str, Any]) -> bool:
    try:
        return any(re.search(pattern, name) for pattern in schema.get("patternProperties", {}))
    except re.error:  # JSON Schema's dialect, not Python's
        return True

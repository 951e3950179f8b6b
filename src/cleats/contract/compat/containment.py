"""The containment test: does one schema accept everything that another accepts? Yes, no, undecided.

Wraps `covers` of jsonschema-rs, an experimental call that has never been seen to say yes wrongly
(`tests/contract/compat/test_compat.py` keeps looking). Undecided stays undecided: the caller counts it as breaking.

Optional additions are accepted before anything is proved. By proof alone, a new optional property
is never safe: a closed output schema forbade it, and an open input schema let any value pass under
its name. Yet MINOR versions exist for additions. So the old schema is first extended by the names
that are merely new:

- on the input side a new name is `false` in the old schema: no caller was sending it;
- on the output side it is `true`: a reader ignores what it does not know.

The rest is then proved unchanged. A value that does not use a new name is judged exactly as under
the old schema, wherever in the schema that name was added.

Not accepted: a new name that the input requires, and a name that the old schema already mentioned,
whether by a pattern, by a schema for additional properties, or in another part that describes the
same value, since callers may well use it.
"""

from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Any, Final

import jsonschema_rs
from jsonschema_rs import canonical

from cleats.contract.arguments import RESERVED_KEYWORD
from cleats.contract.compat.findings import ContractSide
from cleats.contract.compat.keywords import (
    IN_PLACE_KEYWORDS,
    INSEPARABLE_KEYWORDS,
    SCHEMA_LIST_KEYWORDS,
    SCHEMA_MAP_KEYWORDS,
    SINGLE_SCHEMA_KEYWORDS,
    Schema,
    find_property_names,
    has_crossing_descriptions,
    is_recursive,
    pair_branches,
    to_object_schema,
    walk_schemas,
)


class CoverageVerdict(Enum):
    YES = auto()
    NO = auto()
    UNKNOWN = auto()


def check_coverage(large: Schema, small: Schema) -> CoverageVerdict:
    """Decide if `large` accepts every value that `small` accepts.

    Servers differ in whether they enforce `format`, so the result has to hold both ways.
    """
    large, small = expand_reserved(large), expand_reserved(small)
    if _can_crash_prover(large) or _can_crash_prover(small):
        return CoverageVerdict.UNKNOWN
    verdicts = {_check_canonical_coverage(large, small, formats=formats) for formats in (True, False)}
    if CoverageVerdict.NO in verdicts:
        return CoverageVerdict.NO
    return CoverageVerdict.YES if verdicts == {CoverageVerdict.YES} else CoverageVerdict.UNKNOWN


def _check_canonical_coverage(large: Schema, small: Schema, *, formats: bool) -> CoverageVerdict:
    try:
        large_canonical, small_canonical = (
            jsonschema_rs.canonicalize(schema, validate_formats=formats, offline=True) for schema in (large, small)
        )
        answer = large_canonical.covers(small_canonical)
    except ValueError:  # no valid schema, a reference out of the document, an unknown dialect
        return CoverageVerdict.UNKNOWN
    if answer is canonical.Containment.YES:
        return CoverageVerdict.YES
    return CoverageVerdict.NO if answer is canonical.Containment.NO else CoverageVerdict.UNKNOWN


def _can_crash_prover(schema: Schema) -> bool:
    # A recursive schema with `unevaluatedProperties` can make jsonschema-rs 0.60 overflow its
    # stack, which ends the process and cannot be caught. Such schemas are not submitted to it.
    parts = (part for part in walk_schemas(schema) if isinstance(part, dict))
    return any(not INSEPARABLE_KEYWORDS.isdisjoint(part) for part in parts) and is_recursive(schema)


def expand_reserved(schema: Schema) -> Schema:
    """Replace reserved properties, which are refused when set, by `false` in plain JSON Schema."""
    if isinstance(schema, bool):
        return schema
    if schema.get(RESERVED_KEYWORD):
        return False
    plain = dict(schema)
    for keyword in SCHEMA_MAP_KEYWORDS:
        if isinstance(value := plain.get(keyword), dict):
            plain[keyword] = {name: expand_reserved(part) for name, part in value.items()}
    for keyword in (*SCHEMA_LIST_KEYWORDS, *SINGLE_SCHEMA_KEYWORDS):
        value = plain.get(keyword)
        if isinstance(value, dict):
            plain[keyword] = expand_reserved(value)
        elif isinstance(value, list):
            plain[keyword] = [expand_reserved(part) for part in value]
    return plain


CATCH_ALL_KEYWORDS: Final = ("additionalProperties", "unevaluatedProperties")
PropertyNames = frozenset[str]
NO_NAMES: Final[PropertyNames] = frozenset()


@dataclass(frozen=True)
class OptionalAdditions:
    """The optional names that may be added to a document on one side of the contract.

    `outer_names` are the property names that the schemas around the current one mention.
    """

    root: Schema
    side: ContractSide
    strict: bool = False
    """With the strict rule set nothing is allowed that a validator with the old schema would notice."""

    def add_optional_names(self, old: Schema, new: Schema, outer_names: PropertyNames = NO_NAMES) -> Schema:
        """Return the old schema extended by the optional names that the new one adds."""
        if isinstance(old, bool) or isinstance(new, bool):
            return old
        merged = dict(old)
        for name in self.find_optional_names(old, new, outer_names):
            value = self.side is not ContractSide.INPUT
            merged["properties"] = {**merged.get("properties", {}), name: value}
        known_names = outer_names | find_property_names(old, self.root)
        for keyword in old.keys() & new.keys():
            inner_names = known_names if keyword in IN_PLACE_KEYWORDS else NO_NAMES
            merged[keyword] = self._merge_keyword(keyword, merged[keyword], new[keyword], inner_names)
        return merged

    def _merge_keyword(self, keyword: str, old: Any, new: Any, outer_names: PropertyNames) -> Any:
        values = (old, new)
        if keyword in SCHEMA_MAP_KEYWORDS and all(isinstance(part, dict) for part in values):
            return {
                name: self.add_optional_names(part, new[name], outer_names) if name in new else part
                for name, part in old.items()
            }
        if keyword in SCHEMA_LIST_KEYWORDS and all(isinstance(part, list) for part in values):
            merged = list(old)
            for old_index, new_index in pair_branches(old, new) or []:
                merged[old_index] = self.add_optional_names(old[old_index], new[new_index], outer_names)
            return merged
        if keyword in MERGED_SINGLE_KEYWORDS and all(isinstance(part, dict) for part in values):
            return self.add_optional_names(old, new, outer_names)
        return old

    def find_optional_names(
        self, old: dict[str, Any], new: dict[str, Any], outer_names: PropertyNames = NO_NAMES
    ) -> list[str]:
        """Return the names that are new here and that cannot break any caller or reader."""
        if self.strict:
            return []
        if any(to_object_schema(old.get(keyword, {})) not in OPEN_OR_CLOSED_SCHEMAS for keyword in CATCH_ALL_KEYWORDS):
            return []
        required_names = set(new.get("required", [])) if self.side is ContractSide.INPUT else set()
        taken_names = outer_names | find_property_names(old, self.root) | self._crossing_names | required_names
        new_names = [name for name in new.get("properties", {}) if name not in taken_names]
        return [name for name in new_names if not _matches_pattern_property(name, old)]

    @cached_property
    def _crossing_names(self) -> set[str]:
        """All names in the document if descriptions cross: each may be known everywhere."""
        if not has_crossing_descriptions(self.root):
            return set()
        return {name for part in walk_schemas(self.root) for name in find_property_names(part, self.root)}


MERGED_SINGLE_KEYWORDS: Final = ("additionalProperties", "items", "then", "else", "contains")
OPEN_OR_CLOSED_SCHEMAS: Final[tuple[dict[str, Any], ...]] = ({}, {"not": {}})


def _matches_pattern_property(name: str, schema: dict[str, Any]) -> bool:
    # Not with `re`: a pattern of another server could make it run forever.
    patterns = schema.get("patternProperties", {})
    try:
        return any(jsonschema_rs.is_valid({"pattern": pattern}, name) for pattern in patterns)
    except ValueError:
        return True

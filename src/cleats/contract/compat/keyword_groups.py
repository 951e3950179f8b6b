"""Decisions about a group of keywords of one schema, seen in isolation from the rest of its document."""

from typing import Any, Final

from cleats.contract.compat.containment import (
    CoverageVerdict,
    OptionalAdditions,
    PropertyNames,
    check_coverage,
)
from cleats.contract.compat.keywords import (
    DEFINITION_KEYWORDS,
    IN_PLACE_KEYWORDS,
    INSEPARABLE_KEYWORDS,
    Schema,
    find_changed_keywords,
    has_references,
    is_same_json,
    list_references,
    map_subschemas,
    pick_definitions,
    resolve_reference,
)
from cleats.contract.compat.patterns import UnsupportedPatternError, find_unmatched_text
from cleats.contract.compat.witness import find_disagreements

EVALUATING_KEYWORDS: Final = frozenset({*IN_PLACE_KEYWORDS, "contains", "$ref", "$dynamicRef", "$recursiveRef"})
"""Keywords that evaluate a property or an item only if it fits, which `unevaluatedProperties` depends on."""


class KeywordGroups:
    """Two documents, of which groups of keywords are compared."""

    def __init__(self, old: Schema, new: Schema, additions: OptionalAdditions) -> None:
        self._old = old
        self._new = new
        self._additions = additions
        self._extended_old = additions.add_optional_names(old, new)
        self._next_refs: dict[str, set[str] | None] = {}

    def is_unchanged(self, old: Schema, new: Schema) -> bool:
        """Return True for equal schemas that lead only to equal schemas, if they have references."""
        if not is_same_json(old, new):
            return False
        waiting, followed = list_references(old), set[str]()
        while waiting:
            ref = waiting.pop()
            next_refs = self._follow_unchanged(ref)
            if next_refs is None:
                return False
            followed.add(ref)
            waiting |= next_refs - followed
        return True

    def _follow_unchanged(self, ref: str) -> set[str] | None:
        """Return the references in the target of a reference, or None if that changed or is not found."""
        if ref not in self._next_refs:
            old_target, new_target = resolve_reference(self._old, ref), resolve_reference(self._new, ref)
            is_same = old_target is not None and new_target is not None and is_same_json(old_target, new_target)
            self._next_refs[ref] = list_references(new_target or {}) if is_same else None
        return self._next_refs[ref]

    def decide(
        self, old: dict[str, Any], new: dict[str, Any], outer_names: PropertyNames, *, reverse: bool = False
    ) -> CoverageVerdict:
        """Decide if a group of keywords changed safely, seen in isolation.

        With `reverse`, decide the opposite direction.
        """
        before, after = ({**pick_definitions(root), **group} for root, group in ((self._old, old), (self._new, new)))
        extended = self._additions.add_optional_names(before, after, outer_names)
        small, large = self._additions.side.order_pair(
            _cut_out_keywords(extended, self._extended_old), _cut_out_keywords(after, self._new)
        )
        return decide_coverage(large, small) if reverse else decide_coverage(small, large)


def decide_coverage(small: Schema, large: Schema) -> CoverageVerdict:
    """Ask the prover, and search for a witness if it cannot decide."""
    verdict = check_coverage(large, small)
    if verdict is CoverageVerdict.UNKNOWN and _is_pattern_contained(small, large):
        return CoverageVerdict.YES
    if verdict is CoverageVerdict.UNKNOWN and next(find_disagreements(small, large), None) is not None:
        return CoverageVerdict.NO
    return verdict


def _is_pattern_contained(small: Schema, large: Schema) -> bool:
    """Return True if two schemas differ only in a pattern, and the large one matches more."""
    if isinstance(small, bool) or isinstance(large, bool) or "pattern" not in small:
        return False
    if find_changed_keywords(small, large, (small.keys() | large.keys()) - {"pattern"}):
        return False
    try:
        return find_unmatched_text(small["pattern"], large.get("pattern", "")) is None
    except UnsupportedPatternError:
        return False


def _cut_out_keywords(group: Schema, root: Schema) -> Schema:
    """Return keywords as a document, with the one that they come from if they refer to it."""
    if isinstance(group, bool):
        return group
    keywords = {keyword: value for keyword, value in group.items() if keyword not in DEFINITION_KEYWORDS}
    if not has_references(keywords):
        return keywords
    return {**_move_references(keywords), "$defs": {"document": _move_references(root)}}


def _move_references(schema: Schema) -> Any:
    """Let references into a document lead to the same places in one that holds it as a definition."""
    if isinstance(schema, bool):
        return schema
    ref = schema.get("$ref")
    moved = {**schema, "$ref": f"#/$defs/document{ref[1:]}"} if isinstance(ref, str) and ref[:1] == "#" else schema
    return map_subschemas(moved, lambda part, _tokens: _move_references(part))


def is_inseparable(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return True if what a keyword of one of the schemas applies to can depend on what its neighbours accept."""
    if INSEPARABLE_KEYWORDS.isdisjoint(old) and INSEPARABLE_KEYWORDS.isdisjoint(new):
        return False
    if any(not EVALUATING_KEYWORDS.isdisjoint(schema) for schema in (old, new)):
        return True
    return _describe_evaluated_parts(old) != _describe_evaluated_parts(new)


def _describe_evaluated_parts(schema: dict[str, Any]) -> tuple[Any, ...]:
    names = [sorted(schema.get(keyword, {})) for keyword in ("properties", "patternProperties")]
    return (*names, "additionalProperties" in schema, "items" in schema, len(schema.get("prefixItems", [])))

"""The walk over two schemas in parallel, which names every change at its location.

The walk names changes, the prover decides about them. Where a schema is a conjunction of parts
(each property, the items, the branches of an `anyOf`), a schema whose parts all accept more accepts
more itself; so when the prover cannot decide about the whole (recursion, size), the walk's `sound`
still can.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cleats.contract.compat.containment import (
    CATCH_ALL_KEYWORDS,
    CoverageVerdict,
    OptionalAdditions,
    PropertyNames,
    expand_reserved,
)
from cleats.contract.compat.findings import (
    ChangeKind,
    ContractSide,
    SchemaChange,
    describe_changed_keywords,
    quote_name,
)
from cleats.contract.compat.keyword_groups import KeywordGroups, is_inseparable
from cleats.contract.compat.keywords import (
    ASSERTION_KEYWORDS,
    KNOWN_KEYWORDS,
    MEANING_KEYWORD,
    MEANING_KEYWORDS,
    STRUCTURE_KEYWORDS,
    Schema,
    encode_canonical,
    find_changed_keywords,
    find_described_names,
    is_annotation,
    is_same_json,
    list_possible_types,
    list_types,
    pair_branches,
    pick_keywords,
    to_object_schema,
)
from cleats.contract.compat.renames import is_similar_name
from cleats.contract.compat.schema_location import SchemaLocation
from cleats.contract.compat.text_diff import TextChange, describe_text_change
from cleats.contract.pointer import join_pointer

REMARK_KEYWORDS: Final = frozenset({"default", *MEANING_KEYWORDS, *STRUCTURE_KEYWORDS})
"""Keywords that are compared as remarks, or not at all."""

OPEN_BY_DEFAULT_KEYWORDS: Final = (
    *("additionalProperties", "propertyNames", "items"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
"""The keywords that hold one schema and, when absent, accept everything."""


class ChangedPlace(NamedTuple):
    """The pointers to a change in the new and in the old document."""

    new: str
    old: str


@dataclass
class SchemaWalk:
    """One comparison. `sound` is True if the parts prove that the change is safe."""

    old: Schema
    new: Schema
    side: ContractSide
    strict: bool = False
    changes: list[SchemaChange] = field(default_factory=list)
    sound: bool = True
    additions: OptionalAdditions = field(init=False)
    _visited: set[tuple[str, str]] = field(default_factory=set)
    _groups: KeywordGroups = field(init=False)

    def __post_init__(self) -> None:
        self.additions = OptionalAdditions(self.old, self.side, self.strict)
        self._groups = KeywordGroups(self.old, self.new, self.additions)

    def run(self) -> "SchemaWalk":
        self._compare_nodes(SchemaLocation(self.old, "", self.old), SchemaLocation(self.new, "", self.new))
        return self

    def _add_change(
        self, kind: ChangeKind, path: str, message: str, name: str | None = None, old_path: str | None = None
    ) -> None:
        self.changes.append(SchemaChange(kind, path, message, name, old_pointer=old_path))

    # One node

    def _compare_nodes(self, old: SchemaLocation, new: SchemaLocation) -> None:
        if self._groups.is_unchanged(old.schema, new.schema):
            return
        if (old.pointer, new.pointer) in self._visited:
            return
        self._visited.add((old.pointer, new.pointer))
        # A value that becomes another one changes where it is used, not where a reference leads to.
        place = ChangedPlace(new.pointer, old.pointer)
        old, new = old.resolve_bare_reference(new), new.resolve_bare_reference(old)
        if isinstance(old.schema, bool) or isinstance(new.schema, bool):
            self._compare_leaves(place, to_object_schema(old.schema), to_object_schema(new.schema), old.outer_names)
            return
        self._compare_remarks(old, new)
        before, after = (
            {key: value for key, value in body.items() if key not in REMARK_KEYWORDS and not is_annotation(key)}
            for body in (old.body, new.body)
        )
        if _is_another_shape(before, after) or (new.pointer and not (before and after)):
            self._compare_leaves(place, before, after, old.outer_names)
            return
        self._compare_properties(old, new)
        self._compare_parts(old, new)
        self._compare_keywords(ASSERTION_KEYWORDS, "", old, new)
        if is_inseparable(old.body, new.body):
            self.sound &= self._groups.decide(old.body, new.body, old.outer_names) is CoverageVerdict.YES

    def _compare_remarks(self, old: SchemaLocation, new: SchemaLocation) -> None:
        """Compare documentation, defaults and meanings, which a validator does not look at."""
        keywords = old.body.keys() | new.body.keys()
        documentation_changes = find_changed_keywords(old.body, new.body, filter(is_annotation, keywords))
        if documentation_changes:
            texts = TextChange(*(_join_texts(body, documentation_changes) for body in (old.body, new.body)))
            words = describe_text_change(*texts)
            message = f"{_format_keywords(documentation_changes)} changed: {words}"
            self.changes.append(SchemaChange(ChangeKind.DOCS_CHANGED, new.pointer, message, text_change=texts))
        if not _is_same_default(old.body, new.body):
            message = describe_changed_keywords(old.body, new.body, ["default"])
            self._add_change(self._classify_default_change(old, new), new.pointer, message)
        if any(_get_meaning(old.body, keyword) != _get_meaning(new.body, keyword) for keyword in MEANING_KEYWORDS):
            meanings = find_changed_keywords(old.body, new.body, MEANING_KEYWORDS)
            message = describe_changed_keywords(old.body, new.body, meanings)
            self._add_change(ChangeKind.MEANING_CHANGED, new.pointer, message)
        unknown_keywords = find_changed_keywords(
            old.body, new.body, (keyword for keyword in keywords - KNOWN_KEYWORDS if not is_annotation(keyword))
        )
        if unknown_keywords:
            message = describe_changed_keywords(old.body, new.body, unknown_keywords)
            self._add_change(ChangeKind.UNKNOWN_KEYWORD, new.pointer, f"{message} Cleats does not know what it means.")

    def _classify_default_change(self, old: SchemaLocation, new: SchemaLocation) -> ChangeKind:
        if self.side is not ContractSide.INPUT:
            return ChangeKind.DEFAULT_CHANGED
        is_stated = "default" in new.body
        if old.is_required and (new.is_required or not is_stated):
            return ChangeKind.DOCS_CHANGED  # no caller left it out
        if not is_stated and old.body["default"] is None:
            return ChangeKind.DOCS_CHANGED
        return ChangeKind.DEFAULT_STATED if old.is_required or "default" not in old.body else ChangeKind.DEFAULT_CHANGED

    # Properties

    def _compare_properties(self, old: SchemaLocation, new: SchemaLocation) -> None:
        before: dict[str, Schema] = old.body.get("properties", {})
        after: dict[str, Schema] = new.body.get("properties", {})
        # A name that only moved, into an `allOf` say, is neither gone nor new: ask the prover.
        removed_names = sorted(before.keys() - find_described_names(new.schema, self.new) - new.outer_names)
        added_names = sorted(after.keys() - before.keys() - old.known_names)
        new_names = _find_renames(before, after, removed_names, added_names)
        for name in sorted(before.keys() & after.keys()):
            self._compare_nodes(old.descend("properties", name), new.descend("properties", name))
        for name in removed_names:
            path = old.pointer + join_pointer(("properties", name))
            if expand_reserved(before[name]) is False:
                self._add_change(ChangeKind.REWRITTEN, path, f"{quote_name(name)} was refused anyway.")
            elif name in new_names:
                message = f"{quote_name(name)} is now called {quote_name(new_names[name])}."
                self._add_change(ChangeKind.PROPERTY_RENAMED, path, message, name)
            else:
                self._add_change(ChangeKind.PROPERTY_REMOVED, path, f"{quote_name(name)} is gone.", name)
        explained_names = {*new_names.values(), *new.body.get("required", [])}
        for name in [name for name in added_names if name not in explained_names]:
            path = new.pointer + join_pointer(("properties", name))
            self._add_change(ChangeKind.PROPERTY_ADDED, path, f"{quote_name(name)} is new and optional.", name)
        allowed_names = before.keys() | self.additions.find_optional_names(old.body, new.body, old.outer_names)
        # Where an output was open, a schema for a new name only takes values away.
        takes_away = self.side is not ContractSide.INPUT and old.body.get("additionalProperties", True) in (True, {})
        self.sound &= before.keys() <= after.keys() and (takes_away or after.keys() <= allowed_names)
        self._compare_required(old, new, reported_names={*removed_names, *new_names.values()})

    def _compare_required(self, old: SchemaLocation, new: SchemaLocation, *, reported_names: set[str]) -> None:
        before, after = set(old.body.get("required", [])), set(new.body.get("required", []))
        for name in sorted(after - before - reported_names):
            message = f"{quote_name(name)} is now required."
            self._add_change(ChangeKind.REQUIRED_ADDED, new.point_to_property(name), message, name)
        for name in sorted(before - after - reported_names):
            message = f"{quote_name(name)} is no longer required."
            self._add_change(ChangeKind.REQUIRED_REMOVED, new.point_to_property(name), message, name)
        small, large = self.side.order_pair(before, after)
        self.sound &= large <= small

    # The other parts

    def _compare_parts(self, old: SchemaLocation, new: SchemaLocation) -> None:
        for keyword in OPEN_BY_DEFAULT_KEYWORDS:
            self._compare_single(keyword, old, new)
        self._compare_conditions(old, new)
        for keyword in ("patternProperties", "dependentSchemas"):
            before, after = old.body.get(keyword, {}), new.body.get(keyword, {})
            self.sound &= before.keys() == after.keys()
            for name in sorted(before.keys() | after.keys()):
                self._compare_nodes(old.descend(keyword, name), new.descend(keyword, name))
        for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
            self._compare_lists(keyword, old, new)
        if "$ref" in old.body and "$ref" in new.body:
            self._compare_references(old, new)
        else:
            self._compare_keywords(["$ref"], "", old, new)

    def _compare_single(self, keyword: str, old: SchemaLocation, new: SchemaLocation) -> None:
        self._compare_nodes(old.descend(keyword), new.descend(keyword))

    def _compare_conditions(self, old: SchemaLocation, new: SchemaLocation) -> None:
        old_condition, new_condition = old.descend("if"), new.descend("if")
        if not self._groups.is_unchanged(old_condition.schema, new_condition.schema):
            self._compare_keywords(["if", "then", "else"], "/if", old, new)
            return
        for keyword in ("then", "else"):
            self._compare_nodes(old.descend(keyword), new.descend(keyword))

    def _compare_lists(self, keyword: str, old: SchemaLocation, new: SchemaLocation) -> None:
        before, after = old.body.get(keyword, []), new.body.get(keyword, [])
        index_pairs = pair_branches(before, after)
        if index_pairs is None:
            related_keywords = ["items"] if keyword == "prefixItems" else []
            self._compare_keywords([keyword, *related_keywords], join_pointer([keyword]), old, new)
            return
        for old_index, new_index in index_pairs:
            self._compare_nodes(old.descend(keyword, old_index), new.descend(keyword, new_index))
        if keyword == "oneOf" and not self._groups.is_unchanged({keyword: before}, {keyword: after}):
            # Two branches that both accept more can together refuse what one of them accepted.
            verdict = self._groups.decide({keyword: before}, {keyword: after}, old.known_names)
            self.sound &= verdict is CoverageVerdict.YES

    def _compare_references(self, old: SchemaLocation, new: SchemaLocation) -> None:
        old_ref, new_ref = old.body["$ref"], new.body["$ref"]
        old_target, new_target = old.follow_reference(old_ref), new.follow_reference(new_ref)
        if old_target is not None and new_target is not None:
            self._compare_nodes(old_target, new_target)
        else:  # nobody knows what is there, before or after
            self.sound = False
            if old_ref != new_ref:
                place = ChangedPlace(new.pointer, old.pointer)
                self._compare_leaves(place, {"$ref": old_ref}, {"$ref": new_ref}, old.known_names)

    # Proving

    def _compare_keywords(self, keywords: Iterable[str], path: str, old: SchemaLocation, new: SchemaLocation) -> None:
        place = ChangedPlace(new.pointer + path, old.pointer + path)
        self._compare_leaves(
            place, pick_keywords(old.body, keywords), pick_keywords(new.body, keywords), old.known_names
        )

    def _compare_leaves(
        self, place: ChangedPlace, old: dict[str, Any], new: dict[str, Any], outer_names: PropertyNames
    ) -> None:
        """Name the difference between two groups of keywords by its effect on values."""
        if self._groups.is_unchanged(old, new):
            return
        verdict = self._groups.decide(old, new, outer_names)
        reverse_verdict = self._groups.decide(old, new, outer_names, reverse=True)
        self.sound &= verdict is CoverageVerdict.YES
        if verdict is CoverageVerdict.YES and reverse_verdict is CoverageVerdict.YES:
            if not is_same_json(old, new):
                self._add_change(ChangeKind.REWRITTEN, place.new, describe_changed_keywords(old, new))
            return
        message = _describe_change(place.new, old, new)
        self._add_change(self._classify_change(verdict, old, new), place.new, message, old_path=place.old)

    def _classify_change(self, verdict: CoverageVerdict, old: dict[str, Any], new: dict[str, Any]) -> ChangeKind:
        accepts_more = (verdict is CoverageVerdict.YES) is (self.side is ContractSide.INPUT)
        if verdict is CoverageVerdict.YES:
            return ChangeKind.WIDENED if accepts_more else ChangeKind.NARROWED
        if {"not": {}} not in (old, new) and set(list_types(old)) != set(list_types(new)):
            return ChangeKind.TYPE_CHANGED
        if verdict is CoverageVerdict.UNKNOWN:
            return ChangeKind.UNDECIDED
        return ChangeKind.WIDENED if accepts_more else ChangeKind.NARROWED


def _find_renames(
    before: dict[str, Schema], after: dict[str, Schema], removed_names: list[str], added_names: list[str]
) -> dict[str, str]:
    """Match removed names with added ones of the same schema and a similar name, if only one fits."""
    bodies = {name: encode_canonical(_drop_documentation(before[name])) for name in removed_names}
    matches = {
        name: [
            added
            for added in added_names
            if encode_canonical(_drop_documentation(after[added])) == body and is_similar_name(name, added)
        ]
        for name, body in bodies.items()
    }
    taken = Counter(added for candidates in matches.values() for added in candidates)
    return {
        name: candidates[0]
        for name, candidates in matches.items()
        if len(candidates) == 1 and taken[candidates[0]] == 1
    }


def _is_same_default(old: dict[str, Any], new: dict[str, Any]) -> bool:
    if ("default" in old) is not ("default" in new):
        return False
    before, after = old.get("default"), new.get("default")
    is_same_number = before == after and not isinstance(before, bool) and not isinstance(after, bool)
    return is_same_json(before, after) or (isinstance(before, int | float) and is_same_number)


def _describe_change(path: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    *_, holder, keyword = ("", *path.split("/"))
    if keyword in CATCH_ALL_KEYWORDS and holder != "properties" and {"not": {}} in (old, new):
        return f"Names that are not listed are {'refused' if new == {'not': {}} else 'allowed'} now."
    return describe_changed_keywords(old, new)


def _is_another_shape(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return True for alternatives that come or go, or another type: one change, however many keywords it takes."""
    if ("anyOf" in old or "oneOf" in old) is not ("anyOf" in new or "oneOf" in new):
        return True
    before, after = map(list_possible_types, (old, new))
    return {*before, *(["integer"] if "number" in before else [])}.isdisjoint(
        {*after, *(["integer"] if "number" in after else [])}
    )


def _drop_documentation(schema: Schema) -> Schema:
    if isinstance(schema, bool):
        return schema
    return {keyword: value for keyword, value in schema.items() if not is_annotation(keyword)}


def _get_meaning(schema: dict[str, Any], keyword: str) -> Any:
    return schema.get(keyword, 1 if keyword == MEANING_KEYWORD else None)


def _join_texts(schema: dict[str, Any], keywords: Iterable[str]) -> str:
    values = (schema[keyword] for keyword in keywords if keyword in schema)
    return "\n".join(value if isinstance(value, str) else encode_canonical(value) for value in values)


def _format_keywords(keywords: list[str]) -> str:
    return ", ".join(f"`{keyword}`" for keyword in keywords)

"""Comparison of two schemas: proof first, then the changes that the walk found.

A change is safe only when it is proved: by the prover as a whole, or part by part by the walk.
Everything else is breaking, and is reported with a witness where one can be found.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final

import jsonschema_rs

from cleats.contract.compat.containment import CoverageVerdict, check_coverage
from cleats.contract.compat.findings import ChangeKind, ContractFinding, ContractSide, Proof, SchemaChange, Witness
from cleats.contract.compat.keywords import Schema, follow_pointer, is_same_json, is_schema, replace_at_pointer
from cleats.contract.compat.plain_schema import find_draft, to_plain_schema
from cleats.contract.compat.rules import RULES
from cleats.contract.compat.schema_walk import SchemaWalk
from cleats.contract.compat.witness import (
    RefusalPredicate,
    RefusalReason,
    SchemaDisagreement,
    WitnessSearch,
    find_disagreements,
)
from cleats.contract.pointer import join_pointer, split_pointer

MAX_TRIED_WITNESSES: Final = 400
"""The number of witnesses examined in the search for one per change of a schema."""

MAX_BUILT_WITNESSES: Final = 400
"""The number of values that are built for a change on which no sample disagrees."""

MAX_COMPARED_WITNESSES: Final = 20
"""The number of built values of which the one is taken that shows the change best."""

WIDENING_KINDS: Final = frozenset(
    {ChangeKind.TYPE_CHANGED, ChangeKind.WIDENED, ChangeKind.REQUIRED_REMOVED, ChangeKind.UNDECIDED}
)
NARROWING_KINDS: Final = frozenset(
    {ChangeKind.TYPE_CHANGED, ChangeKind.NARROWED, ChangeKind.REQUIRED_ADDED, ChangeKind.UNDECIDED}
)
REMOVAL_KINDS: Final = frozenset({ChangeKind.PROPERTY_REMOVED, ChangeKind.PROPERTY_RENAMED})

DOWNGRADE_MESSAGES: Final = {
    ChangeKind.REWRITTEN: "Written in another way; as a whole it means the same.",
    ChangeKind.WIDENED: "Written in another way; as a whole it accepts more.",
    ChangeKind.NARROWED: "Written in another way; as a whole it allows less.",
}

ENVELOPE_RULES: Final = {
    ChangeKind.PROPERTY_ADDED: "ENVELOPE_FIELD_ADDED",
    ChangeKind.REQUIRED_ADDED: "ENVELOPE_FIELD_PROMISED",
    ChangeKind.NARROWED: "ENVELOPE_NARROWED",
    ChangeKind.REWRITTEN: "ENVELOPE_DOCS_CHANGED",
    ChangeKind.DOCS_CHANGED: "ENVELOPE_DOCS_CHANGED",
}


def compare_schemas(old: Schema, new: Schema, side: ContractSide, *, strict: bool = False) -> list[ContractFinding]:
    """Return every finding about one schema; pointers start at the schema.

    With `strict`, an optional name is an addition only where the old schema had no place for it.
    """
    if is_same_json(old, new):
        return []
    if not (_is_usable(old) and _is_usable(new)):
        change = SchemaChange(
            ChangeKind.UNDECIDED, "", "This schema cannot be compared: it is not a valid JSON Schema of a known draft."
        )
        return [_make_finding(change, side, Proof.UNPROVEN, None)]
    comparison = _SchemaComparison(to_plain_schema(old), to_plain_schema(new), side, strict=strict)
    return comparison.list_findings()


def make_late_finding(side: ContractSide, seconds: float) -> ContractFinding:
    """Make the finding about a comparison that took too long."""
    message = f"The comparison took more than {seconds:g} s of CPU time."
    return _make_finding(SchemaChange(ChangeKind.UNDECIDED, "", message), side, Proof.UNPROVEN, None)


def _is_usable(schema: Schema) -> bool:
    return find_draft(schema) is not None and jsonschema_rs.meta.is_valid(schema)


class _SchemaComparison:
    """One schema, before and after."""

    def __init__(self, old: Schema, new: Schema, side: ContractSide, *, strict: bool) -> None:
        self._side = side
        self._old, self._new = old, new
        self._walk = SchemaWalk(old, new, side, strict).run()
        self._small, self._large = side.order_pair(self._walk.additions.add_optional_names(old, new), new)
        self._disagreements: list[tuple[SchemaDisagreement, Any]] = []
        self.verdict = check_coverage(self._large, self._small)
        self._is_proved_by_parts = False
        # Below a `oneOf`, an accepted addition can admit a value that was refused before.
        self._pairs = ((self._small, self._large), side.order_pair(old, new))
        if self.verdict is not CoverageVerdict.YES:
            self._disagreements = list(islice(find_disagreements(*self._pairs[0], self._pairs[1]), MAX_TRIED_WITNESSES))
        if self.verdict is CoverageVerdict.UNKNOWN and not self._disagreements and not self._walk.sound:
            self._disagreements = list(islice(self._search.find_disagreements("", MAX_BUILT_WITNESSES), 1))
        if self.verdict is CoverageVerdict.UNKNOWN and self._disagreements:
            self.verdict = CoverageVerdict.NO
        elif self.verdict is CoverageVerdict.UNKNOWN and self._walk.sound:
            self.verdict, self._is_proved_by_parts = CoverageVerdict.YES, True

    @cached_property
    def _search(self) -> WitnessSearch:
        return WitnessSearch(*self._pairs[0], self._pairs[1])

    @property
    def _breaking_kinds(self) -> frozenset[ChangeKind]:
        return NARROWING_KINDS if self._side is ContractSide.INPUT else WIDENING_KINDS

    def list_findings(self) -> list[ContractFinding]:
        """Return a finding for every change; one that does no harm by itself is not breaking beside one that does."""
        findings = [(change, self._make_finding(change)) for change in self._list_changes()]
        has_proof = any(finding.witness is not None and finding.witness.is_refused for _, finding in findings)
        return [
            self._make_finding(harmless_change)
            if has_proof and finding.witness is None and (harmless_change := self._check_alone(change)) is not None
            else finding
            for change, finding in findings
        ]

    def _check_alone(self, change: SchemaChange) -> SchemaChange | None:
        """Return a breaking change as a milder one, if it is proved that no value is refused because of it."""
        tokens = split_pointer(change.pointer)
        is_local = change.old_pointer in (None, change.pointer) and change.kind not in REMOVAL_KINDS
        if change.kind not in self._breaking_kinds or not is_local:
            return None
        while tokens and not all(
            is_schema(follow_pointer(root, join_pointer(tokens))) for root in (self._old, self._new)
        ):
            tokens.pop()
        if not tokens:
            return None
        pointer = join_pointer(tokens)
        changed = replace_at_pointer(self._old, pointer, follow_pointer(self._new, pointer))
        small, large = self._side.order_pair(self._old, changed)
        if check_coverage(large, small) is not CoverageVerdict.YES:
            return None
        is_input = self._side is ContractSide.INPUT
        kind = ChangeKind.WIDENED if is_input else ChangeKind.NARROWED
        kind = ChangeKind.REWRITTEN if check_coverage(small, large) is CoverageVerdict.YES else kind
        remark = "No value is refused because of it." if is_input else "No new value is possible because of it."
        return replace(change, kind=kind, message=f"{change.message} {remark}")

    def _list_changes(self) -> Iterator[SchemaChange]:
        """Yield the changes that the walk found, corrected by what was proved."""
        walk_changes = self._walk.changes
        if self.verdict is CoverageVerdict.YES:
            yield from dict.fromkeys(map(self._downgrade_change, walk_changes))
            if not walk_changes:
                yield SchemaChange(self._mildest_kind, "", "Written in another way.")
            return
        yield from walk_changes
        if not any(change.kind in self._breaking_kinds | REMOVAL_KINDS for change in walk_changes):
            yield self._make_unnamed_change()

    def _downgrade_change(self, change: SchemaChange) -> SchemaChange:
        """Downgrade a change that looked breaking locally but is safe for the schema as a whole."""
        downgradable_kinds = (
            WIDENING_KINDS | NARROWING_KINDS if self._mildest_kind is ChangeKind.REWRITTEN else self._breaking_kinds
        )
        if change.kind not in downgradable_kinds:
            return change
        return replace(change, kind=self._mildest_kind, message=DOWNGRADE_MESSAGES[self._mildest_kind])

    @cached_property
    def _mildest_kind(self) -> ChangeKind:
        if check_coverage(self._small, self._large) is CoverageVerdict.YES:
            return ChangeKind.REWRITTEN
        return ChangeKind.WIDENED if self._side is ContractSide.INPUT else ChangeKind.NARROWED

    def _make_unnamed_change(self) -> SchemaChange:
        if self.verdict is CoverageVerdict.UNKNOWN:
            return SchemaChange(
                ChangeKind.UNDECIDED, "", "Neither a proof that this is safe was found, nor a value that it breaks."
            )
        if self._side is ContractSide.INPUT:
            return SchemaChange(ChangeKind.NARROWED, "", "A value that was accepted before is refused now.")
        return SchemaChange(ChangeKind.WIDENED, "", "A value can be answered now that was not possible before.")

    def _make_finding(self, change: SchemaChange) -> ContractFinding:
        if change.kind not in self._breaking_kinds | REMOVAL_KINDS:
            proof = Proof.UNPROVEN if change.kind is ChangeKind.UNKNOWN_KEYWORD else self._choose_proof(change)
            return _make_finding(change, self._side, proof, None)
        witness = self._find_witness(change)
        if witness is None:
            is_undecided = change.kind is ChangeKind.UNDECIDED
            proof = Proof.UNPROVEN if is_undecided else self._choose_proof(change)
            return _make_finding(change, self._side, proof, None)
        if change.kind is ChangeKind.UNDECIDED:
            kind = ChangeKind.NARROWED if self._side is ContractSide.INPUT else ChangeKind.WIDENED
            change = replace(change, kind=kind)
        return _make_finding(change, self._side, Proof.PROVED, witness)

    def _choose_proof(self, change: SchemaChange) -> Proof:
        needs_proof = change.kind in WIDENING_KINDS | NARROWING_KINDS | {ChangeKind.REWRITTEN}
        is_decided = self.verdict is not CoverageVerdict.UNKNOWN and not self._is_proved_by_parts
        return Proof.PROVED if needs_proof and is_decided else Proof.STRUCTURAL

    def _find_witness(self, change: SchemaChange) -> Witness | None:
        """Return the simplest value that is refused because of this very change."""
        if self._side is not ContractSide.INPUT and change.old_pointer is not None:
            change = replace(change, pointer=change.old_pointer)  # an output is refused by the old schema
        predicates = [_match_exactly(change)]
        if change.kind not in REMOVAL_KINDS:
            predicates.append(_match_nearby(change))
        if self._breaking_count == 1:
            predicates.append(lambda _: True)
        if (witness := self._match_witness(predicates, self._disagreements)) is not None:
            return witness
        built = list(
            islice(self._search.find_disagreements(change.pointer, MAX_BUILT_WITNESSES), MAX_COMPARED_WITNESSES)
        )
        self._disagreements += built
        witness = self._match_witness(predicates, built)
        return self._find_lost(change.pointer) if witness is None and change.kind in REMOVAL_KINDS else witness

    def _find_lost(self, pointer: str) -> Witness | None:
        """Return a value with the property that is gone, which the new schema does not know any more."""
        without_property = replace_at_pointer(self._old, pointer, False)
        candidates = chain(
            find_disagreements(self._old, without_property),
            WitnessSearch(self._old, without_property).find_disagreements(pointer, MAX_BUILT_WITNESSES),
        )
        first = next(candidates, None)
        return None if first is None else Witness(first[0].shrink(first[1], lambda _: True), is_refused=False)

    def _match_witness(
        self, predicates: Iterable[RefusalPredicate], candidates: Sequence[tuple[SchemaDisagreement, Any]]
    ) -> Witness | None:
        for is_match in predicates:
            for disagreement, value in candidates:
                if is_match(disagreement.list_reasons(value)):
                    return Witness(disagreement.shrink(value, is_match))
        return None

    @property
    def _breaking_count(self) -> int:
        return sum(change.kind in self._breaking_kinds | REMOVAL_KINDS for change in self._walk.changes)


def _match_exactly(change: SchemaChange) -> RefusalPredicate:
    def is_match(reasons: Iterable[RefusalReason]) -> bool:
        if change.name is not None:
            return any(
                change.name in reason.subjects or any(_is_under(pointer, change.pointer) for pointer in reason.pointers)
                for reason in reasons
            )
        return any(_get_parent_pointer(pointer) == change.pointer for reason in reasons for pointer in reason.pointers)

    return is_match


def _match_nearby(change: SchemaChange) -> RefusalPredicate:
    # A changed condition shows in what then has to hold, and a tuple also in the items after it.
    place = change.pointer.removesuffix("/if").removesuffix("/prefixItems")

    def is_match(reasons: Iterable[RefusalReason]) -> bool:
        pointers = (pointer for reason in reasons for pointer in reason.pointers)
        return any(_is_under(pointer, place) or _is_under(place, pointer) for pointer in pointers)

    return is_match


def _get_parent_pointer(path: str) -> str:
    return path.rpartition("/")[0]


def _is_under(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def _make_finding(change: SchemaChange, side: ContractSide, proof: Proof, witness: Witness | None) -> ContractFinding:
    return ContractFinding(
        rule=RULES[_select_rule_id(change.kind, side)],
        pointer=change.pointer,
        message=change.message,
        text_change=change.text_change,
        proof=proof,
        witness=witness,
    )


def _select_rule_id(kind: ChangeKind, side: ContractSide) -> str:
    if kind in (ChangeKind.UNDECIDED, ChangeKind.UNKNOWN_KEYWORD):
        return "CANNOT_PROVE_SAFE"
    if side is ContractSide.ENVELOPE:
        return ENVELOPE_RULES.get(kind, "ENVELOPE_CHANGED")
    if side is ContractSide.OUTPUT and kind is ChangeKind.DEFAULT_CHANGED:
        return "OUTPUT_MEANING_CHANGED"  # it says what an absent field stands for
    return f"{side.name}_{kind.name}"

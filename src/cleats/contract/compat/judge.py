"""From two schemas to findings: proof first, then the names that the walk has for it.

A change is safe only when it is proved: by the prover as a whole, or part by part by the walk.
Everything else is breaking, and says so with a witness where one can be found.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

import jsonschema_rs

from cleats.contract.compat.changes import Change, Kind
from cleats.contract.compat.findings import Finding, Proof, Witness
from cleats.contract.compat.keywords import Schema, foreign, same
from cleats.contract.compat.prover import Verdict, covers
from cleats.contract.compat.rules import RULES
from cleats.contract.compat.schemas import Walk
from cleats.contract.compat.sides import Side
from cleats.contract.compat.witness import Disagreement, Fits, Reason, disagreements

TRIED: Final = 400
"""Witnesses looked at when one is sought for each change of a schema."""

GROWTH: Final = frozenset({Kind.TYPE_CHANGED, Kind.WIDENED, Kind.REQUIRED_REMOVED, Kind.UNDECIDED})
SHRINKING: Final = frozenset(
    {Kind.TYPE_CHANGED, Kind.NARROWED, Kind.REQUIRED_ADDED, Kind.UNDECIDED}
)
LOSSES: Final = frozenset({Kind.PROPERTY_REMOVED, Kind.PROPERTY_RENAMED})

ENVELOPE_RULES: Final = {
    Kind.PROPERTY_ADDED: "ENVELOPE_FIELD_ADDED",
    Kind.REQUIRED_ADDED: "ENVELOPE_FIELD_PROMISED",
    Kind.NARROWED: "ENVELOPE_NARROWED",
    Kind.REWRITTEN: "ENVELOPE_DOCS_CHANGED",
    Kind.DOCS_CHANGED: "ENVELOPE_DOCS_CHANGED",
}


def judge(old: Schema, new: Schema, side: Side) -> list[Finding]:
    """Every finding about one schema; pointers start at the schema."""
    if same(old, new):
        return []
    if not (_usable(old) and _usable(new)):
        change = Change(Kind.UNDECIDED, "", "This is no JSON Schema that can be compared.")
        return [_finding(change, side, Proof.UNPROVEN, None)]
    case = _Case(old, new, side)
    return [case.finding(change) for change in case.changes()]


def _usable(schema: Schema) -> bool:
    return not foreign(schema) and jsonschema_rs.meta.is_valid(schema)


class _Case:
    """One schema, before and after."""

    def __init__(self, old: Schema, new: Schema, side: Side) -> None:
        self._side = side
        self._walk = Walk(old, new, side).run()
        self._small, self._large = side.ordered(self._walk.additions.forgive(old, new), new)
        self._hits: list[tuple[Disagreement, Any]] = []
        self.verdict = covers(self._large, self._small)
        self._by_parts = False
        if self.verdict is not Verdict.YES:
            # Below a `oneOf`, what is forgiven can let a value pass that was refused before.
            really = side.ordered(old, new)
            found = disagreements(self._small, self._large, really)
            self._hits = list(islice(found, TRIED))
        if self.verdict is Verdict.UNKNOWN and self._hits:
            self.verdict = Verdict.NO
        elif self.verdict is Verdict.UNKNOWN and self._walk.sound:
            self.verdict, self._by_parts = Verdict.YES, True

    @property
    def _breaking(self) -> frozenset[Kind]:
        return SHRINKING if self._side is Side.INPUT else GROWTH

    def changes(self) -> Iterator[Change]:
        """What the walk saw, corrected by what was proved."""
        named = self._walk.changes
        if self.verdict is Verdict.YES:
            yield from map(self._acquit, named)
            if not named:
                yield Change(self._mildest, "", "Written in another way.")
            return
        yield from named
        if not any(change.kind in self._breaking | LOSSES for change in named):
            yield self._unnamed()

    def _acquit(self, change: Change) -> Change:
        """What looked breaking at its place is not, seen as a whole."""
        suspects = GROWTH | SHRINKING if self._mildest is Kind.REWRITTEN else self._breaking
        return replace(change, kind=self._mildest) if change.kind in suspects else change

    @cached_property
    def _mildest(self) -> Kind:
        if covers(self._small, self._large) is Verdict.YES:
            return Kind.REWRITTEN
        return Kind.WIDENED if self._side is Side.INPUT else Kind.NARROWED

    def _unnamed(self) -> Change:
        if self.verdict is Verdict.UNKNOWN:
            return Change(Kind.UNDECIDED, "", "Nobody can tell whether this is safe.")
        if self._side is Side.INPUT:
            return Change(Kind.NARROWED, "", "Something that was accepted is refused.")
        return Change(Kind.WIDENED, "", "Something can be answered that could not be before.")

    def finding(self, change: Change) -> Finding:
        if change.kind not in self._breaking | LOSSES:
            proof = Proof.UNPROVEN if change.kind is Kind.UNKNOWN_KEYWORD else self._proof(change)
            return _finding(change, self._side, proof, None)
        witness = self._witness(change)
        if witness is None:
            undecided = change.kind is Kind.UNDECIDED
            proof = Proof.UNPROVEN if undecided else self._proof(change)
            return _finding(change, self._side, proof, None)
        if change.kind is Kind.UNDECIDED:
            kind = Kind.NARROWED if self._side is Side.INPUT else Kind.WIDENED
            change = replace(change, kind=kind)
        return _finding(change, self._side, Proof.PROVED, witness)

    def _proof(self, change: Change) -> Proof:
        judged = change.kind in GROWTH | SHRINKING | {Kind.REWRITTEN}
        decided = self.verdict is not Verdict.UNKNOWN and not self._by_parts
        return Proof.PROVED if judged and decided else Proof.STRUCTURAL

    def _witness(self, change: Change) -> Witness | None:
        """The simplest value that is refused because of this very change."""
        tries = [_exactly(change)]
        if change.kind not in LOSSES:
            tries.append(_roughly(change))
        if self._culprits == 1:
            tries.append(lambda _: True)
        for fits in tries:
            for judges, value in self._hits:
                if fits(judges.reasons(value)):
                    return Witness(judges.shrink(value, fits))
        return None

    @property
    def _culprits(self) -> int:
        return sum(change.kind in self._breaking | LOSSES for change in self._walk.changes)


def _exactly(change: Change) -> Fits:
    def fits(reasons: Iterable[Reason]) -> bool:
        if change.name is not None:
            return any(change.name in reason.subjects for reason in reasons)
        return any(_parent(reason.pointer) == change.pointer for reason in reasons)

    return fits


def _roughly(change: Change) -> Fits:
    def fits(reasons: Iterable[Reason]) -> bool:
        return any(
            _under(reason.pointer, change.pointer) or _under(change.pointer, reason.pointer)
            for reason in reasons
        )

    return fits


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _under(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def _finding(change: Change, side: Side, proof: Proof, witness: Witness | None) -> Finding:
    return Finding(
        rule=RULES[_rule(change.kind, side)],
        pointer=change.pointer,
        message=change.message,
        proof=proof,
        witness=witness,
    )


def _rule(kind: Kind, side: Side) -> str:
    if kind in (Kind.UNDECIDED, Kind.UNKNOWN_KEYWORD):
        return "CANNOT_PROVE_SAFE"
    if side is Side.ENVELOPE:
        return ENVELOPE_RULES.get(kind, "ENVELOPE_CHANGED")
    if side is Side.OUTPUT and kind is Kind.DEFAULT_CHANGED:
        return "OUTPUT_MEANING_CHANGED"  # it says what an absent field stands for
    return f"{side.name}_{kind.name}"

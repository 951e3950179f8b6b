"""The walk: two schemas side by side, naming every change where it stands.

The walk names, the prover decides. Where a schema is a conjunction of parts (each property, the
items, the branches of an `anyOf`), a schema whose parts all take more takes more itself; so when
the prover cannot decide about a whole (recursion, size), the walk's `sound` still can.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from cleats.contract.compat.additions import Additions, Names
from cleats.contract.compat.changes import Change, Kind
from cleats.contract.compat.keywords import (
    ASSERTIONS,
    KNOWN,
    MEANING,
    MEANINGS,
    WHOLE,
    WORDS,
    Schema,
    as_object,
    definitions,
    described,
    differing,
    everywhere,
    only,
    pairs,
    refers,
    same,
    types,
)
from cleats.contract.compat.places import Place
from cleats.contract.compat.prover import Verdict, covers, spell_out
from cleats.contract.compat.sides import Side
from cleats.contract.compat.witness import disagreements
from cleats.contract.compat.wording import changed_keywords, quoted
from cleats.contract.pointer import pointer

SINGLES: Final = (
    *("additionalProperties", "propertyNames", "items"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
"""The keywords that hold one schema and, when they are absent, let everything pass."""


@dataclass
class Walk:
    """One comparison. `sound` says whether the parts prove that the change is safe."""

    old: Schema
    new: Schema
    side: Side
    changes: list[Change] = field(default_factory=list)
    sound: bool = True
    additions: Additions = field(init=False)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.additions = Additions(self.old, self.side)

    def run(self) -> "Walk":
        dialects = {str(definitions(root).get("$schema")) for root in (self.old, self.new)}
        if len(dialects) > 1 or any(_has_inner_id(root) for root in (self.old, self.new)):
            self.sound = False  # equal texts do not mean the same
        self._node(Place(self.old, "", self.old), Place(self.new, "", self.new))
        return self

    def _note(self, kind: Kind, at: str, message: str, name: str | None = None) -> None:
        self.changes.append(Change(kind, at, message, name))

    # One node

    def _node(self, old: Place, new: Place) -> None:
        if same(old.schema, new.schema) and not refers(old.schema):
            return
        if (old.pointer, new.pointer) in self._seen:
            return
        self._seen.add((old.pointer, new.pointer))
        old, new = old.followed(new), new.followed(old)
        if isinstance(old.schema, bool) or isinstance(new.schema, bool):
            self._leaf(new.pointer, as_object(old.schema), as_object(new.schema), old.around)
            return
        self._remarks(old, new)
        self._names(old, new)
        self._parts(old, new)
        self._group(ASSERTIONS, new.pointer, old, new)
        if _taken_whole(old.body) or _taken_whole(new.body):
            self.sound &= self._settle(old.body, new.body, old.around) is Verdict.YES

    def _remarks(self, old: Place, new: Place) -> None:
        """Words, defaults and meanings: what a validator does not look at."""
        words = differing(old.body, new.body, WORDS)
        if words:
            self._note(Kind.DOCS_CHANGED, new.pointer, f"{_listed(words)} changed.")
        if differing(old.body, new.body, ["default"]):
            message = changed_keywords(old.body, new.body, ["default"])
            self._note(Kind.DEFAULT_CHANGED, new.pointer, message)
        if any(_meaning(old.body, keyword) != _meaning(new.body, keyword) for keyword in MEANINGS):
            meanings = differing(old.body, new.body, MEANINGS)
            message = changed_keywords(old.body, new.body, meanings)
            self._note(Kind.MEANING_CHANGED, new.pointer, message)
        strange = differing(old.body, new.body, (old.body.keys() | new.body.keys()) - KNOWN)
        if strange:
            message = changed_keywords(old.body, new.body, strange)
            self._note(Kind.UNKNOWN_KEYWORD, new.pointer, f"{message} Its meaning is not known.")

    # Properties

    def _names(self, old: Place, new: Place) -> None:
        before: dict[str, Schema] = old.body.get("properties", {})
        after: dict[str, Schema] = new.body.get("properties", {})
        # A name that only moved, into an `allOf` say, is neither gone nor new: ask the prover.
        gone = sorted(before.keys() - described(new.schema, self.new) - new.around)
        fresh = sorted(after.keys() - before.keys() - old.known)
        renamed = _renames(before, after, gone, fresh)
        for name in sorted(before.keys() & after.keys()):
            self._node(old.down("properties", name), new.down("properties", name))
        for name in gone:
            at = old.pointer + pointer(("properties", name))
            if spell_out(before[name]) is False:
                self._note(Kind.REWRITTEN, at, f"{quoted(name)} was refused anyway.")
            elif name in renamed:
                message = f"{quoted(name)} is now called {quoted(renamed[name])}."
                self._note(Kind.PROPERTY_RENAMED, at, message, name)
            else:
                self._note(Kind.PROPERTY_REMOVED, at, f"{quoted(name)} is gone.", name)
        known = {*renamed.values(), *new.body.get("required", [])}
        for name in [name for name in fresh if name not in known]:
            at = new.pointer + pointer(("properties", name))
            self._note(Kind.PROPERTY_ADDED, at, f"{quoted(name)} is new and optional.", name)
        forgiven = before.keys() | self.additions.names(old.body, new.body, old.around)
        self.sound &= before.keys() <= after.keys() <= forgiven
        self._required(old, new, spoken_for={*gone, *renamed.values()})

    def _required(self, old: Place, new: Place, *, spoken_for: set[str]) -> None:
        before, after = set(old.body.get("required", [])), set(new.body.get("required", []))
        for name in sorted(after - before - spoken_for):
            message = f"{quoted(name)} is now required."
            self._note(Kind.REQUIRED_ADDED, new.of(name), message, name)
        for name in sorted(before - after - spoken_for):
            message = f"{quoted(name)} is no longer required."
            self._note(Kind.REQUIRED_REMOVED, new.of(name), message, name)
        small, large = self.side.ordered(before, after)
        self.sound &= large <= small

    # The other parts

    def _parts(self, old: Place, new: Place) -> None:
        for keyword in SINGLES:
            self._single(keyword, old, new)
        self._condition(old, new)
        for keyword in ("patternProperties", "dependentSchemas"):
            before, after = old.body.get(keyword, {}), new.body.get(keyword, {})
            self.sound &= before.keys() == after.keys()
            for name in sorted(before.keys() | after.keys()):
                self._node(old.down(keyword, name), new.down(keyword, name))
        for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
            self._list(keyword, old, new)
        if "$ref" in old.body and "$ref" in new.body:
            self._reference(old, new)
        else:
            self._group(["$ref"], new.pointer, old, new)

    def _single(self, keyword: str, old: Place, new: Place) -> None:
        if isinstance(old.body.get(keyword), list) or isinstance(new.body.get(keyword), list):
            tuple_keywords = ["items", "additionalItems"]  # draft 7
            self._group(tuple_keywords, new.pointer + pointer([keyword]), old, new)
        else:
            self._node(old.down(keyword), new.down(keyword))

    def _condition(self, old: Place, new: Place) -> None:
        one, other = old.down("if"), new.down("if")
        if not same(one.schema, other.schema) or refers(one.schema):
            self._group(["if", "then", "else"], new.pointer + "/if", old, new)
            return
        for keyword in ("then", "else"):
            self._node(old.down(keyword), new.down(keyword))

    def _list(self, keyword: str, old: Place, new: Place) -> None:
        before, after = old.body.get(keyword, []), new.body.get(keyword, [])
        matched = pairs(before, after)
        if matched is None:
            rest = ["items"] if keyword == "prefixItems" else []
            self._group([keyword, *rest], new.pointer + pointer([keyword]), old, new)
            return
        for left, right in matched:
            self._node(old.down(keyword, left), new.down(keyword, right))
        if keyword == "oneOf" and (not same(before, after) or any(map(refers, before))):
            # Two branches that both take more can refuse together what one of them took.
            verdict = self._settle({keyword: before}, {keyword: after}, old.known)
            self.sound &= verdict is Verdict.YES

    def _reference(self, old: Place, new: Place) -> None:
        one, other = old.body["$ref"], new.body["$ref"]
        left, right = old.to(one), new.to(other)
        if left is not None and right is not None:
            self._node(left, right)
        elif one != other:  # the same name outside both documents is taken to be the same thing
            self._leaf(new.pointer, {"$ref": one}, {"$ref": other}, old.known)

    # Proving

    def _group(self, keywords: Iterable[str], at: str, old: Place, new: Place) -> None:
        self._leaf(at, only(old.body, keywords), only(new.body, keywords), old.known)

    def _leaf(self, at: str, old: dict[str, Any], new: dict[str, Any], around: Names) -> None:
        """Name the difference between two groups of keywords by what it does to values."""
        if same(old, new) and not refers(old):
            return
        verdict = self._settle(old, new, around)
        back = self._settle(old, new, around, back=True)
        self.sound &= verdict is Verdict.YES
        if verdict is Verdict.YES and back is Verdict.YES:
            if not same(old, new):
                self._note(Kind.REWRITTEN, at, changed_keywords(old, new))
            return
        self._note(self._kind(verdict, old, new), at, changed_keywords(old, new))

    def _kind(self, verdict: Verdict, old: dict[str, Any], new: dict[str, Any]) -> Kind:
        grows = (verdict is Verdict.YES) is (self.side is Side.INPUT)
        if verdict is Verdict.YES:
            return Kind.WIDENED if grows else Kind.NARROWED
        if set(types(old)) != set(types(new)):
            return Kind.TYPE_CHANGED
        if verdict is Verdict.UNKNOWN:
            return Kind.UNDECIDED
        return Kind.WIDENED if grows else Kind.NARROWED

    def _settle(
        self, old: dict[str, Any], new: dict[str, Any], around: Names, *, back: bool = False
    ) -> Verdict:
        """Whether the group of keywords got safer, seen alone (`back`: the other way round)."""
        before, after = _cut(old, self.old), _cut(new, self.new)
        if before is None or after is None:
            return Verdict.UNKNOWN
        forgiven = self.additions.forgive(before, after, around)
        small, large = self.side.ordered(forgiven, after)
        return settle(large, small) if back else settle(small, large)


def settle(small: Schema, large: Schema) -> Verdict:
    """Ask the prover, and look for a witness when it cannot tell."""
    verdict = covers(large, small)
    if verdict is Verdict.UNKNOWN and next(disagreements(small, large), None) is not None:
        return Verdict.NO
    return verdict


def _cut(group: dict[str, Any], root: Schema) -> dict[str, Any] | None:
    """Some keywords, cut out of their document with all that they refer to; None if that fails."""
    kept = {**definitions(root), **group}
    refs = [part["$ref"] for part in everywhere(kept) if isinstance(part, dict) and "$ref" in part]
    reachable = ("#/$defs/", "#/definitions/")
    return kept if all(str(ref).startswith(reachable) for ref in refs) else None


def _renames(
    before: dict[str, Schema], after: dict[str, Schema], gone: list[str], fresh: list[str]
) -> dict[str, str]:
    """Names that are gone while a new one has the same schema, in alphabetical order."""
    found: dict[str, str] = {}
    free = list(fresh)
    for name in gone:
        twin = next((new for new in free if same(_bare(before[name]), _bare(after[new]))), None)
        if twin is not None:
            free.remove(twin)
            found[name] = twin
    return found


def _bare(schema: Schema) -> Schema:
    if isinstance(schema, bool):
        return schema
    return {keyword: value for keyword, value in schema.items() if keyword not in WORDS}


def _meaning(schema: dict[str, Any], keyword: str) -> Any:
    return schema.get(keyword, 1 if keyword == MEANING else None)


def _taken_whole(schema: dict[str, Any]) -> bool:
    return not WHOLE.isdisjoint(schema) or isinstance(schema.get("items"), list)


def _has_inner_id(root: Schema) -> bool:
    parts = everywhere(root)
    next(parts)
    return any(isinstance(part, dict) and "$id" in part for part in parts)


def _listed(words: list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)

"""The findings of a comparison: one change each, with its location and its proof."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any, Final, TypeVar

from cleats.contract.compat.keywords import STRUCTURE_KEYWORDS, encode_canonical, is_same_json
from cleats.contract.compat.rules import RULE_ORDER, RULES, BumpLevel, ContractRule
from cleats.contract.compat.text_diff import TextChange


class Proof(StrEnum):
    """The degree of certainty of a finding."""

    PROVED = "proved"
    """Decided by the prover, or shown by a witness."""

    STRUCTURAL = "structural"
    """Read off the two texts; nothing needed proving, or the parts were proved one by one."""

    UNPROVEN = "unproven"
    """Undecided, and therefore counted as breaking."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A value on which the two contracts disagree.

    For an input: accepted before, refused now. For an output: possible now, forbidden before. One that
    is not refused shows a property that is gone: accepted before, and unknown now.
    """

    instance: Any
    is_refused: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractFinding:
    """One change.

    `pointer` (RFC 6901) leads to it from the tool's entry in the snapshot, or from the top of the
    snapshot when `tool` is None; something that was removed is located in the old snapshot.
    `affects` names the tools whose behaviour a contract-wide change alters.
    """

    rule: ContractRule
    pointer: str
    message: str
    tool: str | None = None
    proof: Proof = Proof.STRUCTURAL
    witness: Witness | None = None
    affects: tuple[str, ...] = ()
    text_change: TextChange | None = None
    """The words before and after, where words changed that models read."""

    @property
    def sort_key(self) -> tuple[bool, bool, str, str, int, str]:
        """Breaking changes first; then contract-wide ones, by tool, from the top of each schema."""
        tool_name = self.tool or ""
        return (
            not self.is_breaking,
            bool(tool_name),
            tool_name,
            self.pointer,
            RULE_ORDER[self.rule.id],
            self.message,
        )

    @property
    def is_breaking(self) -> bool:
        return self.rule.level is BumpLevel.MAJOR

    def as_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "rule": self.rule.id,
            "severity": self.rule.severity.value,
            "level": self.rule.level.value,
            "tool": self.tool,
            "pointer": self.pointer,
            "message": self.message,
            "proof": self.proof.value,
        }
        if self.affects:
            body["affects"] = list(self.affects)
        if self.witness is not None:
            body["witness"] = self.witness.instance
            body["effect"] = "refused" if self.witness.is_refused else "lost"
        if self.text_change is not None:
            body["text"] = {"old": self.text_change.old, "new": self.text_change.new}
        return body


def make_finding(rule: str, pointer: str, message: str, **facts: Any) -> ContractFinding:
    """Create a finding from the id of its rule."""
    return ContractFinding(rule=RULES[rule], pointer=pointer, message=message, **facts)


T = TypeVar("T")


class ContractSide(Enum):
    """The direction of a schema. Inputs may only grow, outputs may only shrink.

    Callers write inputs and readers read outputs. The envelope is an output that all tools share.
    """

    INPUT = "INPUT"
    OUTPUT = "OUTPUT"
    ENVELOPE = "ENVELOPE"

    def order_pair(self, old: T, new: T) -> tuple[T, T]:
        """Return (the one that must be contained, the one that must contain it)."""
        return (old, new) if self is ContractSide.INPUT else (new, old)


class ChangeKind(StrEnum):
    """The kind of a change, independent of the side of the contract."""

    PROPERTY_ADDED = auto()
    PROPERTY_REMOVED = auto()
    PROPERTY_RENAMED = auto()
    REQUIRED_ADDED = auto()
    REQUIRED_REMOVED = auto()
    TYPE_CHANGED = auto()
    NARROWED = auto()
    WIDENED = auto()
    REWRITTEN = auto()
    DEFAULT_CHANGED = auto()
    DEFAULT_STATED = auto()
    MEANING_CHANGED = auto()
    DOCS_CHANGED = auto()
    UNDECIDED = auto()
    UNKNOWN_KEYWORD = auto()


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A change at a location in a schema; `name` is the property it is about."""

    kind: ChangeKind
    pointer: str
    message: str
    name: str | None = None
    text_change: TextChange | None = None
    old_pointer: str | None = None
    """The location in the old schema, if it is another one."""


MAX_SHOWN_CHARACTERS: Final = 60
"""The length to which values are cut, so that each change stays on one line of a report."""


def quote_name(name: str) -> str:
    return f"`{name}`"


def format_value(value: Any) -> str:
    """Format a JSON value, cut if it is long."""
    encoded = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return encoded if len(encoded) <= MAX_SHOWN_CHARACTERS else encoded[: MAX_SHOWN_CHARACTERS - 1] + "…"


def describe_changed_keywords(old: dict[str, Any], new: dict[str, Any], keywords: Iterable[str] | None = None) -> str:
    """Describe each keyword that differs in one sentence."""
    if new == {"not": {}}:
        return "Nothing is allowed here any more."
    if old == {"not": {}}:
        return "Something is allowed here now."
    names = sorted((old.keys() | new.keys()) - STRUCTURE_KEYWORDS) if keywords is None else keywords
    sentences = [_describe_keyword_change(name, old, new) for name in names]
    return " ".join(filter(None, sentences)) or "The schema that it refers to changed."


def describe_value_change(old: Any, new: Any) -> str:
    """Describe a value that became another."""
    if old is None or new is None:
        return f"Is new: {format_value(new)}." if old is None else f"Is gone: {format_value(old)}."
    return f"Was {format_value(old)}, is {format_value(new)}."


def _describe_keyword_change(keyword: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    name = quote_name(keyword)
    if keyword not in old:
        return f"{name} is new: {format_value(new[keyword])}."
    if keyword not in new:
        return f"{name} is gone: {format_value(old[keyword])}."
    if is_same_json(old[keyword], new[keyword]):
        return ""
    if isinstance(old[keyword], list) and isinstance(new[keyword], list):
        return _describe_list_change(name, old[keyword], new[keyword])
    return f"{name} was {format_value(old[keyword])} and is {format_value(new[keyword])}."


def _describe_list_change(name: str, old: list[Any], new: list[Any]) -> str:
    before, after = {encode_canonical(value) for value in old}, {encode_canonical(value) for value in new}
    lost = [format_value(value) for value in old if encode_canonical(value) not in after]
    gained = [format_value(value) for value in new if encode_canonical(value) not in before]
    parts = [f"{verb} {', '.join(values)}" for verb, values in (("lost", lost), ("gained", gained)) if values]
    return f"{name} {' and '.join(parts) if parts else 'is in another order'}."

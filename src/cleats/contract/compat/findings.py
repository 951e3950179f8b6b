"""What a comparison finds: one change, where it is, and how we know."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cleats.contract.compat.rules import ORDER, RULES, Rule


class Proof(StrEnum):
    """How sure a finding is."""

    PROVED = "proved"
    """The prover decided it, or a witness shows it."""

    STRUCTURAL = "structural"
    """Read off the two texts; nothing needed proving, or the parts were proved one by one."""

    UNPROVEN = "unproven"
    """Undecided, and therefore counted as breaking."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A value on which the two contracts disagree.

    For an input: accepted before, refused now. For an output: possible now, forbidden before.
    """

    instance: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One change.

    `pointer` (RFC 6901) leads to it from the tool's entry in the snapshot, or from the top of the
    snapshot when `tool` is None; what is gone is found in the old one. `affects` names the tools
    whose behaviour a contract-wide change alters.
    """

    rule: Rule
    pointer: str
    message: str
    tool: str | None = None
    proof: Proof = Proof.STRUCTURAL
    witness: Witness | None = None
    affects: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[bool, str, str, int, str]:
        """Contract-wide changes first, then tool by tool, then from the top of each schema."""
        where = self.tool or ""
        return (bool(where), where, self.pointer, ORDER[self.rule.id], self.message)

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
        return body


def finding(rule: str, pointer: str, message: str, **facts: Any) -> Finding:
    """A finding by the id of its rule."""
    return Finding(rule=RULES[rule], pointer=pointer, message=message, **facts)

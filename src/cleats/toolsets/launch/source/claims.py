"""Claims: what may be said about the product, each with the places that support it.

A claim's id is a hash of its kind and its words, so the same words are the same claim in every run.
The best place (the lowest priority) decides how much it is worth.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

PRIORITIES: Final = {
    "manifest": 1,
    "source_code": 2,
    "test": 3,
    "implementation_doc": 4,
    "api_doc": 5,
    "readme_technical": 6,
    "readme_marketing": 7,
}
"""What kind of place weighs how much; 1 weighs most."""

_BACKED: Final = 3
"""Up to this priority a claim is a fact: a manifest, the code or a test says it."""

GROUPS: Final = (
    "key_features",
    "install_steps",
    "quickstart_steps",
    "workflow_claims",
    "limitations",
    "compatibility_notes",
)


@dataclass(frozen=True, slots=True, order=True)
class Citation:
    """A place in the repository."""

    path: str
    start: int
    end: int
    source: str

    @property
    def priority(self) -> int:
        return PRIORITIES[self.source]

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "start_line": self.start,
            "end_line": max(self.start, self.end),
            "source_type": self.source,
        }


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement. `about` names what it answers, where two answers would contradict."""

    text: str
    kind: str
    citations: tuple[Citation, ...]
    claim_id: str
    group: str = ""
    is_fact: bool | None = None
    """Said by whoever knows better than the priority does."""

    @property
    def priority(self) -> int:
        return min(citation.priority for citation in self.citations)

    @property
    def truth_status(self) -> str:
        known = self.priority <= _BACKED if self.is_fact is None else self.is_fact
        return "fact" if known else "inference"

    @property
    def confidence(self) -> str:
        if self.priority <= 2 or (self.priority <= 4 and len(self.citations) > 1):
            return "high"
        return "medium" if self.priority <= 6 else "low"

    def as_fact(self) -> dict[str, Any]:
        """As product facts list it."""
        return {
            "claim_id": self.claim_id,
            "claim_text": self.text,
            "claim_kind": self.kind,
            "truth_status": self.truth_status,
            "confidence": self.confidence,
        }

    def as_evidence(self) -> dict[str, Any]:
        """As the evidence map lists it."""
        return self.as_fact() | {
            "source_priority": self.priority,
            "citations": [each.as_json() for each in self.citations],
            "audience_level": "developer",
            "complexity": _complexity(self.text),
        }


@dataclass(slots=True)
class Ledger:
    """The claims of one product, in the order in which they were made; the same words once."""

    product_name: str
    _claims: dict[str, Claim] = field(default_factory=dict)

    def add(
        self,
        text: str,
        kind: str,
        citations: Iterable[Citation],
        *,
        group: str = "",
        is_fact: bool | None = None,
    ) -> str:
        """Add a claim, or more evidence for one that is there; return its id."""
        claim_id = identity(text, kind, self.product_name)
        given = tuple(sorted(set(citations), key=lambda each: (each.priority, each)))
        if old := self._claims.get(claim_id):
            given = tuple(sorted({*old.citations, *given}, key=lambda each: (each.priority, each)))
            group = old.group or group
            is_fact = old.is_fact or is_fact
            text = old.text
        self._claims[claim_id] = Claim(text, kind, given, claim_id, group, is_fact)
        return claim_id

    @property
    def claims(self) -> list[Claim]:
        return list(self._claims.values())

    def find(self, claim_id: str) -> Claim:
        return self._claims[claim_id]

    def grouped(self) -> dict[str, list[str]]:
        """The ids of each group, in order."""
        return {
            group: [claim.claim_id for claim in self.claims if claim.group == group]
            for group in GROUPS
        }


def identity(text: str, kind: str, product_name: str) -> str:
    """The id of a claim: renaming the product or spacing a text differently keeps it."""
    words = " ".join(text.split()).lower()
    if product_name.strip():
        pattern = rf"(?<!\w){re.escape(product_name.lower())}(?!\w)"
        words = re.sub(pattern, "{product_name}", words)
    return hashlib.sha256(f"{words}|{kind}".encode()).hexdigest()


def _complexity(text: str) -> str:
    if len(text) < 50:
        return "simple"
    return "complex" if len(text) > 150 else "moderate"

"""Claims: statements about the product, each with the citations that support it.

The id of a claim is the beginning of a hash of its kind and its words, so equal words are the same
claim in every run. The best citation (the one with the lowest priority number) decides its confidence.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Self

from cleats.toolsets.launch.source.manifests.model import PackageManifest
from cleats.toolsets.launch.source.text import english
from cleats.toolsets.launch.source.text.documents import Block

_SOURCES: Final = "manifest source_code test implementation_doc api_doc readme_technical readme_marketing"
SOURCE_PRIORITIES: Final = {source: number for number, source in enumerate(_SOURCES.split(), start=1)}
"""Priority by kind of source; 1 is the most trusted."""

_MAX_FACT_PRIORITY: Final = 3
"""Up to this priority a claim is a fact: a manifest, the code or a test supports it."""

CLAIM_GROUPS: Final = (
    *("key_features", "install_steps", "quickstart_steps"),
    *("workflow_claims", "limitations", "compatibility_notes"),
)


CLAIM_ID_DIGITS: Final = 8
"""Digits of a claim's id: short enough to be read past in a page, and hardly ever the same for two
claims of a product."""


@dataclass(frozen=True, slots=True, order=True)
class Citation:
    """A range of lines in a file of the repository."""

    path: str
    start: int
    end: int
    source: str

    @property
    def priority(self) -> int:
        return SOURCE_PRIORITIES[self.source]

    @classmethod
    def of_block(cls, block: Block, source: str) -> Self:
        return cls(block.path, block.line, block.end, source)

    def as_json(self) -> dict[str, Any]:
        end = max(self.start, self.end)
        return {"path": self.path, "start_line": self.start, "end_line": end, "source_type": self.source}


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement with its evidence."""

    text: str
    kind: str
    citations: tuple[Citation, ...]
    claim_id: str
    group: str = ""
    is_fact: bool | None = None
    """Set by a caller that knows better than the priority; None otherwise."""

    @property
    def priority(self) -> int:
        return min(citation.priority for citation in self.citations)

    @property
    def truth_status(self) -> str:
        is_fact = self.priority <= _MAX_FACT_PRIORITY if self.is_fact is None else self.is_fact
        return "fact" if is_fact else "inference"

    @property
    def confidence(self) -> str:
        if self.priority <= 2 or (self.priority <= 4 and len(self.citations) > 1):
            return "high"
        return "medium" if self.priority <= 6 else "low"

    def as_fact(self) -> dict[str, Any]:
        """Return the claim as product facts list it."""
        return {
            "claim_id": self.claim_id,
            "claim_text": self.text,
            "claim_kind": self.kind,
            "truth_status": self.truth_status,
            "confidence": self.confidence,
        }

    def as_evidence(self) -> dict[str, Any]:
        """Return the claim as the evidence map lists it."""
        return self.as_fact() | {
            "source_priority": self.priority,
            "citations": [citation.as_json() for citation in self.citations],
            "audience_level": "developer",
            "complexity": "simple" if len(self.text) < 50 else "complex" if len(self.text) > 150 else "moderate",
        }


@dataclass(slots=True)
class ClaimLedger:
    """The claims of one product in the order in which they were added, without duplicates."""

    product_name: str
    _claims: dict[str, Claim] = field(default_factory=dict)
    _hashes: dict[str, str] = field(default_factory=dict)
    """The whole hash behind each id."""

    def add(
        self, text: str, kind: str, citations: Iterable[Citation], *, group: str = "", is_fact: bool | None = None
    ) -> str:
        """Add a claim, or more evidence for an existing one; return its id."""
        claim_id = self._choose_id(compute_claim_hash(text, kind, self.product_name))
        all_citations = set(citations)
        if existing := self._claims.get(claim_id):
            all_citations.update(existing.citations)
            group = existing.group or group
            is_fact = existing.is_fact or is_fact
            text = existing.text
        ranked = tuple(sorted(all_citations, key=lambda citation: (citation.priority, citation)))
        self._claims[claim_id] = Claim(text, kind, ranked, claim_id, group, is_fact)
        return claim_id

    def _choose_id(self, claim_hash: str) -> str:
        """Return the shortest beginning of a hash that no other claim of the run has."""
        lengths = range(CLAIM_ID_DIGITS, len(claim_hash) + 1)
        ids = (claim_hash[:length] for length in lengths)
        claim_id = next(candidate for candidate in ids if self._hashes.get(candidate, claim_hash) == claim_hash)
        self._hashes[claim_id] = claim_hash
        return claim_id

    def contradict(self, winner: str, text: str, citation: Citation, topic: str) -> dict[str, str]:
        """Add a statement of a document that the manifest refutes; return the contradiction."""
        loser = self.add(text, "other", [citation], is_fact=False)
        return {
            "claim_a_id": winner,
            "claim_b_id": loser,
            "resolution": "automatic",
            "winning_claim_id": winner,
            "reasoning": f"The manifest outweighs a document about {topic}.",
        }

    @property
    def claims(self) -> list[Claim]:
        return list(self._claims.values())

    def find(self, claim_id: str) -> Claim:
        return self._claims[claim_id]

    def group_claim_ids(self) -> dict[str, list[str]]:
        """Return the claim ids of each group, in order."""
        return {group: [claim.claim_id for claim in self.claims if claim.group == group] for group in CLAIM_GROUPS}


def compute_claim_hash(text: str, kind: str, product_name: str) -> str:
    """Return the hash of a claim, which does not depend on the product's name or on white space."""
    words = " ".join(text.split()).lower()
    if product_name.strip():
        pattern = rf"(?<!\w){re.escape(product_name.lower())}(?!\w)"
        words = re.sub(pattern, "{product_name}", words)
    return hashlib.sha256(f"{words}|{kind}".encode()).hexdigest()


_RUNTIME_FLOOR_PATTERN: Final = english.load_expression("runtime_floor")
"""A minimum version: `requires Python 3.8 or later`, `Python 3.8+`."""


_LISTED_FLOOR_PATTERN: Final = english.load_expression("listed_floor")
"""A list item that holds only a minimum version."""


_NO_DEPENDENCIES_PATTERN: Final = english.load_expression("no_dependencies")


@dataclass(slots=True)
class ContradictionChecker:
    """Compares the statements of documents with the manifest."""

    ledger: ClaimLedger
    manifest: PackageManifest | None
    runtime_claim: str = ""
    dependency_claim: str = ""
    contradictions: list[dict[str, str]] = field(default_factory=list)

    def resolve_sentence(self, sentence: str, block: Block, source: str) -> bool:
        """Return whether a sentence is about something that the manifest decides.

        A sentence that agrees becomes evidence for the claim of the manifest; one that does not is
        recorded as contradicted. Neither becomes a separate claim.
        """
        citation = Citation.of_block(block, source)
        if _NO_DEPENDENCIES_PATTERN.search(sentence) and self.manifest:
            return self._resolve_dependencies(sentence, citation)
        match = _RUNTIME_FLOOR_PATTERN.search(sentence) or _LISTED_FLOOR_PATTERN.search(sentence)
        if match is None or not (match["more"] or "requires" in sentence.lower()):
            return False
        requirement = self.manifest.requires if self.manifest else None
        floor = re.fullmatch(r">=\s*v?([\d.]+)", requirement.value) if requirement else None
        if floor is None or not self.runtime_claim:
            return True
        if _parse_version(match["version"]) == _parse_version(floor[1]):
            winner = self.ledger.find(self.runtime_claim)
            self.ledger.add(winner.text, winner.kind, [citation], group=winner.group)
        else:
            topic = "the versions it needs"
            self.contradictions.append(self.ledger.contradict(self.runtime_claim, sentence, citation, topic))
        return True

    def _resolve_dependencies(self, sentence: str, citation: Citation) -> bool:
        dependencies = self.manifest.dependencies if self.manifest else None
        if self.dependency_claim and dependencies:
            topic = "what it depends on"
            self.contradictions.append(self.ledger.contradict(self.dependency_claim, sentence, citation, topic))
        return dependencies is None or bool(dependencies) or bool(self.dependency_claim)


def _parse_version(version: str) -> tuple[int, ...]:
    """Parse a version without trailing zeros: `3.9.0` and `3.9` are equal."""
    first, *rest = (int(part) for part in version.strip(".").split("."))
    while rest and rest[-1] == 0:
        rest.pop()
    return first, *rest

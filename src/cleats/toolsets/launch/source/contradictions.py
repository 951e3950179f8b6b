"""What documents say against the manifest. The manifest wins; what lost is kept as lost."""

import re
from dataclasses import dataclass, field
from typing import Final

from cleats.toolsets.launch.source.blocks import Block
from cleats.toolsets.launch.source.claims import Citation, Ledger
from cleats.toolsets.launch.source.manifests.model import Manifest

_RUNTIME: Final = re.compile(
    r"\b(?:requires?|needs?|works? (?:with|on)|supports?|runs on|compatible with|for)\s+"
    r"(?P<name>Python|Node(?:\.js)?|PHP|Ruby|Java|Go|Rust)\s+"
    r"(?:versions?\s+)?v?(?P<version>\d+(?:\.\d+)*)\s*"
    r"(?P<more>\+|(?:or|and) (?:later|newer|above|higher|up))?",
    re.IGNORECASE,
)
"""A floor: `requires Python 3.8 or later`, `Python 3.8+`."""


_FLOOR: Final = re.compile(
    r"\binclude (?P<name>Python|Node\.js) (?P<version>\d+(?:\.\d+)*)(?P<more>\+)", re.IGNORECASE
)
"""An item of a list that is only that."""


_NO_DEPENDENCIES: Final = re.compile(
    r"\b(no|zero|any|without)\b[^.]{0,40}\bdependenc(y|ies)\b|\bdependency[- ]free\b", re.IGNORECASE
)


@dataclass(slots=True)
class Referee:
    """Compares what documents say with what the manifest says."""

    ledger: Ledger
    manifest: Manifest | None
    runtime_claim: str = ""
    dependency_claim: str = ""
    found: list[dict[str, str]] = field(default_factory=list)

    def settles(self, sentence: str, block: Block, source: str) -> bool:
        """Whether a sentence is about something that the manifest decides.

        One that agrees becomes evidence for the manifest's claim, one that does not is recorded as
        contradicted. Neither is a claim of its own to be told.
        """
        place = Citation(block.path, block.line, block.end, source)
        if _NO_DEPENDENCIES.search(sentence) and self.manifest:
            return self._settle_dependencies(sentence, place)
        match = _RUNTIME.search(sentence) or _FLOOR.search(sentence)
        if match is None or not (match["more"] or "requires" in sentence.lower()):
            return False
        said = self.manifest.requires if self.manifest else None
        floor = re.fullmatch(r">=\s*v?([\d.]+)", said.value) if said else None
        if floor is None or not self.runtime_claim:
            return True
        if _numbers(match["version"]) == _numbers(floor[1]):
            winner = self.ledger.find(self.runtime_claim)
            self.ledger.add(winner.text, winner.kind, [place], group=winner.group)
            return True
        self._lose(sentence, place, self.runtime_claim, "the versions it needs")
        return True

    def _settle_dependencies(self, sentence: str, place: Citation) -> bool:
        needs = self.manifest.dependencies if self.manifest else None
        if self.dependency_claim and needs:
            self._lose(sentence, place, self.dependency_claim, "what it depends on")
        return needs is None or bool(needs) or bool(self.dependency_claim)

    def _lose(self, sentence: str, place: Citation, winner: str, about: str) -> None:
        loser = self.ledger.add(sentence, "other", [place], is_fact=False)
        self.found.append(
            {
                "claim_a_id": winner,
                "claim_b_id": loser,
                "resolution": "automatic",
                "winning_claim_id": winner,
                "reasoning": f"The manifest outweighs a document about {about}.",
            }
        )


def _numbers(version: str) -> tuple[int, ...]:
    """`3.9.0` and `3.9` are one floor."""
    parts = [int(part) for part in version.strip(".").split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)

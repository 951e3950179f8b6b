"""How much there is to say, and so how much a launch says.

The tier is what the configuration wants, or what the evidence is worth; it goes down one step for
each sign that the source cannot be trusted to be whole. Quotas follow from the tier.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cleats.toolsets.launch.drafting.material import Material
from cleats.toolsets.launch.profiles.parts import Section

TIERS = ("minimal", "standard", "rich")
SHARES: Mapping[str, float] = {"minimal": 0.3, "standard": 0.7, "rich": 1.0}
"""The share of a section's largest size that a tier may use."""

FEW_CLAIMS = 5
STANDARD, RICH = 30, 200
"""Evidence from which on a launch is standard, or rich."""


@dataclass(frozen=True, slots=True)
class Volume:
    """What the evidence amounts to."""

    claims: int
    snippets: int
    symbols: int

    @classmethod
    def of(cls, material: Material) -> "Volume":
        return cls(len(material.claims), len(material.snippets), len(material.symbols))

    @property
    def score(self) -> int:
        return 2 * self.claims + 3 * self.snippets + self.symbols

    def as_json(self) -> dict[str, int]:
        return {
            "claims": self.claims,
            "snippets": self.snippets,
            "api_symbols": self.symbols,
            "total_score": self.score,
        }


@dataclass(frozen=True, slots=True)
class Tier:
    """How much is written, and why."""

    name: str
    adjustments: tuple[dict[str, str], ...]


def tier(material: Material, inventory: Mapping[str, Any], volume: Volume) -> Tier:
    """Choose the tier; every step up or down is recorded with its reason."""
    wanted = str(material.config.get("launch_tier") or _earned(volume))
    at = TIERS.index(wanted)
    made: list[dict[str, str]] = []
    for signal, reason in _doubts(material, inventory, volume):
        lower = max(0, at - 1) if signal != "few_claims" else 0
        made.append(
            {
                "adjustment": "reduced" if lower < at else "unchanged",
                "reason": reason,
                "signal": signal,
                "from_tier": TIERS[at],
                "to_tier": TIERS[lower],
            }
        )
        at = lower
    return Tier(TIERS[at], tuple(made))


def quota(section: Section, tier_name: str, target: int) -> int:
    """How many pages a section gets: its target, within what profile and tier allow."""
    most = max(section.minimum, math.ceil(section.maximum * SHARES[tier_name]))
    return max(section.minimum, len(section.pages), min(target, most))


def targets(section: str, mandatory: int, material: Material, volume: Volume) -> int:
    """How many pages the evidence could fill."""
    features = len(material.group("key_features"))
    sizes: Mapping[str, int] = {
        "products": 1,
        "docs": mandatory + len(material.workflows),
        "reference": 1 + volume.symbols // 3,
        "kb": mandatory + min(features, 5),
        "blog": 1 + (volume.score > RICH),
    }
    return max(mandatory, sizes.get(section, mandatory))


def _earned(volume: Volume) -> str:
    if volume.score >= RICH:
        return "rich"
    return "standard" if volume.score >= STANDARD else "minimal"


def _doubts(
    material: Material, inventory: Mapping[str, Any], volume: Volume
) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    health = material.facts.get("repository_health", {})
    if health and not health.get("ci_present") and not health.get("tests_present"):
        found.append(("no_ci_no_tests", "The repository has neither tests nor continuous checks."))
    phantoms: Sequence[Any] = inventory.get("phantom_paths", ())
    if phantoms:
        found.append(("phantom_paths", "Its documents name examples that are not there."))
    open_ones = [
        each
        for each in material.evidence.get("contradictions", ())
        if each["resolution"] != "automatic"
    ]
    if open_ones:
        found.append(("contradictions", "Its own statements contradict each other."))
    if volume.claims < FEW_CLAIMS:
        found.append(("few_claims", f"Only {volume.claims} statements have evidence."))
    return found

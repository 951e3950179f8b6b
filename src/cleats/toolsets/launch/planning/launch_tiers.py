"""The amount of evidence, and the size of a launch that follows from it.

The tier is the configured one, or the one that the evidence supports; it is lowered by one step for
each sign that the source is unreliable. Quotas follow from the tier.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.profiles.parts import SiteSection

TIER_NAMES = ("minimal", "standard", "rich")
SIZE_SHARES_BY_TIER: Mapping[str, float] = {"minimal": 0.3, "standard": 0.7, "rich": 1.0}
"""The share of the maximum size of a section that a tier can use."""

MIN_TRUSTED_CLAIMS = 5
STANDARD_TIER_SCORE, RICH_TIER_SCORE = 30, 200
"""Scores of evidence from which a launch is standard or rich."""


@dataclass(frozen=True, slots=True)
class EvidenceVolume:
    """The amount of evidence."""

    claims: int
    snippets: int
    symbols: int

    @classmethod
    def from_material(cls, material: LaunchMaterial) -> "EvidenceVolume":
        return cls(len(material.claims), len(material.snippets), len(material.symbols))

    @property
    def score(self) -> int:
        return 2 * self.claims + 3 * self.snippets + self.symbols

    @property
    def tier(self) -> str:
        if self.score >= RICH_TIER_SCORE:
            return "rich"
        return "standard" if self.score >= STANDARD_TIER_SCORE else "minimal"

    def as_json(self) -> dict[str, int]:
        return {
            "claims": self.claims,
            "snippets": self.snippets,
            "api_symbols": self.symbols,
            "total_score": self.score,
        }


@dataclass(frozen=True, slots=True)
class LaunchTier:
    """The tier of a launch, with the reasons for adjustments."""

    name: str
    adjustments: tuple[dict[str, str], ...]


def choose_tier(material: LaunchMaterial, inventory: Mapping[str, Any], volume: EvidenceVolume) -> LaunchTier:
    """Choose the tier; every adjustment is recorded with its reason."""
    initial_tier = str(material.config.get("launch_tier") or volume.tier)
    tier_index = TIER_NAMES.index(initial_tier)
    adjustments: list[dict[str, str]] = []
    for signal, reason in _find_doubts(material, inventory, volume):
        lower_index = max(0, tier_index - 1) if signal != "few_claims" else 0
        adjustments.append(
            {
                "adjustment": "reduced" if lower_index < tier_index else "unchanged",
                "reason": reason,
                "signal": signal,
                "from_tier": TIER_NAMES[tier_index],
                "to_tier": TIER_NAMES[lower_index],
            }
        )
        tier_index = lower_index
    return LaunchTier(TIER_NAMES[tier_index], tuple(adjustments))


def compute_quota(section: SiteSection, tier_name: str, target: int) -> int:
    """Return the page quota of a section: its target, within the limits of profile and tier."""
    max_pages = max(section.minimum, math.ceil(section.maximum * SIZE_SHARES_BY_TIER[tier_name]))
    return max(section.minimum, len(section.pages), min(target, max_pages))


def estimate_pages(section: str, mandatory_count: int, material: LaunchMaterial, volume: EvidenceVolume) -> int:
    """Return the number of pages that the evidence could fill."""
    features = len(material.list_group("key_features"))
    sizes: Mapping[str, int] = {
        "products": 1,
        "docs": mandatory_count + len(material.workflows),
        "reference": 1 + volume.symbols // 3,
        "kb": mandatory_count + min(features, 5),
        "blog": 1 + (volume.score > RICH_TIER_SCORE),
    }
    return max(mandatory_count, sizes.get(section, mandatory_count))


def _find_doubts(
    material: LaunchMaterial, inventory: Mapping[str, Any], volume: EvidenceVolume
) -> list[tuple[str, str]]:
    doubts: list[tuple[str, str]] = []
    health = material.facts.get("repository_health", {})
    if health and not health.get("ci_present") and not health.get("tests_present"):
        doubts.append(("no_ci_no_tests", "The repository has neither tests nor continuous checks."))
    phantom_paths: Sequence[Any] = inventory.get("phantom_paths", ())
    if phantom_paths:
        doubts.append(("phantom_paths", "Its documents name examples that are not there."))
    unresolved = [
        contradiction
        for contradiction in material.evidence.get("contradictions", ())
        if contradiction["resolution"] != "automatic"
    ]
    if unresolved:
        doubts.append(("contradictions", "Its own statements contradict each other."))
    if volume.claims < MIN_TRUSTED_CLAIMS:
        doubts.append(("few_claims", f"Only {volume.claims} statements have evidence."))
    return doubts

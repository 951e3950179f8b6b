"""Candidates for pages, and the number of them that the evidence supports.

An optional page needs its own content: a task with code, a module with enough documented names, or
an example that no task covers. The tier of a launch is the configured one, or the one that the
evidence supports; it is lowered by one step for each sign that the source is unreliable. Quotas
follow from the tier.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cleats.toolsets.launch.drafting.api_overview import describe_symbol
from cleats.toolsets.launch.drafting.document_text import list_section_snippets
from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet
from cleats.toolsets.launch.drafting.page_context import PageSubject, strip_markup
from cleats.toolsets.launch.drafting.tasks import find_section_slug, has_own_page, list_shown_claims, list_task_sections
from cleats.toolsets.launch.profiles.parts import SiteSection
from cleats.toolsets.launch.source.evidence.document_claims import slugify_title

MIN_MODULE_NAMES = 4
"""The documented names from which a module gets its own page."""

MIN_SPLIT_API_NAMES = 40
"""The public names from which the reference is split into several pages; fewer are easier to read
on one."""


@dataclass(frozen=True, slots=True)
class PageCandidate:
    """A possible page. Priority 0 is mandatory."""

    section: str
    slug: str
    role: str
    priority: int = 0
    score: int = 0
    subject: PageSubject | None = None


def list_mandatory_pages(section: SiteSection) -> list[PageCandidate]:
    """Return the pages that a section always has, in the order of the profile."""
    return [PageCandidate(section=section.name, slug=page.slug, role=page.role) for page in section.pages]


def list_optional_pages(section: str, material: LaunchMaterial) -> list[PageCandidate]:
    """Return the pages of a section for which there is evidence, the best first."""
    generators = {"docs": _iter_task_pages, "reference": _iter_module_pages, "kb": _iter_example_pages}
    candidates = generators[section](material) if section in generators else ()
    return sorted(candidates, key=lambda candidate: (candidate.priority, -candidate.score, candidate.slug))


def _iter_task_pages(material: LaunchMaterial) -> Iterator[PageCandidate]:
    """Yield pages for the sections with much code; the developer guide shows the others."""
    for section in list_task_sections(material):
        slug = find_section_slug(section)
        if not has_own_page(material, section) or not slug:
            continue
        snippets = list_section_snippets(material, section)
        claims = material.filter_stateable(list_shown_claims([section]))
        title = strip_markup(str(section["title"]))
        subject = PageSubject(
            str(section["section_id"]), title, tuple(claims), tuple(snippets), document_section=section
        )
        yield PageCandidate("docs", slug, "workflow_page", 1, len(claims) + 3 * len(snippets), subject)


def _iter_module_pages(material: LaunchMaterial) -> Iterator[PageCandidate]:
    if len(material.symbols) < MIN_SPLIT_API_NAMES:
        return
    names = {module["path"]: str(module["name"]) for module in material.facts["api_surface_summary"]["modules"]}
    if len(set(names.values())) < 2:
        return  # the overview is the page of the only module
    by_name: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for symbol in material.symbols:
        by_name[names.get(symbol["path"], "")].append(symbol)
    for name, symbols in sorted(by_name.items()):
        is_private = any(part.startswith("_") for part in name.split("."))
        described_count = sum(bool(describe_symbol(material, symbol)) for symbol in symbols)
        if described_count < MIN_MODULE_NAMES or is_private or not slugify_title(name):
            continue
        subject = PageSubject(name, name, symbols=tuple(symbols))
        yield PageCandidate("reference", slugify_title(name), "api_reference", 2, len(symbols), subject)


def _iter_example_pages(material: LaunchMaterial) -> Iterator[PageCandidate]:
    """Yield pages for examples that no task shows and that have a claim."""
    covered_tags = {tag for workflow in material.workflows for tag in workflow["snippet_tags"]}
    by_id: dict[str, PageSnippet] = {item.snippet_id: item for item in material.snippets}
    for example in material.facts["example_inventory"]:
        snippet = by_id.get(example["primary_snippet_id"])
        slug = slugify_title(example["title"])
        if snippet is None or not slug or covered_tags & set(snippet.tags):
            continue
        claims = [
            claim_id
            for claim_id, claim in material.claims.items()
            if claim["claim_kind"] == "workflow"
            and any(citation["path"] == snippet.path for citation in claim["citations"])
        ]
        if claims:
            title = strip_markup(str(example["title"]))
            subject = PageSubject(str(example["example_id"]), title, tuple(claims), (snippet,))
            yield PageCandidate("kb", slug, "feature_showcase", 2, 3 + 2 * len(claims), subject)


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
        volume = {"claims": self.claims, "snippets": self.snippets, "api_symbols": self.symbols}
        return volume | {"total_score": self.score}


def choose_tier(
    material: LaunchMaterial, inventory: Mapping[str, Any], volume: EvidenceVolume
) -> tuple[str, list[dict[str, str]]]:
    """Choose the tier; return its name and every adjustment with its reason."""
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
    return TIER_NAMES[tier_index], adjustments


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
    if inventory.get("phantom_paths"):
        doubts.append(("phantom_paths", "Its documents name examples that are not there."))
    if any(item["resolution"] != "automatic" for item in material.evidence.get("contradictions", ())):
        doubts.append(("contradictions", "Its own statements contradict each other."))
    if volume.claims < MIN_TRUSTED_CLAIMS:
        doubts.append(("few_claims", f"Only {volume.claims} statements have evidence."))
    return doubts

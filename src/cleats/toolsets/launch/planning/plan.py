"""The page plan: every page of a launch, with its file, its address and what it has to hold.

Pages are chosen, placed, and written once in memory to see what each can really say; the plan
requires exactly that. So a plan never promises a heading that the evidence cannot fill.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drafting import templates
from cleats.toolsets.launch.drafting.context import Context
from cleats.toolsets.launch.drafting.material import Material
from cleats.toolsets.launch.drafting.page import Written, write
from cleats.toolsets.launch.planning import evidence, neighbours
from cleats.toolsets.launch.planning.candidates import Candidate, mandatory, optional
from cleats.toolsets.launch.planning.serving import Serving
from cleats.toolsets.launch.planning.site import PlannedSite

QUOTAS: Mapping[str, tuple[int, int]] = {
    "landing": (1, 50),
    "toc": (0, 40),
    "comprehensive_guide": (0, 100),
    "workflow_page": (0, 20),
    "feature_showcase": (1, 20),
    "troubleshooting": (1, 60),
    "api_reference": (0, 500),
}
"""How many claims a page of each role makes, at least and at most."""


@dataclass(frozen=True, slots=True)
class Draftable:
    """A page that was chosen, and what it can say without its neighbours."""

    candidate: Candidate
    locale: str
    template: templates.Template
    written: Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Makes the plan of one run."""

    site: PlannedSite
    material: Material
    inventory: Mapping[str, Any]
    date: dt.date

    def plan(self) -> dict[str, Any]:
        """Make the page plan.

        Raises:
            ToolError: INVALID_INPUT with IA_PLANNER_PLAN_INCOMPLETE when a mandatory page has no
                evidence or no template, or with IA_PLANNER_URL_COLLISION.
        """
        volume = evidence.Volume.of(self.material)
        tier = evidence.tier(self.material, self.inventory, volume)
        quotas: dict[str, int] = {}
        entries: list[dict[str, Any]] = []
        chosen: list[Draftable] = []
        for section in self.material.config["required_sections"]:
            rules = self.site.profile.section(section)
            target = evidence.targets(section, len(rules.pages), self.material, volume)
            quotas[section] = evidence.quota(rules, tier.name, target)
            serving = self.site.serving(section)
            for locale in self.material.config["locales"]:
                pages = list(self._chosen(section, locale, tier.name, quotas[section]))
                chosen += pages
                entries += self._placed(pages, serving, tier.name)
        self._refuse_collisions(entries)
        whole = [
            self._completed(entry, entries, page, tier.name)
            for entry, page in zip(entries, chosen, strict=True)
        ]
        order = list(self.material.config["required_sections"])
        whole.sort(key=lambda each: (order.index(each["section"]), each["output_path"]))
        return {
            "schema_version": "1.0",
            "product_slug": self.material.config["product_slug"],
            "launch_tier": tier.name,
            "launch_tier_adjustments": list(tier.adjustments),
            "inferred_product_type": self._product_type(),
            "evidence_volume": volume.as_json(),
            "effective_quotas": quotas,
            "pages": whole,
        }

    def _product_type(self) -> str:
        given = self.material.config.get("product_type")
        return str(given or self.inventory.get("inferred_product_type") or "library")

    def _chosen(self, section: str, locale: str, tier: str, most: int) -> Iterator[Draftable]:
        """Choose the pages of a section: what must be, then what the evidence offers."""
        rules = self.site.profile.section(section)
        needed = mandatory(rules)
        taken = {each.slug for each in needed}
        missing: list[dict[str, str]] = []
        found: list[Draftable] = []
        for candidate in [*needed, *optional(section, self.material)]:
            if len(found) >= most or (candidate.priority and candidate.slug in taken):
                continue
            page = self._draftable(candidate, locale, tier)
            if isinstance(page, Draftable):
                found.append(page)
                taken.add(candidate.slug)
            elif candidate.priority == 0:
                missing.append({"section": section, "slug": candidate.slug, "reason": page})
        if missing:
            raise _incomplete(missing)
        yield from found

    def _draftable(self, candidate: Candidate, locale: str, tier: str) -> Draftable | str:
        """Try a page; when it cannot be written, say why."""
        template = templates.find(
            candidate.section,
            candidate.slug,
            candidate.role,
            folder=self.site.profile.templates,
            locale=locale,
            variant=tier,
        )
        if template is None:
            return f"the profile has no template for it in the language {locale!r}"
        written = write(template, self._context(candidate, tier))
        if not written.claim_ids and not written.snippet_ids and candidate.role != "toc":
            return "the repository has no evidence for anything that it could say"
        return Draftable(candidate, locale, template, written)

    def _context(self, candidate: Candidate, tier: str) -> Context:
        return Context(
            material=self.material,
            subject=candidate.subject,
            tier=tier,
            max_lines=self.material.config["budgets"]["max_lines_per_file"],
        )

    def _placed(
        self, pages: Sequence[Draftable], serving: Serving, tier: str
    ) -> Iterator[dict[str, Any]]:
        paths = [self.site.path(p.candidate.section, p.candidate.slug, p.locale) for p in pages]
        serving = serving.knowing(paths)
        for number, (page, path) in enumerate(zip(pages, paths, strict=True), start=1):
            candidate, locale = page.candidate, page.locale
            served = serving.url_path(path, title=page.written.title, date=self.date)
            subject = candidate.subject
            yield {
                "section": candidate.section,
                "slug": candidate.slug,
                "output_path": path,
                "url_path": served or self.site.url(candidate.section, candidate.slug, locale),
                "title": page.written.title,
                "purpose": page.written.purpose,
                "page_role": candidate.role,
                "template_path": page.template.name,
                "template_variant": tier,
                "token_mappings": {
                    "DATE": self.date.isoformat(),
                    "LOCALE": locale,
                    "ORIGIN": self.site.origin(candidate.section, serving, locale),
                    "PRODUCT_NAME": self.material.product_name,
                    "WEIGHT": str(10 * number),
                    **({"SUBJECT": subject.key} if subject else {}),
                },
            }

    def _completed(
        self,
        entry: Mapping[str, Any],
        entries: Sequence[Mapping[str, Any]],
        page: Draftable,
        tier: str,
    ) -> dict[str, Any]:
        """Add what depends on the other pages: the final headings, and the links."""
        context = contextual(self._context(page.candidate, tier), entry, entries)
        written = write(page.template, context)
        tags = {each.snippet_id: each.tags for each in self.material.snippets}
        linked = (*context.children, *context.related)
        targets = {neighbours.absolute(each): each for each in entries}
        least, most = QUOTAS[page.candidate.role]
        topics = list(self.site.profile.brand.forbidden_topics)
        return {
            **entry,
            "required_headings": list(written.headings),
            "required_claim_ids": list(written.claim_ids),
            "required_snippet_tags": sorted(
                {tags[key][0] for key in written.snippet_ids if tags[key]}
            ),
            "cross_links": [
                uri
                for uri, target in targets.items()
                if any(link.url in (target["url_path"], uri) for link in linked)
            ],
            "seo_keywords": _keywords(self.material),
            "forbidden_topics": topics,
            "content_strategy": {
                "primary_focus": page.written.purpose,
                "forbidden_topics": topics,
                "claim_quota": {"min": least, "max": most},
                "child_pages": neighbours.child_slugs(entry, entries),
                "scenario_coverage": _coverage(page.candidate.role),
            },
        }

    def _refuse_collisions(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Refuse two pages at one address, whether planned or already on the site."""
        taken: dict[str, str] = {}
        planned = {entry["output_path"] for entry in entries}
        found: list[dict[str, str]] = []
        servings = {name: self.site.serving(name) for name in {e["section"] for e in entries}}
        standing = {
            (name, url): path
            for name, serving in servings.items()
            for path in self.site.pages
            if path not in planned and (url := serving.url_path(path)) is not None
        }
        for entry in entries:
            address = neighbours.absolute(entry)
            other = taken.get(address) or standing.get((entry["section"], entry["url_path"]))
            if other and other != entry["output_path"]:
                pair = {"url_path": entry["url_path"], "first": other}
                found.append({**pair, "second": entry["output_path"]})
            taken.setdefault(address, entry["output_path"])
        if found:
            first = found[0]
            raise ToolError(
                ErrorCode.INVALID_INPUT,
                f"{first['first']} and {first['second']} would both be at {first['url_path']}.",
                retryable=False,
                details={"error_code": "IA_PLANNER_URL_COLLISION", "collisions": found},
            )


def contextual(
    context: Context, entry: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]
) -> Context:
    """The context of a page with its neighbours."""
    return replace(
        context,
        children=neighbours.children(entry, entries),
        related=neighbours.related(entry, entries),
        section=neighbours.section(entry, entries),
    )


def _keywords(material: Material) -> list[str]:
    config = material.config
    words = [material.product_name, config["family"], config["target_platform"]]
    words += [way["identifier"] for way in material.facts.get("distribution", ())]
    return list(dict.fromkeys(word.lower() for word in words if word))


def _coverage(role: str) -> str:
    if role == "comprehensive_guide":
        return "all"
    return "single" if role in ("workflow_page", "feature_showcase") else "subset"


def _incomplete(missing: Sequence[Mapping[str, str]]) -> ToolError:
    first = missing[0]
    return ToolError(
        ErrorCode.INVALID_INPUT,
        f"The page {first['slug']!r} of {first['section']} cannot be planned: {first['reason']}.",
        hint="Add what is missing to the repository, or leave the section out.",
        retryable=False,
        details={"error_code": "IA_PLANNER_PLAN_INCOMPLETE", "missing": list(missing)},
    )

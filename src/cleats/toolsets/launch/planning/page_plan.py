"""The page plan: every page of a launch, with its file, its address and its required content.

Pages are chosen, located, and written once in memory to find out what each can state; the plan
requires exactly that. So a plan never promises a heading for which there is no evidence.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.drafting.page import PageTemplate, WrittenPage, find_template, write_page
from cleats.toolsets.launch.drafting.page_context import PageContext
from cleats.toolsets.launch.planning import page_candidates, planned_site
from cleats.toolsets.launch.planning.page_candidates import PageCandidate, list_mandatory_pages, list_optional_pages
from cleats.toolsets.launch.planning.planned_site import PlannedSite
from cleats.toolsets.launch.site.kinds import UrlRules

CLAIM_QUOTAS_BY_ROLE: Mapping[str, tuple[int, int]] = {
    "landing": (1, 100),
    "toc": (0, 100),
    "comprehensive_guide": (0, 400),
    "workflow_page": (0, 100),
    "feature_showcase": (1, 60),
    "troubleshooting": (1, 200),
    "api_reference": (0, 500),
}
"""The least and the most claims of a page, by role."""

NO_EVIDENCE_REASON = "the repository has no evidence for its content"

OMITTABLE_ROLES = frozenset({"comprehensive_guide"})
"""Roles of pages that are left out if the repository describes no task, although the profile lists them."""

_COVERAGE_BY_ROLE = {"comprehensive_guide": "all", "workflow_page": "single", "feature_showcase": "single"}


@dataclass(frozen=True, slots=True)
class DraftablePage:
    """A chosen page, and its text without links to other pages."""

    candidate: PageCandidate
    locale: str
    template: PageTemplate
    draft: WrittenPage


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePlanner:
    """Builds the plan of one run."""

    site: PlannedSite
    material: LaunchMaterial
    inventory: Mapping[str, Any]
    date: dt.date

    def build_plan(self) -> dict[str, Any]:
        """Build the page plan.

        Raises:
            ToolError: INVALID_INPUT with IA_PLANNER_PLAN_INCOMPLETE if a mandatory page has no
                evidence or no template, or with IA_PLANNER_URL_COLLISION.
        """
        config = self.material.config
        volume = page_candidates.EvidenceVolume.from_material(self.material)
        tier, adjustments = page_candidates.choose_tier(self.material, self.inventory, volume)
        quotas: dict[str, int] = {}
        entries: list[dict[str, Any]] = []
        chosen_pages: list[DraftablePage] = []
        omitted_pages: list[dict[str, str]] = []
        for section in config["required_sections"]:
            section_rules = self.site.profile.get_section(section)
            target = page_candidates.estimate_pages(section, len(section_rules.pages), self.material, volume)
            quotas[section] = page_candidates.compute_quota(section_rules, tier, target)
            url_rules = self.site.load_url_rules(section)
            for locale in config["locales"]:
                pages, left_out = self._choose_pages(section, locale, tier, quotas[section])
                omitted_pages += left_out
                chosen_pages += pages
                entries += self._iter_entries(pages, url_rules, tier)
        self._reject_collisions(entries)
        pairs = zip(entries, chosen_pages, strict=True)
        complete_entries = [self._complete_entry(entry, entries, page, tier) for entry, page in pairs]
        order = config["required_sections"]
        complete_entries.sort(key=lambda entry: (order.index(entry["section"]), entry["output_path"]))
        return {
            "schema_version": "1.0",
            "product_slug": config["product_slug"],
            "launch_tier": tier,
            "launch_tier_adjustments": adjustments,
            "inferred_product_type": str(
                config.get("product_type") or self.inventory.get("inferred_product_type") or "library"
            ),
            "evidence_volume": volume.as_json(),
            "effective_quotas": quotas,
            "pages": complete_entries,
            **({"omitted_pages": omitted_pages} if omitted_pages else {}),
        }

    def _choose_pages(
        self, section: str, locale: str, tier: str, max_pages: int
    ) -> tuple[list[DraftablePage], list[dict[str, str]]]:
        """Return the pages of a section, and those that the repository has nothing for, with the reasons."""
        mandatory_pages = list_mandatory_pages(self.site.profile.get_section(section))
        used_slugs = {mandatory_page.slug for mandatory_page in mandatory_pages}
        missing: list[dict[str, str]] = []
        omitted: list[dict[str, str]] = []
        pages: list[DraftablePage] = []
        for candidate in [*mandatory_pages, *list_optional_pages(section, self.material)]:
            if len(pages) >= max_pages or (candidate.priority and candidate.slug in used_slugs):
                continue
            if candidate.priority and self.site.was_removed_by_people(section, candidate.slug, locale):
                continue
            page = self._try_page(candidate, locale, tier)
            if isinstance(page, DraftablePage):
                pages.append(page)
                used_slugs.add(candidate.slug)
            elif candidate.role in OMITTABLE_ROLES and page == NO_EVIDENCE_REASON:
                omitted.append({"section": section, "slug": candidate.slug, "locale": locale, "reason": page})
            elif candidate.priority == 0:
                missing.append({"section": section, "slug": candidate.slug, "reason": page})
        if missing:
            first = missing[0]
            raise ToolError(
                ErrorCode.INVALID_INPUT,
                f"The page {first['slug']!r} of {first['section']} cannot be planned: {first['reason']}.",
                hint="Add what is missing to the repository, or omit the section.",
                details={"error_code": "IA_PLANNER_PLAN_INCOMPLETE", "missing": missing},
            )
        return pages, omitted

    def _try_page(self, candidate: PageCandidate, locale: str, tier: str) -> DraftablePage | str:
        """Try to write a page; return the reason if that is impossible."""
        template = find_template(
            *(candidate.section, candidate.slug, candidate.role),
            folder=self.site.profile.templates_folder,
            locale=locale,
            variant=tier,
        )
        if template is None:
            return f"the profile has no template for it in the language {locale!r}"
        written_page = write_page(template, self._build_context(candidate, tier))
        if not written_page.claim_ids and not written_page.snippet_ids and candidate.role != "toc":
            return NO_EVIDENCE_REASON
        return DraftablePage(candidate, locale, template, written_page)

    def _build_context(self, candidate: PageCandidate, tier: str) -> PageContext:
        return PageContext(
            material=self.material,
            subject=candidate.subject,
            tier=tier,
            max_lines=self.material.config["budgets"]["max_lines_per_file"],
        )

    def _iter_entries(self, pages: Sequence[DraftablePage], url_rules: UrlRules, tier: str) -> Iterator[dict[str, Any]]:
        paths = [
            self.site.resolve_page_path(draftable.candidate.section, draftable.candidate.slug, draftable.locale)
            for draftable in pages
        ]
        url_rules = url_rules.with_paths(paths)
        for number, (page, path) in enumerate(zip(pages, paths, strict=True), start=1):
            candidate, locale = page.candidate, page.locale
            served_path = url_rules.resolve_url_path(path, title=page.draft.title, date=self.date)
            subject = candidate.subject
            yield {
                "section": candidate.section,
                "slug": candidate.slug,
                "output_path": path,
                "url_path": served_path or self.site.resolve_page_url(candidate.section, candidate.slug, locale),
                "title": page.draft.title,
                "purpose": page.draft.purpose,
                "page_role": candidate.role,
                "template_path": page.template.name,
                "template_variant": tier,
                "token_mappings": {
                    "DATE": self.date.isoformat(),
                    "LOCALE": locale,
                    "ORIGIN": self.site.resolve_origin(candidate.section, url_rules, locale),
                    "PRODUCT_NAME": self.material.product_name,
                    "WEIGHT": str(10 * number),
                    **({"SUBJECT": subject.key} if subject else {}),
                },
            }

    def _complete_entry(
        self, entry: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], page: DraftablePage, tier: str
    ) -> dict[str, Any]:
        """Add what depends on the other pages: the final headings, and the links."""
        context = planned_site.add_neighbours(self.site.kind, self._build_context(page.candidate, tier), entry, entries)
        written_page = write_page(page.template, context)
        tags_by_snippet = {item.snippet_id: item.tags for item in self.material.snippets}
        linked_pages = (*context.children, *context.related)
        entries_by_url = {planned_site.format_absolute_url(item): item for item in entries}
        min_claims, max_claims = CLAIM_QUOTAS_BY_ROLE[page.candidate.role]
        topics = list(self.site.profile.brand.forbidden_topics)
        return {
            **entry,
            "required_headings": list(written_page.headings),
            "omitted_sections": [
                {"heading": heading, "reason": reason} for heading, reason in written_page.omitted.items()
            ],
            "required_claim_ids": list(written_page.claim_ids),
            "required_snippet_tags": sorted(
                {tags_by_snippet[key][0] for key in written_page.snippet_ids if tags_by_snippet[key]}
            ),
            "cross_links": [
                uri
                for uri, target in entries_by_url.items()
                if any(link.url in (self.site.kind.link_page(entry, target), uri) for link in linked_pages)
            ],
            "seo_keywords": _list_keywords(self.material),
            "forbidden_topics": topics,
            "content_strategy": {
                "primary_focus": page.draft.purpose,
                "forbidden_topics": topics,
                "claim_quota": {"min": min_claims, "max": max_claims},
                "child_pages": [child["slug"] for child in planned_site.find_child_entries(entry, entries)],
                "scenario_coverage": _COVERAGE_BY_ROLE.get(page.candidate.role, "subset"),
            },
        }

    def _reject_collisions(self, entries: Sequence[Mapping[str, Any]]) -> None:
        paths_by_url: dict[str, str] = {}
        planned_paths = {entry["output_path"] for entry in entries}
        collisions: list[dict[str, str]] = []
        existing_paths = {
            (name, url): path
            for name in {entry["section"] for entry in entries}
            for url_rules in [self.site.load_url_rules(name)]
            for path in self.site.pages
            if path not in planned_paths and (url := url_rules.resolve_url_path(path)) is not None
        }
        for entry in entries:
            address = planned_site.format_absolute_url(entry)
            other = paths_by_url.get(address) or existing_paths.get((entry["section"], entry["url_path"]))
            if other and other != entry["output_path"]:
                collisions.append({"url_path": entry["url_path"], "first": other, "second": entry["output_path"]})
            paths_by_url.setdefault(address, entry["output_path"])
        if collisions:
            first = collisions[0]
            raise ToolError(
                ErrorCode.INVALID_INPUT,
                f"{first['first']} and {first['second']} would both be at {first['url_path']}.",
                retryable=False,
                details={"error_code": "IA_PLANNER_URL_COLLISION", "collisions": collisions},
            )


def _list_keywords(material: LaunchMaterial) -> list[str]:
    config = material.config
    words = [material.product_name, config["family"], config["target_platform"]]
    words += [distribution["identifier"] for distribution in material.facts.get("distribution", ())]
    return list(dict.fromkeys(word.lower() for word in words if word))

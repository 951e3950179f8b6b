"""Candidates for pages: the mandatory ones of a profile, and those for which there is evidence.

An optional page needs its own content: a task with code, a module with enough documented names, or
an example that no task covers.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet
from cleats.toolsets.launch.drafting.page_context import PageSubject, describe_symbol, strip_markup
from cleats.toolsets.launch.drafting.tasks import find_workflow_snippets, is_starter
from cleats.toolsets.launch.profiles.parts import SiteSection

MIN_MODULE_NAMES = 4
"""The documented names from which a module gets its own page."""

MAX_TASK_SNIPPETS = 4
"""The most snippets on the page of a task."""

MIN_SPLIT_API_NAMES = 40
"""The public names from which the reference is split into several pages; fewer are easier to read
on one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCandidate:
    """A possible page. Priority 0 is mandatory."""

    section: str
    slug: str
    role: str
    priority: int = 0
    score: int = 0
    subject: PageSubject | None = None

    @property
    def sort_key(self) -> tuple[int, int, str]:
        return self.priority, -self.score, self.slug


def list_mandatory_pages(section: SiteSection) -> list[PageCandidate]:
    """Return the pages that a section always has, in the order of the profile."""
    return [PageCandidate(section=section.name, slug=page.slug, role=page.role) for page in section.pages]


def list_optional_pages(section: str, material: LaunchMaterial) -> list[PageCandidate]:
    """Return the pages of a section for which there is evidence, the best first."""
    generators = {"docs": _iter_task_pages, "reference": _iter_module_pages, "kb": _iter_example_pages}
    candidates = generators[section](material) if section in generators else ()
    return sorted(candidates, key=lambda candidate: candidate.sort_key)


def slugify_title(title: str) -> str:
    """Convert a title to a part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].strip("-")


def _iter_task_pages(material: LaunchMaterial) -> Iterator[PageCandidate]:
    for workflow in material.workflows:
        claims = material.filter_stateable(workflow["claim_ids"])
        snippets = find_workflow_snippets(material, workflow)[:MAX_TASK_SNIPPETS]
        slug = slugify_title(workflow["title"])
        if not claims or len(snippets) < 2 or not slug or is_starter(workflow):
            continue  # a single snippet is shown in the guide, next to the others
        yield PageCandidate(
            section="docs",
            slug=slug,
            role="workflow_page",
            priority=1,
            score=2 * len(claims) + 3 * len(snippets),
            subject=PageSubject(
                key=str(workflow["workflow_tag"]),
                title=strip_markup(str(workflow["title"])),
                claim_ids=tuple(claims),
                snippets=tuple(snippets),
            ),
        )


def _iter_module_pages(material: LaunchMaterial) -> Iterator[PageCandidate]:
    if len(material.symbols) < MIN_SPLIT_API_NAMES:
        return
    by_path: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for symbol in material.symbols:
        if describe_symbol(material, symbol):
            by_path[symbol["path"]].append(symbol)
    names = {module["path"]: module["name"] for module in material.facts["api_surface_summary"]["modules"]}
    for path, symbols in sorted(by_path.items()):
        name = str(names.get(path, ""))
        is_private = any(part.startswith("_") for part in name.split("."))
        if len(symbols) < MIN_MODULE_NAMES or is_private or not slugify_title(name):
            continue
        yield PageCandidate(
            section="reference",
            slug=slugify_title(name),
            role="api_reference",
            priority=2,
            score=len(symbols),
            subject=PageSubject(key=name, title=name, symbols=tuple(symbols)),
        )


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
            yield PageCandidate(
                section="kb",
                slug=slug,
                role="feature_showcase",
                priority=2,
                score=3 + 2 * len(claims),
                subject=PageSubject(
                    key=str(example["example_id"]),
                    title=strip_markup(str(example["title"])),
                    claim_ids=tuple(claims),
                    snippets=(snippet,),
                ),
            )

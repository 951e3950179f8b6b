"""The pages that could be written: those a profile always wants, and those the evidence offers.

A page beyond the mandatory ones must have something of its own to say: a task with code, a module
with enough documented names, an example that no task covers.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cleats.toolsets.launch.drafting.context import Subject
from cleats.toolsets.launch.drafting.forms import plain
from cleats.toolsets.launch.drafting.material import Material, Snippet
from cleats.toolsets.launch.drafting.symbols import described
from cleats.toolsets.launch.drafting.tasks import flow_snippets, is_starter
from cleats.toolsets.launch.profiles.parts import Section

MODULE_NAMES = 4
"""Fewer documented names than this stand on the overview alone."""

TASK_CODE = 4
"""Pieces of code that the page of a task shows at most."""

BIG_SURFACE = 40
"""With fewer names in all, one page of them is easier to read than several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A page that could be written. Priority 0 is mandatory."""

    section: str
    slug: str
    role: str
    priority: int = 0
    score: int = 0
    subject: Subject | None = None

    @property
    def order(self) -> tuple[int, int, str]:
        return self.priority, -self.score, self.slug


def mandatory(section: Section) -> list[Candidate]:
    """The pages that a section always has, in the profile's order."""
    return [Candidate(section=section.name, slug=p.slug, role=p.role) for p in section.pages]


def optional(section: str, material: Material) -> list[Candidate]:
    """The pages that the evidence offers for a section, the best first."""
    makers = {"docs": _tasks, "reference": _modules, "kb": _examples}
    found = makers[section](material) if section in makers else ()
    return sorted(found, key=lambda each: each.order)


def slugged(title: str) -> str:
    """A title as a part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].strip("-")


def _tasks(material: Material) -> Iterator[Candidate]:
    for flow in material.workflows:
        claims = material.known(flow["claim_ids"])
        snippets = flow_snippets(material, flow)[:TASK_CODE]
        slug = slugged(flow["title"])
        if not claims or len(snippets) < 2 or not slug or is_starter(flow):
            continue  # one piece of code stands in the guide, where it is read with the others
        yield Candidate(
            section="docs",
            slug=slug,
            role="workflow_page",
            priority=1,
            score=2 * len(claims) + 3 * len(snippets),
            subject=Subject(
                key=str(flow["workflow_tag"]),
                title=plain(str(flow["title"])),
                claim_ids=tuple(claims),
                snippets=tuple(snippets),
            ),
        )


def _modules(material: Material) -> Iterator[Candidate]:
    if len(material.symbols) < BIG_SURFACE:
        return
    by_path: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for symbol in material.symbols:
        if described(material, symbol):
            by_path[symbol["path"]].append(symbol)
    names = {
        each["path"]: each["name"] for each in material.facts["api_surface_summary"]["modules"]
    }
    for path, symbols in sorted(by_path.items()):
        name = str(names.get(path, ""))
        private = any(part.startswith("_") for part in name.split("."))
        if len(symbols) < MODULE_NAMES or private or not slugged(name):
            continue
        yield Candidate(
            section="reference",
            slug=slugged(name),
            role="api_reference",
            priority=2,
            score=len(symbols),
            subject=Subject(key=name, title=name, symbols=tuple(symbols)),
        )


def _examples(material: Material) -> Iterator[Candidate]:
    """Examples that no task shows; each with a statement of its own."""
    covered = {tag for flow in material.workflows for tag in flow["snippet_tags"]}
    by_id: dict[str, Snippet] = {each.snippet_id: each for each in material.snippets}
    for example in material.facts["example_inventory"]:
        snippet = by_id.get(example["primary_snippet_id"])
        slug = slugged(example["title"])
        if snippet is None or not slug or covered & set(snippet.tags):
            continue
        claims = [c for c in material.of_kind("workflow") if _cites(material, c, snippet.path)]
        if claims:
            yield Candidate(
                section="kb",
                slug=slug,
                role="feature_showcase",
                priority=2,
                score=3 + 2 * len(claims),
                subject=Subject(
                    key=str(example["example_id"]),
                    title=plain(str(example["title"])),
                    claim_ids=tuple(claims),
                    snippets=(snippet,),
                ),
            )


def _cites(material: Material, claim_id: str, path: str) -> bool:
    return any(each["path"] == path for each in material.claims[claim_id]["citations"])

"""The tasks of a product, in the words and with the code of its repository."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from cleats.toolsets.launch.drafting import api_overview, code_leads, document_text, first_program, page_context
from cleats.toolsets.launch.drafting.document_text import Section
from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet
from cleats.toolsets.launch.drafting.page_context import LinkedPage, PageContext
from cleats.toolsets.launch.gates.page_text import is_negated
from cleats.toolsets.launch.source.evidence.document_claims import slugify_title

MAX_GUIDE_LINES = 420
"""Lines of all tasks from which sections with less code get pages of their own, too."""

MIN_OWN_PAGE_SNIPPETS_OF_MANY = 4
"""Pieces of code from which a section gets a page of its own if there are more tasks than a guide has room for."""

MAX_DOCUMENTED_EXAMPLES = 8
"""Pieces of code from the documentation of names in a guide whose documents have none."""

_SHOWN_TOPICS = ("configuration", "troubleshooting", "questions")
"""Topics that a page shows besides the tasks."""

LOST_CODE_REASON = "Its code does not parse, so that the text has nothing to explain."

_SOURCE_IMPORT_PATTERN = re.compile(r"""(?:from|require\(|import)\s*["']\.\./""")
"""An import of the source beside it, as programs of the developers have it."""

NO_ROOM_REASON = "The page would be longer than the budget of the run allows."

MIN_TASK_CHARACTERS = 120
"""Characters of a section without code at least, with its markers; less is a remark, not a task."""

LOCATION_CLAIM_PATTERN = re.compile(r"^The (?:repository|readme|documentation) of .* (?:example|code)\b")
"""A claim that only states the location of code."""


def list_task_sections(material: LaunchMaterial) -> list[Section]:
    """Return the sections that describe tasks, without the one that the page for beginners shows."""
    first = first_program.find_first_section(material)
    return [section for section in document_text.list_sections(material, "task") if section is not first]


def has_own_page(material: LaunchMaterial, section: Section) -> bool:
    """Return whether a section has so much code that it gets a page of its own."""
    least = first_program.MIN_OWN_PAGE_SNIPPETS
    if _estimate_lines(material) > MAX_GUIDE_LINES:
        least = MIN_OWN_PAGE_SNIPPETS_OF_MANY
    return len(document_text.list_section_snippets(material, section)) >= least


@lru_cache(maxsize=first_program.CACHED_RESULTS)
def _estimate_lines(material: LaunchMaterial) -> int:
    """Return about how many lines all tasks would take in one guide."""
    sections = document_text.list_sections(material, "task")
    snippets = (item for section in sections for item in document_text.list_section_snippets(material, section))
    return sum(item.code.count("\n") + 4 for item in snippets) + 3 * sum(len(item["parts"]) for item in sections)


def render_tasks(context: PageContext) -> str:
    """Render a section for each task of the documents, then for each example that none of them shows."""
    return "\n\n".join(_split_tasks(context)[0]) or _render_only_task(context)


def _render_only_task(context: PageContext) -> str:
    """Render the section of the first program, for a product whose documents describe no other task."""
    section = first_program.find_first_section(context.material)
    body = document_text.render_section(context.material, section) if section else ""
    if section is None or not body:
        return ""
    snippets = document_text.list_section_snippets(context.material, section)
    return f"## {section['title']}\n\n{code_leads.add_lead(context.material, body, snippets, section['path'])}"


def list_omitted_tasks(context: PageContext) -> dict[str, str]:
    """Return the titles of the tasks that the guide leaves out, with the reasons."""
    return _split_tasks(context)[1]


@dataclass
class _Guide:
    """The tasks of a guide as far as there is room, and those that it leaves out, with the reasons."""

    max_lines: int
    line_count: int
    shown_ids: set[str]
    parts: list[str] = field(default_factory=list)
    omitted: dict[str, str] = field(default_factory=dict)

    def add_task(self, title: str, body: str, heading: str = "##") -> bool:
        """Add a task; return whether there is room for it."""
        line_count = document_text.count_lines(body)
        if self.line_count + line_count > self.max_lines:
            self.omitted[title] = NO_ROOM_REASON
            return False
        self.parts.append(f"{heading} {title}\n\n{body}")
        self.line_count += line_count
        return True


def _split_tasks(context: PageContext) -> tuple[list[str], dict[str, str]]:
    material = context.material
    program = first_program.choose_first_program(material)
    shown_ids = {program.snippet_id} if program and "getting-started" in context.section else set()
    topics = (document_text.render_topic(material, topic, context.max_topic_lines) for topic in _SHOWN_TOPICS)
    guide = _Guide(context.max_lines, 80 + sum(map(document_text.count_lines, topics)), shown_ids)
    _add_documented_tasks(context, guide)
    first = first_program.find_first_section(material)
    first_snippets = document_text.list_section_snippets(material, first) if first else []
    guide.shown_ids |= {item.snippet_id for item in first_snippets}  # on the page for beginners
    _add_examples(context, guide)
    if not any("```" in part for part in guide.parts) and (body := _render_documented_code(material, guide.shown_ids)):
        has_examples = any(part.startswith("## Examples\n") for part in guide.parts)
        guide.parts.append(f"## {'More examples' if has_examples else 'Examples'}\n\n{body}")
    return guide.parts, guide.omitted


def _add_documented_tasks(context: PageContext, guide: _Guide) -> None:
    material = context.material
    child_pages = {page.title: page for page in context.children}
    first = first_program.find_first_section(material)
    above: tuple[str, int] | None = None  # the document and the level of the last heading
    sections = document_text.list_sections(material, "task")
    for section, following in zip_longest(sections, sections[1:]):
        if section is first:  # on the page for beginners
            above = None
            continue
        child = child_pages.get(page_context.strip_markup(section["title"]))
        snippets = document_text.list_section_snippets(material, section)
        body = _render_task(material, section, child, guide.shown_ids)
        guide.shown_ids |= {snippet.snippet_id for snippet in snippets}
        if child is None and _has_lost_code(material, section):
            guide.omitted[section["title"]] = LOST_CODE_REASON
            continue
        is_parent = following is not None and _is_below(following, (section["path"], section["level"]))
        is_remark = len(body) < MIN_TASK_CHARACTERS and "```" not in body
        if not body or (is_remark and child is None and not is_parent):
            continue
        is_below = _is_below(section, above)
        if guide.add_task(section["title"], body, "###" if is_below else "##"):
            above = above if is_below else (section["path"], section["level"])


def _render_task(
    material: LaunchMaterial, section: Section, child: LinkedPage | None, shown_ids: Collection[str]
) -> str:
    """Render the section of a task; of one with a page of its own, only the sentences that it begins with."""
    body = document_text.render_section(material, section, excluded_ids=shown_ids, with_code=child is None)
    snippets = document_text.list_section_snippets(material, section)
    if child is None:
        warnings = document_text.render_warnings(material, snippets)
        body = "\n\n".join(filter(None, [body, warnings]))
        return code_leads.add_lead(material, body, snippets, section["path"])
    first_text = body.partition("\n\n")[0]
    is_lead = section["parts"][0].get("kind") == "text" and ": <!--" not in first_text
    return "\n\n".join([*([first_text] if is_lead else []), f"[{child.title}]({child.url}) has the code."])


def _add_examples(context: PageContext, guide: _Guide) -> None:
    """Add the examples that no task shows."""
    material = context.material
    for workflow in material.workflows:
        snippets = [
            item
            for item in find_workflow_snippets(material, workflow)
            if item.snippet_id not in guide.shown_ids and page_context.is_short(item) and "example" in item.tags
            if not (guide.parts and _SOURCE_IMPORT_PATTERN.search(item.code))
            if not material.symbols or "usage" in item.tags or first_program.find_public_names(material, item)
        ][:1]
        code = first_program.render_with_warnings(material, snippets)
        body = "\n\n".join(filter(None, [render_lead(context, workflow), code]))
        if snippets and guide.add_task(workflow["title"], body):
            guide.shown_ids |= {item.snippet_id for item in snippets}


def _is_below(section: Section, above: tuple[str, int] | None) -> bool:
    """Return whether the heading of a section is below another one of the same document."""
    return above is not None and above[0] == section["path"] and section["level"] > above[1]


def _has_lost_code(material: LaunchMaterial, section: Section) -> bool:
    """Return whether a section shows code of the product, none of which a page can show."""
    languages = {entry["snippet_id"]: entry["language"] for entry in material.catalogue["snippets"]}
    snippet_ids = [part["snippet_id"] for part in section["parts"] if part["kind"] == "code"]
    own_ids = [key for key in snippet_ids if languages.get(key) == material.language]
    return bool(own_ids) and not any(key in material.snippets_by_id for key in snippet_ids)


def _render_documented_code(material: LaunchMaterial, shown_ids: Collection[str]) -> str:
    """Render the code in the documentation of public names, each with what the first of them is for."""
    blocks: list[str] = []
    for item in material.find_snippets(["docstring"], material.language):
        if item.snippet_id in shown_ids or not page_context.is_short(item):
            continue
        symbols = code_leads.list_used_symbols(material, [item]) or [
            symbol for symbol in material.symbols if slugify_title(re.split(r"\W+", symbol["name"])[-1]) in item.tags
        ]
        leads = [api_overview.render_lead(material, symbol) for symbol in symbols]
        if (lead := next(filter(None, leads), "")) and len(blocks) < MAX_DOCUMENTED_EXAMPLES:
            is_new_lead = not any(block.startswith(lead) for block in blocks)
            code = page_context.fence_code(item.language, item.code)
            blocks.append(f"{lead}\n\n{code}" if is_new_lead else code)
    return "\n\n".join(blocks)


def is_starter(workflow: Mapping[str, Any]) -> bool:
    """Return True if a task is about getting started."""
    return bool(set(first_program.STARTER_TAGS[:-1]) & {str(workflow["workflow_tag"]), *workflow["snippet_tags"]})


def render_lead(context: PageContext, workflow: Mapping[str, Any]) -> str:
    """Render the description of a task if its evidence supports it, else its claims.

    Claims that only state the location of the code are left out, because the code shows it as well.
    """
    material = context.material
    claim_ids = material.filter_stateable(workflow["claim_ids"])
    informative_ids = [
        claim_id for claim_id in claim_ids if not LOCATION_CLAIM_PATTERN.search(material.claims[claim_id]["claim_text"])
    ]
    if informative_ids or not claim_ids:
        return page_context.render_claims(context, informative_ids[:4])
    description = str(workflow.get("description") or "")
    denies = is_negated(description) != is_negated(material.claims[claim_ids[0]]["claim_text"])
    usable = description and "{{" not in description and not denies
    return material.state_claim(claim_ids[0], description) if usable else ""


def find_workflow_snippets(material: LaunchMaterial, workflow: Mapping[str, Any]) -> list[PageSnippet]:
    """Return the code of a task, the best first."""
    steps = workflow.get("steps", ())
    by_id = material.snippets_by_id
    step_snippets = [by_id[step["snippet_id"]] for step in steps if step.get("snippet_id") in by_id]
    candidates = dict.fromkeys([*step_snippets, *material.find_snippets(workflow["snippet_tags"])])
    product_snippets = [snippet for snippet in candidates if snippet.language == material.language]
    return product_snippets or list(candidates)  # shell commands are shown only if there is no code


def find_section_slug(section: Section) -> str:
    """Return the slug of a section's page."""
    return slugify_title(section["title"])


def list_shown_claims(sections: Iterable[Section]) -> set[str]:
    """Return the claims that the text of some sections states."""
    return {part["claim_id"] for section in sections for part in section["parts"] if "claim_id" in part}

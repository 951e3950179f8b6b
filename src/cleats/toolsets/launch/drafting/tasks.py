"""The first program and the tasks of a product, in the words and with the code of its repository."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from cleats.toolsets.launch.drafting import api_overview, document_text, page_context
from cleats.toolsets.launch.drafting.document_text import Section
from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet
from cleats.toolsets.launch.drafting.page_context import PageContext
from cleats.toolsets.launch.drafting.used_names import find_used_names
from cleats.toolsets.launch.gates.page_text import is_negated
from cleats.toolsets.launch.source.checkout.repository_layout import is_compatible_language
from cleats.toolsets.launch.source.evidence.document_claims import slugify_title

STARTER_TAGS = ("quickstart", "quick-start", "getting-started", "basic-usage", "basic-example", "readme")
"""Tags of code for new users, the best first."""

MAX_FIRST_PROGRAM_LINES = 30
"""Lines of a first program at most, if there is any shorter code."""

MIN_OWN_PAGE_SNIPPETS = 6
"""Pieces of code from which a section of a document gets a page of its own."""

MAX_DOCUMENTED_EXAMPLES = 8
"""Pieces of code from the documentation of names in a guide whose documents have none."""

_SHOWN_TOPICS = ("configuration", "troubleshooting", "questions")
"""Topics that a page shows besides the tasks."""

_FAILURE_PATH_PATTERN = re.compile(r"(?:error|exception|fail|invalid)[^/]*$", re.IGNORECASE)
"""The file of an example that shows how something goes wrong."""

_IMPORT_LINE_PATTERN = re.compile(r"\s*(?:import|from|use|using|(?:const|let|var)\b.*\brequire\(|\")")

NO_ROOM_REASON = "The page would be longer than the budget of the run allows."

MIN_TASK_CHARACTERS = 120
"""Characters of a section at least, with its markers; less is a remark, not the description of a task."""

LOCATION_CLAIM_PATTERN = re.compile(r"^The (?:repository|readme|documentation) of .* (?:example|code)\b")
"""A claim that only states the location of code."""


def choose_first_program(material: LaunchMaterial) -> PageSnippet | None:
    """Choose the simplest public code that covers the main entry point.

    It is short code with which the documents begin, else code with the public name that most of the code uses.
    Code that needs other packages, or that imports nothing of the product, comes last.
    """
    candidates = [item for item in material.snippets if is_compatible_language(item.language, material.language)]
    usable = [item for item in candidates if page_context.is_short(item)] or candidates[:1]
    uses = {item.snippet_id: _find_public_names(material, item) for item in usable}
    counts: dict[str, int] = {}
    for names in uses.values():
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    public_names = [str(symbol["name"]) for symbol in material.symbols]
    main_name = max(counts, key=lambda name: counts[name], default="")

    positions = {entry["snippet_id"]: number for number, entry in enumerate(material.catalogue["snippets"])}

    def rank_program(item: PageSnippet) -> tuple[Any, ...]:
        lines = item.code.count("\n") + 1
        is_starter_code = bool(set(STARTER_TAGS[:-1]) & set(item.tags))
        kind = next((number for number, tag in enumerate(("readme", "example", "docs")) if tag in item.tags), 3)
        return (
            not uses[item.snippet_id] and "usage" not in item.tags,
            _is_signature(item, public_names),
            len(item.dependencies) > 1,
            bool(_FAILURE_PATH_PATTERN.search(item.path)),
            not uses[item.snippet_id],
            lines > MAX_FIRST_PROGRAM_LINES,
            not is_starter_code,
            kind > 1,
            main_name not in uses[item.snippet_id] and not is_starter_code,
            not _imports_product(material, item),
            kind,
            lines < 2,
            positions[item.snippet_id],
        )

    return min(usable, key=rank_program, default=None)


def _is_signature(snippet: PageSnippet, names: Collection[str]) -> bool:
    """Return whether code only shows how a public name is declared."""
    first_line = snippet.code.partition("\n")[0]
    match = re.match(r"(?:async |export |public |static |pub )*(?:def|class|function|func|fn) (\w+)", first_line)
    is_indented = all(line[:1] in ("", " ", "\t", ")", "}") for line in snippet.code.split("\n")[1:])
    return match is not None and is_indented and any(re.split(r"\W+", name)[-1] == match[1] for name in names)


def _imports_product(material: LaunchMaterial, snippet: PageSnippet) -> bool:
    """Return whether code has a line that imports the product, in the way of any of the languages."""
    names = [name for item in material.facts.get("distribution", ()) for name in item.get("import_names", ())]
    import_lines = [line for line in snippet.code.split("\n") if _IMPORT_LINE_PATTERN.match(line)]
    return any(name in line for line in import_lines for name in names)


def _find_public_names(material: LaunchMaterial, snippet: PageSnippet) -> frozenset[str]:
    if material.language == "python":
        return find_used_names(snippet.code) & frozenset(symbol["name"] for symbol in material.symbols)
    words = set(re.findall(r"\w+", snippet.code))
    return frozenset(
        symbol["name"] for symbol in material.symbols if re.split(r"\W+", symbol["name"].rstrip("!"))[-1] in words
    )


def render_first_program(context: PageContext) -> str:
    """Render the first program with the text of the section it comes from and the warnings of what it uses."""
    material = context.material
    program = choose_first_program(material)
    if program is None:
        return ""
    section, lead_id = _find_program_lead(material, program)
    lead = document_text.render_section(material, section, shown_ids={lead_id}, with_code=False) if section else ""
    return "\n\n".join(filter(None, [lead, _render_with_warnings(material, [program], lead)]))


def _find_program_lead(material: LaunchMaterial, program: PageSnippet) -> tuple[Section | None, str]:
    """Return the section that shows the program, and the claim of the sentences directly above it."""
    for section in document_text.list_sections(material, "task", "introduction", "features", "install"):
        for above, part in pairwise(section["parts"]):
            if part.get("snippet_id") == program.snippet_id and above["kind"] == "text":
                is_stateable = above["claim_id"] in material.claims
                return (section, above["claim_id"]) if is_stateable else (None, "")
    return None, ""


def find_first_section(material: LaunchMaterial) -> Section | None:
    """Return the section of the documents that the first program comes from, if it is about getting started."""
    program = choose_first_program(material)
    for section in document_text.list_sections(material, "task", "introduction", "features", "install"):
        snippets = document_text.list_section_snippets(material, section)
        if program in snippets and len(snippets) <= MIN_OWN_PAGE_SNIPPETS and section["topic"] == "task":
            return section
    return None


def render_next_steps_code(context: PageContext) -> str:
    """Render the rest of the section that the first program comes from."""
    material = context.material
    section, program = find_first_section(material), choose_first_program(material)
    if section is None or program is None:
        return ""
    excluded_ids = {program.snippet_id, _find_program_lead(material, program)[1]}
    return document_text.render_section(material, section, excluded_ids=excluded_ids)


def list_task_sections(material: LaunchMaterial) -> list[Section]:
    """Return the sections that describe tasks, without the one that the page for beginners shows."""
    first = find_first_section(material)
    return [section for section in document_text.list_sections(material, "task") if section is not first]


def has_own_page(material: LaunchMaterial, section: Section) -> bool:
    """Return whether a section has so much code that it gets a page of its own."""
    return len(document_text.list_section_snippets(material, section)) >= MIN_OWN_PAGE_SNIPPETS


def render_tasks(context: PageContext) -> str:
    """Render a section for each task of the documents, then for each example that none of them shows."""
    has_topics = any(document_text.list_sections(context.material, *_SHOWN_TOPICS))
    fallback = "" if has_topics else _render_features_and_names(context)
    return "\n\n".join(_split_tasks(context)[0]) or _render_only_task(context) or fallback


def _render_only_task(context: PageContext) -> str:
    """Render the section of the first program, for a product whose documents describe no other task."""
    section = find_first_section(context.material)
    body = document_text.render_section(context.material, section) if section else ""
    lead = f"From `{section['path']}`:\n\n" if section and body.startswith("```") else ""
    return f"## {section['title']}\n\n{lead}{body}" if section and body else ""


def list_omitted_tasks(context: PageContext) -> dict[str, str]:
    """Return the titles of the tasks that the guide leaves out, with the reasons."""
    return _split_tasks(context)[1]


def _split_tasks(context: PageContext) -> tuple[list[str], dict[str, str]]:
    material = context.material
    program = choose_first_program(material)
    shown_ids = {program.snippet_id} if program and "getting-started" in context.section else set()
    child_pages = {page.title: page for page in context.children}
    parts: list[str] = []
    omitted: dict[str, str] = {}
    topics = (document_text.render_topic(material, topic, context.max_topic_lines) for topic in _SHOWN_TOPICS)
    line_count = 80 + sum(map(document_text.count_lines, topics))
    above: tuple[str, int] | None = None  # the document and the level of the last heading
    for section in list_task_sections(material):
        child = child_pages.get(page_context.strip_markup(section["title"]))
        body = document_text.render_section(material, section, excluded_ids=shown_ids, with_code=child is None)
        if child is not None:
            body = "\n\n".join(filter(None, [body.split("\n\n")[0], f"[{child.title}]({child.url}) has the code."]))
        else:
            snippets = document_text.list_section_snippets(material, section)
            body = "\n\n".join(filter(None, [body, document_text.render_warnings(material, snippets)]))
            shown_ids |= {snippet.snippet_id for snippet in snippets}
        if len(body) < MIN_TASK_CHARACTERS:
            continue
        if body.startswith("```"):
            body = f"From `{section['path']}`:\n\n{body}"
        if line_count + document_text.count_lines(body) > context.max_lines:
            omitted[section["title"]] = NO_ROOM_REASON
            continue
        is_below = above is not None and above[0] == section["path"] and section["level"] > above[1]
        above = above if is_below else (section["path"], section["level"])
        heading = "###" if is_below else "##"
        parts.append(f"{heading} {section['title']}\n\n{body}")
        line_count += document_text.count_lines(body)
    first = find_first_section(material)
    first_snippets = document_text.list_section_snippets(material, first) if first else []
    shown_ids |= {item.snippet_id for item in first_snippets}  # on the page for beginners
    for workflow in material.workflows:
        snippets = [
            item
            for item in find_workflow_snippets(material, workflow)
            if item.snippet_id not in shown_ids and page_context.is_short(item) and "example" in item.tags
            if not material.symbols or "usage" in item.tags or _find_public_names(material, item)
        ][:1]
        body = "\n\n".join(filter(None, [render_lead(context, workflow), _render_with_warnings(material, snippets)]))
        if snippets and line_count + document_text.count_lines(body) > context.max_lines:
            omitted[workflow["title"]] = NO_ROOM_REASON
        elif snippets:
            shown_ids |= {item.snippet_id for item in snippets}
            parts.append(f"## {workflow['title']}\n\n{body}")
            line_count += document_text.count_lines(body)
    if not any("```" in part for part in parts) and (body := _render_documented_code(material, shown_ids)):
        parts.append(f"## Examples\n\n{body}")
    return parts, omitted


def _render_documented_code(material: LaunchMaterial, shown_ids: Collection[str]) -> str:
    """Render the code in the documentation of public names, each with what the first of them is for."""
    blocks: list[str] = []
    for item in material.find_snippets(["docstring"], material.language):
        if item.snippet_id in shown_ids or not page_context.is_short(item):
            continue
        symbols = document_text.list_used_symbols(material, [item]) or [
            symbol for symbol in material.symbols if slugify_title(re.split(r"\W+", symbol["name"])[-1]) in item.tags
        ]
        leads = [api_overview.render_lead(material, symbol) for symbol in symbols]
        if (lead := next(filter(None, leads), "")) and len(blocks) < MAX_DOCUMENTED_EXAMPLES:
            blocks.append(f"{lead}\n\n{page_context.fence_code(item.language, item.code)}")
    return "\n\n".join(dict.fromkeys(blocks))


def _render_with_warnings(material: LaunchMaterial, snippets: Sequence[PageSnippet], lead: str = "") -> str:
    if not snippets:
        return ""
    code = page_context.render_snippets(*snippets, has_lead=bool(lead))
    return "\n\n".join(filter(None, [code, document_text.render_warnings(material, snippets)]))


def _render_features_and_names(context: PageContext) -> str:
    """Render the guide of a product without tasks: its features and its names."""
    material = context.material
    features = page_context.render_claims(context, material.list_group("key_features")[1 : context.max_items])
    names = api_overview.render_symbols(material, material.symbols, context.max_items, "What it is")
    parts = (("What it does", features), ("Names to begin with", names))
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts if text)


def is_starter(workflow: Mapping[str, Any]) -> bool:
    """Return True if a task is about getting started."""
    return bool(set(STARTER_TAGS[:-1]) & {str(workflow["workflow_tag"]), *workflow["snippet_tags"]})


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

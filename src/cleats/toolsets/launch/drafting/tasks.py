"""Text about tasks: the first program, the guide to all tasks, and the page of one task."""

import ast
import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet
from cleats.toolsets.launch.drafting.page_context import (
    PageContext,
    is_short,
    render_claims,
    render_snippets,
    render_symbols,
    strip_markup,
)
from cleats.toolsets.launch.gates.page_text import is_negated
from cleats.toolsets.launch.source.checkout import safe_parsing

STARTER_TAGS = ("quickstart", "quick-start", "getting-started", "basic-usage", "basic-example", "readme")
"""Tags of code for new users, the best first."""

BEGINNER_PAGE_SLUG = "getting-started"
"""The slug of the page for beginners."""

LOCATION_CLAIM_PATTERN = re.compile(r"^The (?:repository|readme|documentation) of .* (?:example|code)\b")
"""A claim that only states the location of code."""


def render_first_example(context: PageContext) -> str:
    """Render the code to begin with."""
    starters = _find_starters(context)
    return render_snippets(starters[0]) if starters else ""


def render_more_examples(context: PageContext) -> str:
    """Render further examples for beginners."""
    examples = [snippet for snippet in _find_starters(context)[1:] if set(STARTER_TAGS[:-1]) & set(snippet.tags)]
    return render_snippets(*examples[:2])


def _find_starters(context: PageContext) -> list[PageSnippet]:
    """Return code for beginners, the best first, and only short code if there is any."""
    material = context.material
    tagged = [snippet for tag in STARTER_TAGS for snippet in material.find_snippets((tag,), material.language)]
    rest = [snippet for snippet in material.snippets if snippet.language == material.language]
    candidates = list(dict.fromkeys([*tagged, *rest]))
    return [snippet for snippet in candidates if is_short(snippet)] or candidates[:1]


def render_workflows(context: PageContext) -> str:
    """Render a section for each task.

    Code for beginners has its own page; the other tasks are shown as far as there is room.
    """
    material = context.material
    beginner_page = context.section.get(BEGINNER_PAGE_SLUG)
    if not material.workflows:
        return _render_examples(context)
    parts: list[str] = []
    line_count = 80
    shown_ids: set[str] = set()
    child_pages = {item.title: item for item in context.children}
    for workflow in material.workflows:
        if is_starter(workflow) and beginner_page is not None:
            parts.append(f"## {workflow['title']}\n\n[{beginner_page.title}]({beginner_page.url}) goes through it.")
            continue
        snippets = [
            item
            for item in find_workflow_snippets(material, workflow)
            if item.snippet_id not in shown_ids and is_short(item)
        ][:1]
        lead = _render_lead(context, workflow)
        blocks = [lead, render_snippets(*snippets, lead=lead)]
        if page := child_pages.get(strip_markup(workflow["title"])):
            blocks.append(f"[{page.title}]({page.url}) shows more of it.")
        body = "\n\n".join(block for block in blocks if block)
        if not snippets or line_count + body.count("\n") > context.max_lines:
            body = render_claims(context, material.filter_stateable(workflow["claim_ids"])[:2])
        if body:
            shown_ids.update(item.snippet_id for item in snippets)
            parts.append(f"## {workflow['title']}\n\n{body}")
            line_count += body.count("\n") + 4
    if beginner_page is not None and all(is_starter(workflow) for workflow in material.workflows):
        parts.append(_render_examples(context))  # a guide needs more than a link to another page
    return "\n\n".join(part for part in parts if part)


def render_code_note(context: PageContext) -> str:
    """Render a note about the origin of the code, if the guide has any."""
    if "```" not in render_workflows(context):
        return ""
    return "All code is taken from its repository; pieces from one file can build on each other."


def _render_examples(context: PageContext) -> str:
    """Render the guide of a product without tasks: its code, or else its features and names."""
    material = context.material
    starters = _find_starters(context)[:1]
    snippets = [
        snippet
        for snippet in material.snippets
        if snippet.language == material.language and snippet not in starters and is_short(snippet)
    ]
    if snippets:
        return f"## Examples\n\n{render_snippets(*snippets[: context.max_items])}"
    features = render_claims(context, material.list_group("key_features")[: context.max_items])
    names = render_symbols(material, material.symbols, context.max_items, "What it is")
    parts = (("What it does", features), ("Names to begin with", names))
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts if text)


def is_starter(workflow: Mapping[str, Any]) -> bool:
    """Return True if a task is about getting started."""
    return bool(set(STARTER_TAGS[:-1]) & {str(workflow["workflow_tag"]), *workflow["snippet_tags"]})


def _render_lead(context: PageContext, workflow: Mapping[str, Any]) -> str:
    """Render the description of a task if its evidence supports it, else its claims.

    Claims that only state the location of the code are left out, because the code shows it as well.
    """
    material = context.material
    claim_ids = material.filter_stateable(workflow["claim_ids"])
    informative_ids = [
        claim_id for claim_id in claim_ids if not LOCATION_CLAIM_PATTERN.search(material.claims[claim_id]["claim_text"])
    ]
    if informative_ids or not claim_ids:
        return render_claims(context, informative_ids[:4])
    description = str(workflow.get("description") or "")
    denies = is_negated(description) != is_negated(material.claims[claim_ids[0]]["claim_text"])
    usable = description and "{{" not in description and not denies
    return material.state_claim(claim_ids[0], description) if usable else ""


def find_workflow_snippets(material: LaunchMaterial, workflow: Mapping[str, Any]) -> list[PageSnippet]:
    """Return the code of a task, the best first."""
    by_id = {snippet.snippet_id: snippet for snippet in material.snippets}
    step_snippets = [by_id[step["snippet_id"]] for step in workflow.get("steps", ()) if step.get("snippet_id") in by_id]
    candidates = dict.fromkeys([*step_snippets, *material.find_snippets(workflow["snippet_tags"])])
    product_snippets = [snippet for snippet in candidates if snippet.language == material.language]
    return product_snippets or list(candidates)  # shell commands are shown only if there is no code


def render_subject_lead(context: PageContext) -> str:
    """Render the statements about the subject of the page."""
    if context.subject is None:
        return ""
    for workflow in context.material.workflows:
        if workflow["workflow_tag"] == context.subject.key:
            return _render_lead(context, workflow)
    return render_claims(context, context.material.filter_stateable(context.subject.claim_ids)[: context.max_items])


def render_subject_symbols(context: PageContext) -> str:
    """Render the names of the product that the code of the subject uses."""
    if context.subject is None:
        return ""
    code_names = find_used_names("\n".join(item.code for item in context.subject.snippets))
    used_symbols = [item for item in context.material.symbols if item["name"] in code_names]
    return render_symbols(context.material, used_symbols, context.max_rows, "What it is")


def find_used_names(code: str) -> frozenset[str]:
    """Return the full names that Python code imports or reads from imported modules.

    A word in the code is no proof: `console.print` is not the `print` of the package.
    """
    tree = safe_parsing.parse_python(code)
    if tree is None:
        return frozenset()
    imported_names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first_name = alias.name.split(".")[0]
                imported_names[alias.asname or first_name] = alias.name if alias.asname else first_name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported_names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    names = set(imported_names.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (dotted := _format_dotted_name(node)):
            first, _, rest = dotted.partition(".")
            if first in imported_names:
                names.add(f"{imported_names[first]}.{rest}")
    return frozenset(names)


def _format_dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (prefix := _format_dotted_name(node.value)):
        return f"{prefix}.{node.attr}"
    return ""

"""Renderers for the tokens of a template.

Every function renders one block from the material, or returns an empty text if there is no evidence
for it. A statement of fact is one line that ends with its claim marker. Sentences without a marker
describe the page or what the reader can do, never the product.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cleats.toolsets.launch.drafting import page_context
from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet, format_claim_marker
from cleats.toolsets.launch.drafting.page_context import LinkedPage, PageContext, Symbol
from cleats.toolsets.launch.gates.page_text import is_negated
from cleats.toolsets.launch.source.checkout.safe_parsing import PLATFORM_TABLES, unparse_node, walk_python
from cleats.toolsets.launch.source.evidence.install_claims import detect_install_language

STARTER_TAGS = ("quickstart", "quick-start", "getting-started", "basic-usage", "basic-example", "readme")
"""Tags of code for new users, the best first."""

BEGINNER_PAGE_SLUG = "getting-started"
"""The slug of the page for beginners."""

LOCATION_CLAIM_PATTERN = re.compile(r"^The (?:repository|readme|documentation) of .* (?:example|code)\b")
"""A claim that only states the location of code."""


def _find_intro_claim(context: PageContext) -> str:
    material = context.material
    product_claims = [
        claim_id
        for claim_id in material.list_group("key_features")
        if material.claims[claim_id]["claim_text"].startswith(material.product_name)
    ]
    positioning_claim = material.facts["positioning"].get("claim_id", "")
    return next(iter(material.filter_stateable([positioning_claim, *product_claims])), "")


def _state_optional_claim(context: PageContext, claim_id: str) -> str:
    return context.material.state_claim(claim_id) if claim_id in context.material.claims else ""


def _render_scope(context: PageContext, name: str = "") -> str:
    """Describe the first page of the documentation without promising more than it contains."""
    name = name or context.material.product_name
    if _find_intro_claim(context):
        return f"What {name} does, and the pages that show how to use it."
    return f"The pages that show how to use {name}."


def _list_remaining_features(context: PageContext, part: int = 1) -> list[str]:
    """Return features that the introduction does not mention, those about the product first."""
    material = context.material
    intro_claim = _find_intro_claim(context)
    features = [claim_id for claim_id in material.list_group("key_features") if claim_id != intro_claim]
    name = material.product_name
    features.sort(key=lambda feature: not material.claims[feature]["claim_text"].startswith(name))
    return features[: context.max_items // part]


def _render_install(context: PageContext) -> str:
    """Render the first installation method of the manifest, in the words of its claim."""
    material = context.material
    for distribution in material.facts.get("distribution", ()):
        if distribution.get("install_commands"):
            tool = PLATFORM_TABLES["ecosystems"].get(distribution["method"], {}).get("tool", "")
            lead = f"Install {material.product_name}" + (f" with {tool}:" if tool else ":")
            if distribution["method"] == "maven":
                lead = (
                    f"Add {material.product_name} to a Maven project as the dependency `{distribution['identifier']}`:"
                )
            if distribution.get("claim_id") in material.claims:
                lead = material.state_claim(distribution["claim_id"], lead)
            commands = distribution["install_commands"]
            shown = commands[: 2 if distribution["method"] == "maven" else 1]
            blocks = [page_context.fence_code(detect_install_language(command), command) for command in shown]
            return "\n\n".join([lead, f"\n\n{_GRADLE_LEAD}\n\n".join(blocks)])
    return ""


_GRADLE_LEAD = "In a Gradle build, add this line to the dependencies:"


def _render_formats(context: PageContext) -> str:
    rows = [
        f"| {row['format']} | {_LABELS_BY_DIRECTION[row.get('direction', 'unknown')]} "
        f"{format_claim_marker(row['claim_id'])} |"
        for row in context.material.facts["supported_formats"]
        if row["status"] == "implemented" and row["claim_id"] in context.material.claims
    ]
    header = ["| Format | Support |", "| --- | --- |"]
    return "\n".join([*header, *rows[: context.max_rows]]) if rows else ""


_LABELS_BY_DIRECTION = {"import": "Reads", "export": "Writes", "both": "Reads and writes", "unknown": "Known"}


def _list_import_names(context: PageContext) -> list[str]:
    distributions = context.material.facts.get("distribution", ())
    return list(dict.fromkeys(name for distribution in distributions for name in distribution.get("import_names", ())))


def _render_import_check(context: PageContext) -> str:
    names = _list_import_names(context)
    if not names or context.material.config.get("target_platform") != "python":
        return ""
    text = f"Import `{names[0]}`. The command prints nothing when the package is there:"
    return f"{text}\n\n" + page_context.fence_code("bash", f'python -c "import {names[0]}"')


def _render_import(context: PageContext) -> str:
    material = context.material
    names = _list_import_names(context)
    claim_ids = [
        claim_id
        for claim_id in material.list_group("quickstart_steps")
        if any(name in material.claims[claim_id]["claim_text"] for name in names)
    ]
    return page_context.render_claims(context, claim_ids[:1])


def _render_import_trouble(context: PageContext) -> str:
    install, import_text = _render_install(context), _render_import(context)
    if not install or not import_text:
        return ""
    return f"{import_text}\n\nMake sure that it is in the environment that runs the program.\n\n{install}"


_CODE_NOTE = "All code is taken from its repository; pieces from one file can build on each other."

TABLE_HEADINGS = ("What it is", "What it means", "What it does")
"""Headings of the tables of classes, errors and functions."""


def _render_subject_table(context: PageContext, part_index: int) -> str:
    """Render the classes (0), errors (1) or functions (2) of a module."""
    symbols = context.subject.symbols if context.subject else ()
    names = {symbol["name"] for symbol in context.material.functions}
    classes = [symbol for symbol in symbols if symbol["name"] not in names]
    parts = (*page_context.split_errors(classes), [symbol for symbol in symbols if symbol["name"] in names])
    return page_context.render_symbols(
        context.material, parts[part_index], context.max_rows, TABLE_HEADINGS[part_index]
    )


def _render_api_table(context: PageContext, part_index: int) -> str:
    """Render the same part of the entire product, without modules that have their own page."""
    material = context.material
    parts: tuple[Sequence[Symbol], ...] = (*page_context.split_errors(material.classes), material.functions)
    child_titles = {item.title for item in context.children}
    modules = {item["path"]: item["name"] for item in material.facts["api_surface_summary"]["modules"]}
    remaining = [item for item in parts[part_index] if modules.get(item["path"]) not in child_titles]
    return page_context.render_symbols(material, remaining, context.max_rows // 2, TABLE_HEADINGS[part_index])


def _render_known_errors(context: PageContext) -> str:
    material = context.material
    described_errors = [
        symbol
        for symbol in page_context.split_errors(material.classes)[1]
        if page_context.describe_symbol(material, symbol)
    ]
    return page_context.render_symbols(material, described_errors, context.max_rows // 2, TABLE_HEADINGS[1])


def _render_links(linked_pages: Sequence[LinkedPage]) -> str:
    lines = []
    for page in linked_pages:
        first_word, space, rest = page.purpose.partition(" ")
        is_plain = first_word[1:].islower() or len(first_word) == 1  # neither a name nor an abbreviation
        first_word = first_word[:1].lower() + first_word[1:] if is_plain else first_word
        lines.append(f"- [{page.title}]({page.url}): {first_word}{space}{rest}")
    return "\n".join(lines)


def _render_more_examples(context: PageContext) -> str:
    examples = [snippet for snippet in _find_starters(context)[1:] if set(STARTER_TAGS[:-1]) & set(snippet.tags)]
    return page_context.render_snippets(*examples[:2])


def _find_starters(context: PageContext) -> list[PageSnippet]:
    """Return code for beginners, the best first, and only short code if there is any."""
    material = context.material
    tagged = [snippet for tag in STARTER_TAGS for snippet in material.find_snippets((tag,), material.language)]
    rest = [snippet for snippet in material.snippets if snippet.language == material.language]
    candidates = list(dict.fromkeys([*tagged, *rest]))
    return [snippet for snippet in candidates if page_context.is_short(snippet)] or candidates[:1]


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
            if item.snippet_id not in shown_ids and page_context.is_short(item)
        ][:1]
        lead = _render_lead(context, workflow)
        blocks = [lead, page_context.render_snippets(*snippets, lead=lead)]
        if page := child_pages.get(page_context.strip_markup(workflow["title"])):
            blocks.append(f"[{page.title}]({page.url}) shows more of it.")
        body = "\n\n".join(block for block in blocks if block)
        if not snippets or line_count + body.count("\n") > context.max_lines:
            body = page_context.render_claims(context, material.filter_stateable(workflow["claim_ids"])[:2])
        if body:
            shown_ids.update(item.snippet_id for item in snippets)
            parts.append(f"## {workflow['title']}\n\n{body}")
            line_count += body.count("\n") + 4
    if beginner_page is not None and all(is_starter(workflow) for workflow in material.workflows):
        parts.append(_render_examples(context))  # a guide needs more than a link to another page
    return "\n\n".join(part for part in parts if part)


def _render_examples(context: PageContext) -> str:
    """Render the guide of a product without tasks: its code, or else its features and names."""
    material = context.material
    starters = _find_starters(context)[:1]
    snippets = [
        snippet
        for snippet in material.snippets
        if snippet.language == material.language and snippet not in starters and page_context.is_short(snippet)
    ]
    if snippets:
        return f"## Examples\n\n{page_context.render_snippets(*snippets[: context.max_items])}"
    features = page_context.render_claims(context, material.list_group("key_features")[: context.max_items])
    names = page_context.render_symbols(material, material.symbols, context.max_items, "What it is")
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
        return page_context.render_claims(context, informative_ids[:4])
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


def _render_subject_lead(context: PageContext) -> str:
    if context.subject is None:
        return ""
    for workflow in context.material.workflows:
        if workflow["workflow_tag"] == context.subject.key:
            return _render_lead(context, workflow)
    return page_context.render_claims(
        context, context.material.filter_stateable(context.subject.claim_ids)[: context.max_items]
    )


def _render_subject_symbols(context: PageContext) -> str:
    if context.subject is None:
        return ""
    code_names = find_used_names("\n".join(item.code for item in context.subject.snippets))
    used_symbols = [item for item in context.material.symbols if item["name"] in code_names]
    return page_context.render_symbols(context.material, used_symbols, context.max_rows, "What it is")


def find_used_names(code: str) -> frozenset[str]:
    """Return the full names that Python code imports or reads from imported modules.

    A word in the code is no proof: `console.print` is not the `print` of the package.
    """
    nodes = walk_python(code)
    imported_names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first_name = alias.name.split(".")[0]
                imported_names[alias.asname or first_name] = alias.name if alias.asname else first_name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported_names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    names = set(imported_names.values())
    for node in nodes:
        if isinstance(node, ast.Attribute):
            first, _, rest = unparse_node(node).partition(".")
            if first in imported_names and re.fullmatch(r"[\w.]+", rest):
                names.add(f"{imported_names[first]}.{rest}")
    return frozenset(names)


TOKEN_RENDERERS: Mapping[str, Callable[[PageContext], str]] = {
    "PRODUCT_NAME": lambda context: str(context.material.facts.get("product_name") or ""),
    "VERSION": lambda context: _state_optional_claim(context, context.material.version_claim_id),
    "INTRO": lambda context: _state_optional_claim(context, _find_intro_claim(context)),
    "SCOPE": _render_scope,
    "SCOPE_SHORT": lambda context: _render_scope(context, "it"),
    "FEATURES": lambda context: page_context.render_claims(context, _list_remaining_features(context)),
    "FEATURES_SHORT": lambda context: page_context.render_claims(context, _list_remaining_features(context, 2)),
    "REQUIREMENTS": lambda context: page_context.render_claims(
        context, context.material.requirements[: context.max_items]
    ),
    "LIMITATIONS": lambda context: page_context.render_claims(
        context, context.material.list_group("limitations")[: context.max_items]
    ),
    "INSTALL_COMMANDS": _render_install,
    "IMPORT": _render_import,
    "IMPORT_CHECK": _render_import_check,
    "IMPORT_TROUBLE": _render_import_trouble,
    "LICENSE": lambda context: _state_optional_claim(
        context, context.material.facts.get("license", {}).get("claim_id", "")
    ),
    "FORMATS": _render_formats,
    "FIRST_EXAMPLE": lambda context: page_context.render_snippets(*_find_starters(context)[:1]),
    "MORE_EXAMPLES": _render_more_examples,
    "WORKFLOWS": render_workflows,
    "CODE_NOTE": lambda context: _CODE_NOTE if "```" in render_workflows(context) else "",
    "SUBJECT_TITLE": lambda context: context.subject.title if context.subject else "",
    "SUBJECT_LEAD": _render_subject_lead,
    "SUBJECT_CODE": lambda context: page_context.render_snippets(*context.subject.snippets) if context.subject else "",
    "SUBJECT_SYMBOLS": _render_subject_symbols,
    "SUBJECT_CLASSES": lambda context: _render_subject_table(context, 0),
    "SUBJECT_FUNCTIONS": lambda context: _render_subject_table(context, 2),
    "SUBJECT_ERRORS": lambda context: _render_subject_table(context, 1),
    "API_CLASSES": lambda context: _render_api_table(context, 0),
    "API_FUNCTIONS": lambda context: _render_api_table(context, 2),
    "API_ERRORS": lambda context: _render_api_table(context, 1),
    "KNOWN_ERRORS": _render_known_errors,
    "NEXT_STEPS": lambda context: _render_links(context.related),
    "CHILD_PAGES": lambda context: _render_links(context.children),
}
"""The renderers of all tokens that a template can use."""

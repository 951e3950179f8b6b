"""Renderers for the tokens of a template.

Every function renders one block from the material, or returns an empty text if there is no evidence
for it. A statement of fact is one line that ends with its claim marker. Sentences without a marker
describe the page or what the reader can do, never the product.
"""

from collections.abc import Callable, Mapping, Sequence

from cleats.toolsets.launch.drafting import tasks
from cleats.toolsets.launch.drafting.material import format_claim_marker
from cleats.toolsets.launch.drafting.page_context import (
    LinkedPage,
    PageContext,
    Symbol,
    describe_symbol,
    fence_code,
    render_claims,
    render_snippets,
    render_symbols,
    split_errors,
)


def _find_intro_claim(context: PageContext) -> str:
    """Return the claim that describes the product, or an empty text."""
    material = context.material
    product_claims = [
        claim_id
        for claim_id in material.list_group("key_features")
        if material.claims[claim_id]["claim_text"].startswith(material.product_name)
    ]
    positioning_claim = material.facts["positioning"].get("claim_id", "")
    return next(iter(material.filter_stateable([positioning_claim, *product_claims])), "")


def _state_optional_claim(context: PageContext, claim_id: str) -> str:
    """Render a claim that can be stated, or return an empty text."""
    return context.material.state_claim(claim_id) if claim_id in context.material.claims else ""


def _render_scope(context: PageContext, name: str = "") -> str:
    """Describe the first page of the documentation without promising more than it contains."""
    name = name or context.material.product_name
    if _find_intro_claim(context):
        return f"What {name} does, and the pages that show how to use it."
    return f"The pages that show how to use {name}."


def _list_remaining_features(context: PageContext) -> list[str]:
    """Return the features that the introduction does not mention, those about the product first."""
    material = context.material
    intro_claim = _find_intro_claim(context)
    features = [claim_id for claim_id in material.list_group("key_features") if claim_id != intro_claim]
    name = material.product_name
    return sorted(features, key=lambda feature: not material.claims[feature]["claim_text"].startswith(name))


def _render_install(context: PageContext) -> str:
    """Render the first installation method of the manifest, in the words of its claim."""
    material = context.material
    for distribution in material.facts.get("distribution", ()):
        if distribution.get("install_commands"):
            tool = _TOOL_NAMES_BY_METHOD.get(distribution["method"], "")
            lead = f"Install {material.product_name}" + (f" with {tool}:" if tool else ":")
            if distribution.get("claim_id") in material.claims:
                lead = material.state_claim(distribution["claim_id"], lead)
            return f"{lead}\n\n" + fence_code("bash", distribution["install_commands"][0])
    return ""


_TOOL_NAMES_BY_METHOD: Mapping[str, str] = {
    "pip": "pip",
    "npm": "npm",
    "nuget": "NuGet",
    "maven": "Maven",
    "cargo": "Cargo",
    "go": "Go",
    "composer": "Composer",
    "gem": "RubyGems",
    "docker": "Docker",
}


def _render_formats(context: PageContext) -> str:
    stateable_claims = context.material.claims
    rows = [
        f"| {supported_format['format']} | {_LABELS_BY_DIRECTION[supported_format.get('direction', 'unknown')]} "
        f"{format_claim_marker(supported_format['claim_id'])} |"
        for supported_format in context.material.facts["supported_formats"]
        if supported_format["status"] == "implemented" and supported_format["claim_id"] in stateable_claims
    ]
    header = ["| Format | Support |", "| --- | --- |"]
    return "\n".join([*header, *rows[: context.max_rows]]) if rows else ""


_LABELS_BY_DIRECTION: Mapping[str, str] = {
    "import": "Reads",
    "export": "Writes",
    "both": "Reads and writes",
    "unknown": "Known",
}


def _list_import_names(context: PageContext) -> list[str]:
    distributions = context.material.facts.get("distribution", ())
    return list(dict.fromkeys(name for distribution in distributions for name in distribution.get("import_names", ())))


def _render_import_check(context: PageContext) -> str:
    names = _list_import_names(context)
    if not names or context.material.config.get("target_platform") != "python":
        return ""
    text = f"Import `{names[0]}`. The command prints nothing when the package is there:"
    return f"{text}\n\n" + fence_code("bash", f'python -c "import {names[0]}"')


def _render_import(context: PageContext) -> str:
    material = context.material
    names = _list_import_names(context)
    claim_ids = [
        claim_id
        for claim_id in material.list_group("quickstart_steps")
        if any(name in material.claims[claim_id]["claim_text"] for name in names)
    ]
    return render_claims(context, claim_ids[:1])


def _render_import_trouble(context: PageContext) -> str:
    install, import_text = _render_install(context), _render_import(context)
    if not install or not import_text:
        return ""
    return f"{import_text}\n\nMake sure that it is in the environment that runs the program.\n\n{install}"


TABLE_HEADINGS = ("What it is", "What it means", "What it does")
"""Headings of the tables of classes, errors and functions."""


def _render_subject_table(context: PageContext, part_index: int) -> str:
    """Render the classes (0), errors (1) or functions (2) of a module."""
    symbols = context.subject.symbols if context.subject else ()
    names = {symbol["name"] for symbol in context.material.functions}
    classes = [symbol for symbol in symbols if symbol["name"] not in names]
    parts = (*split_errors(classes), [symbol for symbol in symbols if symbol["name"] in names])
    return render_symbols(context.material, parts[part_index], context.max_rows, TABLE_HEADINGS[part_index])


def _render_api_table(context: PageContext, part_index: int) -> str:
    """Render the same part of the entire product, without modules that have their own page."""
    material = context.material
    parts: tuple[Sequence[Symbol], ...] = (*split_errors(material.classes), material.functions)
    child_titles = {item.title for item in context.children}
    modules = {item["path"]: item["name"] for item in material.facts["api_surface_summary"]["modules"]}
    remaining = [item for item in parts[part_index] if modules.get(item["path"]) not in child_titles]
    return render_symbols(material, remaining, context.max_rows // 2, TABLE_HEADINGS[part_index])


def _render_known_errors(context: PageContext) -> str:
    """Render the errors that the source describes."""
    material = context.material
    described_errors = [symbol for symbol in split_errors(material.classes)[1] if describe_symbol(material, symbol)]
    return render_symbols(material, described_errors, context.max_rows // 2, TABLE_HEADINGS[1])


def _render_links(linked_pages: Sequence[LinkedPage]) -> str:
    return "\n".join(f"- [{page.title}]({page.url}): {_lowercase_first_letter(page.purpose)}" for page in linked_pages)


def _lowercase_first_letter(text: str) -> str:
    first_word = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if first_word[1:].islower() or len(first_word) == 1 else text


TOKEN_RENDERERS: Mapping[str, Callable[[PageContext], str]] = {
    "PRODUCT_NAME": lambda context: str(context.material.facts.get("product_name") or ""),
    "VERSION": lambda context: _state_optional_claim(context, context.material.version_claim_id),
    "INTRO": lambda context: _state_optional_claim(context, _find_intro_claim(context)),
    "SCOPE": _render_scope,
    "SCOPE_SHORT": lambda context: _render_scope(context, "it"),
    "FEATURES": lambda context: render_claims(context, _list_remaining_features(context)[: context.max_items]),
    "FEATURES_SHORT": lambda context: render_claims(
        context, _list_remaining_features(context)[: context.max_items // 2]
    ),
    "REQUIREMENTS": lambda context: render_claims(context, context.material.requirements[: context.max_items]),
    "LIMITATIONS": lambda context: render_claims(
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
    "FIRST_EXAMPLE": tasks.render_first_example,
    "MORE_EXAMPLES": tasks.render_more_examples,
    "WORKFLOWS": tasks.render_workflows,
    "CODE_NOTE": tasks.render_code_note,
    "SUBJECT_TITLE": lambda context: context.subject.title if context.subject else "",
    "SUBJECT_LEAD": tasks.render_subject_lead,
    "SUBJECT_CODE": lambda context: render_snippets(*context.subject.snippets) if context.subject else "",
    "SUBJECT_SYMBOLS": tasks.render_subject_symbols,
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

"""Renderers for the tokens of a template.

Every function renders one block from the material, or returns an empty text if there is no evidence
for it. A statement of fact is one line that ends with its claim marker. Sentences without a marker
describe the page or what the reader can do, never the product.
"""

from collections.abc import Callable, Mapping, Sequence

from cleats.toolsets.launch.drafting import tasks
from cleats.toolsets.launch.drafting.material import format_claim_marker
from cleats.toolsets.launch.drafting.page_context import LinkedPage, PageContext, fence_code, render_claims
from cleats.toolsets.launch.drafting.symbols import Symbol, describe_symbol, render_symbols, split_errors


def render_tokens(context: PageContext) -> dict[str, str]:
    """Return the value of every token for one page."""
    return {name: render(context) for name, render in TOKEN_RENDERERS.items()}


def _make_fact_renderer(name: str) -> Callable[[PageContext], str]:
    def render(context: PageContext) -> str:
        return str(context.material.facts.get(name) or "")

    return render


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


def _render_intro(context: PageContext) -> str:
    claim_id = _find_intro_claim(context)
    return context.material.state_claim(claim_id) if claim_id else ""


def _render_scope(context: PageContext, name: str = "") -> str:
    """Describe the first page of the documentation without promising more than it contains."""
    name = name or context.material.product_name
    if _find_intro_claim(context):
        return f"What {name} does, and the pages that show how to use it."
    return f"The pages that show how to use {name}."


def _render_short_scope(context: PageContext) -> str:
    return _render_scope(context, "it")


def _render_version(context: PageContext) -> str:
    claim_id = context.material.version_claim_id
    return context.material.state_claim(claim_id) if claim_id else ""


def _render_features(context: PageContext) -> str:
    return render_claims(context, _list_remaining_features(context)[: context.max_items])


def _render_short_features(context: PageContext) -> str:
    return render_claims(context, _list_remaining_features(context)[: context.max_items // 2])


def _list_remaining_features(context: PageContext) -> list[str]:
    """Return the features that the introduction does not mention, those about the product first."""
    material = context.material
    intro_claim = _find_intro_claim(context)
    features = [claim_id for claim_id in material.list_group("key_features") if claim_id != intro_claim]
    name = material.product_name
    return sorted(features, key=lambda feature: not material.claims[feature]["claim_text"].startswith(name))


def _render_requirements(context: PageContext) -> str:
    return render_claims(context, context.material.requirements[: context.max_items])


def _render_limitations(context: PageContext) -> str:
    return render_claims(context, context.material.list_group("limitations")[: context.max_items])


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


def _render_license(context: PageContext) -> str:
    claim_id = context.material.facts.get("license", {}).get("claim_id", "")
    return context.material.state_claim(claim_id) if claim_id in context.material.claims else ""


def _render_formats(context: PageContext) -> str:
    stateable_claims = context.material.claims
    rows = [
        f"| {supported_format['format']} | {_LABELS_BY_DIRECTION[supported_format.get('direction', 'unknown')]} "
        f"{format_claim_marker(supported_format['claim_id'])} |"
        for supported_format in context.material.facts["supported_formats"]
        if supported_format["status"] == "implemented" and supported_format["claim_id"] in stateable_claims
    ]
    return _render_table(("Format", "Support"), rows[: context.max_rows])


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


def _make_subject_table_renderer(part_index: int) -> Callable[[PageContext], str]:
    """Return a renderer for the classes (0), errors (1) or functions (2) of a module."""

    def render(context: PageContext) -> str:
        symbols = context.subject.symbols if context.subject else ()
        names = {symbol["name"] for symbol in context.material.functions}
        classes = [symbol for symbol in symbols if symbol["name"] not in names]
        parts = (*split_errors(classes), [symbol for symbol in symbols if symbol["name"] in names])
        return render_symbols(context.material, parts[part_index], context.max_rows, TABLE_HEADINGS[part_index])

    return render


def _make_api_table_renderer(part_index: int) -> Callable[[PageContext], str]:
    """Return the same renderer for the entire product, without modules that have their own page."""

    def render(context: PageContext) -> str:
        parts: tuple[Sequence[Symbol], ...] = (
            *split_errors(context.material.classes),
            context.material.functions,
        )
        child_titles = {item.title for item in context.children}
        modules = {item["path"]: item["name"] for item in context.material.facts["api_surface_summary"]["modules"]}
        remaining = [item for item in parts[part_index] if modules.get(item["path"]) not in child_titles]
        return render_symbols(context.material, remaining, context.max_rows // 2, TABLE_HEADINGS[part_index])

    return render


def _render_known_errors(context: PageContext) -> str:
    """Render the errors that the source describes."""
    material = context.material
    described_errors = [symbol for symbol in split_errors(material.classes)[1] if describe_symbol(material, symbol)]
    return render_symbols(material, described_errors, context.max_rows // 2, TABLE_HEADINGS[1])


def _render_next_steps(context: PageContext) -> str:
    return _render_links(context.related)


def _render_child_pages(context: PageContext) -> str:
    return _render_links(context.children)


def _render_links(linked_pages: Sequence[LinkedPage]) -> str:
    return "\n".join(f"- [{page.title}]({page.url}): {_lowercase_first_letter(page.purpose)}" for page in linked_pages)


def _lowercase_first_letter(text: str) -> str:
    first_word = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if first_word[1:].islower() or len(first_word) == 1 else text


def _render_table(headings: Sequence[str], rows: Sequence[str]) -> str:
    if not rows:
        return ""
    header_lines = [f"| {' | '.join(headings)} |", f"| {' | '.join('---' for _ in headings)} |"]
    return "\n".join([*header_lines, *rows])


TOKEN_RENDERERS: Mapping[str, Callable[[PageContext], str]] = {
    "PRODUCT_NAME": _make_fact_renderer("product_name"),
    "VERSION": _render_version,
    "INTRO": _render_intro,
    "SCOPE": _render_scope,
    "SCOPE_SHORT": _render_short_scope,
    "FEATURES": _render_features,
    "FEATURES_SHORT": _render_short_features,
    "REQUIREMENTS": _render_requirements,
    "LIMITATIONS": _render_limitations,
    "INSTALL_COMMANDS": _render_install,
    "IMPORT": _render_import,
    "IMPORT_CHECK": _render_import_check,
    "IMPORT_TROUBLE": _render_import_trouble,
    "LICENSE": _render_license,
    "FORMATS": _render_formats,
    "FIRST_EXAMPLE": tasks.render_first_example,
    "MORE_EXAMPLES": tasks.render_more_examples,
    "WORKFLOWS": tasks.render_workflows,
    "CODE_NOTE": tasks.render_code_note,
    "SUBJECT_TITLE": tasks.render_subject_title,
    "SUBJECT_LEAD": tasks.render_subject_lead,
    "SUBJECT_CODE": tasks.render_subject_code,
    "SUBJECT_SYMBOLS": tasks.render_subject_symbols,
    "SUBJECT_CLASSES": _make_subject_table_renderer(0),
    "SUBJECT_FUNCTIONS": _make_subject_table_renderer(2),
    "SUBJECT_ERRORS": _make_subject_table_renderer(1),
    "API_CLASSES": _make_api_table_renderer(0),
    "API_FUNCTIONS": _make_api_table_renderer(2),
    "API_ERRORS": _make_api_table_renderer(1),
    "KNOWN_ERRORS": _render_known_errors,
    "NEXT_STEPS": _render_next_steps,
    "CHILD_PAGES": _render_child_pages,
}
"""The renderers of all tokens that a template can use."""

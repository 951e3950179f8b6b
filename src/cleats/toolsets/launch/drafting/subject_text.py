"""Renderers for the subject of a page, a task or a module, and for the names of an API overview."""

from collections.abc import Sequence

from cleats.toolsets.launch.drafting import api_overview, code_leads, document_text, page_context, tasks
from cleats.toolsets.launch.drafting.page_context import PageContext, Symbol

MAX_LISTED_NAMES = 4
"""Names of a module in the link to its page."""


def _split_symbols(symbols: Sequence[Symbol]) -> dict[str, list[Symbol]]:
    """Split symbols into the parts of an API overview."""
    classes, errors = api_overview.split_errors([symbol for symbol in symbols if symbol.get("kind") == "class"])
    parts = {"classes": classes, "errors": errors}
    for name, kind in (("functions", "function"), ("constants", "constant")):
        parts[name] = [symbol for symbol in symbols if symbol.get("kind") == kind]
    return parts


def _render_symbol_part(context: PageContext, symbols: Sequence[Symbol], part: str) -> str:
    # Each row has a line in the list of evidence, too. Classes get what the other parts leave for their members.
    max_rows = context.max_rows // 2
    parts = _split_symbols(symbols)
    share = min(1.0, max_rows / max(1, len(symbols)))
    limits = {name: round(share * len(rows)) for name, rows in parts.items()}
    limits["classes"] = max_rows - sum(limits[name] for name in limits if name != "classes")
    symbols, limit = parts[part], limits[part]
    if part == "classes":
        return api_overview.render_classes(context.material, symbols, limit)
    if part == "functions":
        return api_overview.render_functions(context.material, symbols, limit)
    heading = "What it means" if part == "errors" else "What it is"
    return api_overview.render_symbols(context.material, symbols, limit, heading)


def list_subject_names(context: PageContext) -> str:
    """Return the first names of a module, by which a reader recognises it."""
    symbols = context.subject.symbols if context.subject else ()
    names = [str(symbol["name"]).rpartition(".")[2] for symbol in symbols]
    shown = names[:MAX_LISTED_NAMES] if len(names) > MAX_LISTED_NAMES + 1 else names
    rest = f" and {len(names) - len(shown)} others" if len(shown) < len(names) else ""
    return ", ".join(shown) + rest


def render_subject_part(context: PageContext, part: str) -> str:
    """Render the classes, errors, functions or constants of a module."""
    return _render_symbol_part(context, context.subject.symbols if context.subject else (), part)


def render_api_part(context: PageContext, part: str) -> str:
    """Render the same part of the entire product, without modules that have their own page."""
    return _render_symbol_part(context, list_api_symbols(context), part)


def list_api_symbols(context: PageContext, kind: str = "") -> list[Symbol]:
    """Return the public names of the overview: those without modules that have their own page."""
    material = context.material
    child_titles = {item.title for item in context.children}
    modules = {item["path"]: item["name"] for item in material.facts["api_surface_summary"]["modules"]}
    remaining = [item for item in material.symbols if modules.get(item["path"]) not in child_titles]
    return [item for item in remaining if kind in ("", item.get("kind"))]


def render_subject_lead(context: PageContext) -> str:
    if context.subject is None or context.subject.document_section:
        return ""
    for workflow in context.material.workflows:
        if workflow["workflow_tag"] == context.subject.key:
            return tasks.render_lead(context, workflow)
    return page_context.render_claims(
        context, context.material.filter_stateable(context.subject.claim_ids)[: context.max_items]
    )


def render_subject_code(context: PageContext) -> str:
    """Render the section of the documents about the task, else its code, with the warnings of what it uses."""
    if context.subject is None:
        return ""
    material, section = context.material, context.subject.document_section
    snippets = context.subject.snippets
    code = "\n\n".join(code_leads.render_code(material, snippet) for snippet in snippets)
    text = document_text.render_section(material, section) if section else code
    text = code_leads.add_lead(material, text, snippets, str(section["path"])) if section else text
    return "\n\n".join(filter(None, [text, document_text.render_warnings(material, context.subject.snippets)]))


def render_subject_symbols(context: PageContext) -> str:
    if context.subject is None:
        return ""
    used_symbols = code_leads.list_used_symbols(context.material, context.subject.snippets)
    return api_overview.render_symbols(context.material, used_symbols, context.max_rows, "What it is")

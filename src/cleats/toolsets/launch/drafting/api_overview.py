"""The API overview: every public name with its purpose, and classes with their methods.

A purpose is the first sentence of the documentation in the source, as far as the claim of the name
supports it; a name without documentation is listed with its signature. Nothing depends on the
language of the product.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cleats.toolsets.launch.drafting import document_text
from cleats.toolsets.launch.drafting.material import LaunchMaterial, format_sentence
from cleats.toolsets.launch.gates.page_text import measure_overlap
from cleats.toolsets.launch.site.claim_markers import render_claim_marker
from cleats.toolsets.launch.source.text.english import BASE_VERBS, THIRD_PERSON_VERBS

Symbol = Mapping[str, Any]

MIN_SUPPORTED_SHARE = 0.75
"""The share of a purpose that its claim must contain: clearly more than the truth lock requires."""

MAX_SIGNATURE_CHARS = 80
"""The longest signature that fits into a table."""

CLASS_LINES = 6
"""Lines of a class on a page besides its members."""

MAX_MEMBERS = 60
"""The most methods and properties of a class on a page; the source has the others."""

ARTICLE_WORDS = frozenset({"a", "an", "the", "this"})

_ERROR_NAME_PATTERN = re.compile(r"(?:Error|Exception|Warning)$")
_RAISED_SUMMARY_PATTERN = re.compile(r"^(?:raised|thrown)\b", re.IGNORECASE)
_SPECIAL_NAME_PATTERN = re.compile(r"__\w+__$")
_BARE_CLAIM_PATTERN = re.compile(r"`\s+is\s+a\s+public\s+\w+")
"""A claim that only states that a name exists; the words of the name itself prove no purpose."""


def is_error(symbol: Symbol) -> bool:
    """Return True if a class is an exception, by its name or its summary."""
    name = str(symbol["name"]).rsplit(".", 1)[-1]
    return bool(_ERROR_NAME_PATTERN.search(name) or _RAISED_SUMMARY_PATTERN.match(str(symbol.get("summary", ""))))


def split_errors(symbols: Sequence[Symbol]) -> tuple[list[Symbol], list[Symbol]]:
    """Split classes into ordinary ones and errors."""
    parts: tuple[list[Symbol], list[Symbol]] = ([], [])
    for symbol in symbols:
        parts[is_error(symbol)].append(symbol)
    return parts


def render_symbols(material: LaunchMaterial, symbols: Iterable[Symbol], limit: int, heading: str) -> str:
    """Render symbols as a table with their purpose; those without one, or beyond the limit, as a list below it."""
    stateable = [symbol for symbol in symbols if symbol.get("claim_id") in material.claims]
    described = [symbol for symbol in stateable if describe_symbol(material, symbol)]
    others = [symbol for symbol in stateable if symbol not in described]
    described, beyond = described[:limit], described[limit:]
    rows = [_render_row(material, symbol) for symbol in described]
    blocks = ["\n".join([f"| Name | {heading} |", "| --- | --- |", *rows])] if rows else []
    if others:
        blocks.append(_render_names(others, "Also public" if rows else "Public"))
    if beyond:
        blocks.append(_render_names(beyond, "Also public"))
    return "\n\n".join(blocks)


def render_classes(material: LaunchMaterial, classes: Sequence[Symbol], limit: int) -> str:
    """Render classes, each with its purpose, its warnings, and a table of its methods and properties."""
    simple = [symbol for symbol in classes if _is_simple(material, symbol)]
    names = [str(symbol["name"]).rpartition(".")[2] for symbol in classes]
    blocks: list[str] = []
    row_count = 0
    for number, symbol in enumerate(classes, start=1):
        if symbol in simple or symbol.get("claim_id") not in material.claims:
            continue
        members = _list_members(material, symbol)
        reserved = len(classes) - number + len(simple)  # every class has at least a row
        if row_count + len(members) + CLASS_LINES + reserved > limit:
            blocks.append(_render_class(material, symbol, members, names, are_listed=False))
            row_count += CLASS_LINES
            continue
        blocks.append(_render_class(material, symbol, members, names))
        row_count += len(members) + CLASS_LINES
    rows = [item for symbol in simple for item in (symbol, *_list_members(material, symbol, 1))]
    table = render_symbols(material, rows, max(limit - row_count, 0), "What it is")
    if blocks and table:
        table = f"### Other {title_classes(classes).lower()}\n\n{table}"
    return "\n\n".join(filter(None, [*blocks, table]))


def title_classes(classes: Sequence[Symbol]) -> str:
    """Return the heading of classes; in a language or package without classes, they are types."""
    return "Types" if classes and all(symbol.get("label") for symbol in classes) else "Classes"


def _is_simple(material: LaunchMaterial, symbol: Symbol) -> bool:
    """Return whether a row or two say everything about a class: it has one described member at most."""
    members = _list_members(material, symbol)
    has_notes = any(_list_notes(material, item) for item in (symbol, *members))
    return not has_notes and len(members) < 2 and all(describe_symbol(material, member) for member in members)


def render_functions(material: LaunchMaterial, functions: Sequence[Symbol], limit: int) -> str:
    """Render functions as a table, with the warnings of each below it."""
    notes = [document_text.render_notes(material, symbol) for symbol in functions]
    return "\n\n".join(filter(None, [render_symbols(material, functions, limit, "What it does"), *notes]))


def _render_class(
    material: LaunchMaterial,
    symbol: Symbol,
    members: Sequence[Symbol],
    names: Sequence[str],
    *,
    are_listed: bool = True,
) -> str:
    """Render a class; its members in a table, or only their names where there is no room for it."""
    # The name of a class without a purpose is a statement that needs its claim, too.
    lead = render_lead(material, symbol) or f"`{_format_name(symbol)}` {render_claim_marker([symbol['claim_id']])}"
    notes = document_text.render_notes(material, symbol)
    member_notes = [document_text.render_notes(material, member) for member in members]
    described = [member for member in members if are_listed and describe_symbol(material, member)]
    others = [member for member in members if member not in described]
    rows = [_render_row(material, member, short=True) for member in described]
    table = "\n".join(["| Member | What it does |", "| --- | --- |", *rows]) if rows else ""
    if others:
        names = ", ".join(f"`{_format_short_name(member)}`" for member in others)
        marker = render_claim_marker(member["claim_id"] for member in others)
        table = "\n\n".join(filter(None, [table, f"{'Other members' if rows else 'Members'}: {names}. {marker}"]))
    name = str(symbol["name"]).rpartition(".")[2]
    name = name if names.count(name) == 1 else str(symbol["name"])
    return "\n\n".join(filter(None, [f"### {name}", lead, notes, table, *member_notes]))


def render_lead(material: LaunchMaterial, symbol: Symbol) -> str:
    """Render a name with its purpose; nothing for one without a purpose."""
    purpose = describe_symbol(material, symbol)
    return f"`{_format_name(symbol)}`: {purpose} {render_claim_marker([symbol['claim_id']])}" if purpose else ""


def _render_row(material: LaunchMaterial, symbol: Symbol, *, short: bool = False) -> str:
    purpose = describe_symbol(material, symbol)
    name = _format_short_name(symbol) if short else _format_name(symbol)
    deprecated = "Deprecated. " if symbol.get("deprecated") and "deprecated" not in purpose.lower() else ""
    marker = render_claim_marker([symbol["claim_id"]])
    return f"| `{_escape_cell(name)}` | {deprecated}{_escape_cell(purpose)} {marker} |".replace("|  <!--", "| <!--")


def _format_short_name(member: Symbol) -> str:
    """Return the name of a member, which within its class needs only its own name."""
    name = str(member["name"])
    own_name = re.split(r"\.|::", name)[-1]
    return _format_name(member).removeprefix(name.removesuffix(own_name))


def _render_names(symbols: Sequence[Symbol], lead: str) -> str:
    names = ", ".join(f"`{_format_name(symbol)}`" for symbol in symbols)
    marker = render_claim_marker(symbol["claim_id"] for symbol in symbols)
    return f"{lead}: {names}. {marker}"


def _list_members(material: LaunchMaterial, symbol: Symbol, limit: int = MAX_MEMBERS) -> list[Symbol]:
    """Return the members of a class; of the special methods of Python only those with a purpose."""
    members = [
        member
        for member in symbol.get("members", ())
        if member.get("claim_id") in material.claims
        and (not _SPECIAL_NAME_PATTERN.search(member["name"]) or describe_symbol(material, member))
    ]
    return members[:limit]


def _list_notes(material: LaunchMaterial, symbol: Symbol) -> list[str]:
    return material.filter_stateable(symbol.get("note_claim_ids", ()))


def describe_symbol(material: LaunchMaterial, symbol: Symbol) -> str:
    """Return the summary of a symbol if its claim supports it, else an empty text."""
    claim = material.claims.get(str(symbol.get("claim_id")))
    summary = format_sentence(str(symbol.get("summary", ""))).removesuffix(":").strip()
    if claim is None or not summary or "{{" in summary or _BARE_CLAIM_PATTERN.search(claim["claim_text"]):
        return ""
    if measure_overlap(summary, str(claim["claim_text"])) < MIN_SUPPORTED_SHARE:
        return ""
    # A name that a summary begins with stays as it is written.
    first_word = summary.partition(" ")[0]
    is_plain_word = first_word in BASE_VERBS | THIRD_PERSON_VERBS | ARTICLE_WORDS
    return format_sentence(summary[:1].upper() + summary[1:] if is_plain_word else summary)


def _format_name(symbol: Symbol) -> str:
    """Return a name, with its arguments if they are short."""
    name = str(symbol["name"])
    last_name = re.split(r"\.|::", name)[-1]
    signature = str(symbol.get("signature") or "")
    full_signature = f"{name.removesuffix(last_name)}{signature}"
    fits = signature.startswith(f"{last_name}(") and len(signature) <= MAX_SIGNATURE_CHARS
    return full_signature if fits else name


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")

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

CLASS_ROWS = 4
"""The room that a class takes besides its members, in rows of a table; each row has a line of evidence, too."""

MIN_MEMBER_ROWS = 3
"""Described members from which a table of a part of them is worth its header."""

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
    """Render classes, each with its purpose, its warnings, and a table of its methods and properties.

    Where there is not enough room, the classes that the documents use most keep their tables; of the others,
    only the names of the members are listed, or nothing but the purpose of the class.
    """
    stateable = [symbol for symbol in classes if symbol.get("claim_id") in material.claims]
    simple = [symbol for symbol in stateable if _is_simple(material, symbol)]
    detailed = [symbol for symbol in stateable if symbol not in simple]
    names = [str(symbol["name"]).rpartition(".")[2] for symbol in classes]
    rooms = _share_rooms(material, detailed, limit - len(simple))
    blocks = [
        _render_class(material, symbol, names, room)
        for symbol, room in zip(detailed, rooms, strict=True)
        if room is not None
    ]
    bare = [symbol for symbol, room in zip(detailed, rooms, strict=True) if room is None]
    rows = [
        item
        for symbol in stateable
        if symbol in simple or symbol in bare
        for item in (symbol, *(_list_members(material, symbol, 1) if symbol in simple else ()))
    ]
    table = render_symbols(material, rows, max(limit, 0), "What it is")
    if blocks and table:
        table = f"### Other {title_classes(classes).lower()}\n\n{table}"
    return "\n\n".join(filter(None, [*blocks, table]))


def _share_rooms(material: LaunchMaterial, classes: Sequence[Symbol], limit: int) -> list[int | None]:
    """Return how many described members of each class have room on a page; None if not even their names have."""
    codes = [snippet.code for snippet in material.snippets]
    patterns = [re.compile(rf"\b{re.escape(re.split(r'[.:]', str(symbol['name']))[-1])}\b") for symbol in classes]
    use_counts = [sum(bool(pattern.search(code)) for code in codes) for pattern in patterns]
    rooms: list[int | None] = [None] * len(classes)
    remaining = limit - len(classes)  # every class has at least a row
    for number in sorted(range(len(classes)), key=lambda number: -use_counts[number]):
        members = _list_members(material, classes[number])
        described_count = sum(bool(describe_symbol(material, member)) for member in members)
        note_count = sum(len(_list_notes(material, item)) for item in (classes[number], *members))
        # A name takes a line of evidence, which is half a row; a note takes two rows.
        needed = CLASS_ROWS + 2 * note_count + len(members) // 2
        if remaining < needed:
            continue
        room = min(described_count, 2 * (remaining - needed))
        rooms[number] = room if room == described_count or room >= MIN_MEMBER_ROWS else 0
        remaining -= needed + (rooms[number] or 0) // 2
    return rooms


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


def _render_class(material: LaunchMaterial, symbol: Symbol, names: Sequence[str], room: int) -> str:
    """Render a class, with a table of as many members as there is room for, and the names of the others."""
    members = _list_members(material, symbol)
    # A class without a purpose still needs a statement with its claim.
    bare_lead = f"`{_format_name(symbol)}` is a public {symbol.get('label') or 'class'}."
    lead = render_lead(material, symbol) or f"{bare_lead} {render_claim_marker([symbol['claim_id']])}"
    notes = document_text.render_notes(material, symbol)
    member_notes = [document_text.render_notes(material, member) for member in members]
    described = [member for member in members if describe_symbol(material, member)][:room]
    others = [member for member in members if member not in described]
    rows = [_render_row(material, member, short=True) for member in described]
    table = "\n".join(["| Member | What it does |", "| --- | --- |", *rows]) if rows else ""
    listed = ""
    if others:
        member_names = ", ".join(f"`{_format_short_name(member)}`" for member in others)
        marker = render_claim_marker(member["claim_id"] for member in others)
        listed = f"{'Other members' if rows else 'Members'}: {member_names}. {marker}"
    name = str(symbol["name"]).rpartition(".")[2]
    title = name if names.count(name) == 1 else str(symbol["name"])
    return "\n\n".join(filter(None, [f"### {title}", lead, notes, table, listed, *member_notes]))


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

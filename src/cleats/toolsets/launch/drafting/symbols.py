"""Tables of the public names of a product.

A name is described only in the words of its own source; names without a description are only
listed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cleats.toolsets.launch.drafting.material import LaunchMaterial, format_claim_marker, format_sentence
from cleats.toolsets.launch.gates.wording import measure_overlap
from cleats.toolsets.launch.source.text.word_lists import BASE_VERBS, THIRD_PERSON_VERBS

_ERROR_NAME_PATTERN = re.compile(r"(?:Error|Exception|Warning)$")
_RAISED_SUMMARY_PATTERN = re.compile(r"^(?:raised|thrown)\b", re.IGNORECASE)

MIN_SUPPORTED_SHARE = 0.75
"""The share of a description that its claim must contain: clearly more than the truth lock
requires."""

_BARE_CLAIM_PATTERN = re.compile(r"`\s+is\s+a\s+public\s+(?:class|function|name)\b")
"""A claim that only states that a name exists; the words of the name itself prove no
description."""

MAX_SIGNATURE_CHARS = 80
"""The longest signature that fits into a table."""

ARTICLE_WORDS = frozenset({"a", "an", "the", "this"})

MAX_LISTED_NAMES = 12
"""The most names without a description on a page; longer lists do not help a reader."""

Symbol = Mapping[str, Any]


def is_error(symbol: Symbol) -> bool:
    """Return True if a class is an exception, by its name or its summary."""
    name = str(symbol["name"]).rsplit(".", 1)[-1]
    return bool(_ERROR_NAME_PATTERN.search(name) or _RAISED_SUMMARY_PATTERN.match(str(symbol.get("summary", ""))))


def split_errors(symbols: Iterable[Symbol]) -> tuple[list[Symbol], list[Symbol]]:
    """Split classes into ordinary ones and errors."""
    all_symbols = list(symbols)
    return [symbol for symbol in all_symbols if not is_error(symbol)], [
        symbol for symbol in all_symbols if is_error(symbol)
    ]


def render_symbols(material: LaunchMaterial, symbols: Iterable[Symbol], limit: int, heading: str) -> str:
    """Render symbols: described ones as a table, the others as a list of names below it."""
    stateable = [symbol for symbol in symbols if symbol.get("claim_id") in material.claims]
    described = [(symbol, text) for symbol in stateable if (text := describe_symbol(material, symbol))]
    rows = [
        f"| `{_escape_cell(_format_name(material, symbol, text))}`"
        f" | {_escape_cell(text)} {format_claim_marker(symbol['claim_id'])} |"
        for symbol, text in described[:limit]
    ]
    undescribed = [symbol for symbol in stateable if not describe_symbol(material, symbol)]
    blocks = ["\n".join([f"| Name | {heading} |", "| --- | --- |", *rows])] if rows else []
    if undescribed and len(rows) < limit:
        blocks.append(_render_names(undescribed[: limit - len(rows)], also=bool(rows)))
    return "\n\n".join(blocks)


def _render_names(symbols: Sequence[Symbol], *, also: bool) -> str:
    listed_symbols = symbols[:MAX_LISTED_NAMES]
    names = ", ".join(f"`{symbol['name']}`" for symbol in listed_symbols)
    markers = " ".join(format_claim_marker(symbol["claim_id"]) for symbol in listed_symbols)
    names_line = f"{'Also public' if also else 'Public'}: {names}. {markers}"
    if len(listed_symbols) == len(symbols):
        return names_line
    # A sentence about the page has no claim, so it is separate from the names.
    return f"{names_line}\n\nThis page lists only the first of the names without a description."


def describe_symbol(material: LaunchMaterial, symbol: Symbol) -> str:
    """Return the summary of a symbol if its claim supports it, else an empty text."""
    claim = material.claims.get(str(symbol.get("claim_id")))
    summary = format_sentence(str(symbol.get("summary", "")))
    if claim is None or not summary or "{{" in summary or _BARE_CLAIM_PATTERN.search(claim["claim_text"]):
        return ""
    if measure_overlap(summary, str(claim["claim_text"])) < MIN_SUPPORTED_SHARE:
        return ""
    # A name that a summary begins with stays as it is written.
    first_word = summary.partition(" ")[0]
    return (
        summary[:1].upper() + summary[1:] if first_word in BASE_VERBS | THIRD_PERSON_VERBS | ARTICLE_WORDS else summary
    )


def _format_name(material: LaunchMaterial, symbol: Symbol, text: str) -> str:
    """Return a name, with its arguments if they are short and its claim supports them."""
    name = str(symbol["name"])
    module, _, last_name = name.rpartition(".")
    signature = str(symbol.get("signature") or "")
    full_signature = f"{module}.{signature}" if module else signature
    claim_text = str(material.claims[symbol["claim_id"]]["claim_text"])
    fits = signature.startswith(f"{last_name}(") and len(signature) <= MAX_SIGNATURE_CHARS
    return (
        full_signature
        if fits and measure_overlap(f"{full_signature} {text}", claim_text) >= MIN_SUPPORTED_SHARE
        else name
    )


def _escape_cell(text: str) -> str:
    return str(text).replace("|", "\\|")

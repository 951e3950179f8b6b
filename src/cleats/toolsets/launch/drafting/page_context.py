"""The inputs of a page, and the blocks rendered from them: statements, code, tables of public names.

A public name is described only in the words of its own source; names without a description are only
listed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet, format_claim_marker, format_sentence
from cleats.toolsets.launch.gates.page_text import measure_overlap
from cleats.toolsets.launch.source.text.english import BASE_VERBS, THIRD_PERSON_VERBS

MAX_ITEMS_BY_TIER: Mapping[str, int] = {"minimal": 5, "standard": 8, "rich": 12}
"""The most items in a list of a page, by launch tier."""


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """Another page that a page can link to."""

    title: str
    url: str
    purpose: str


@dataclass(frozen=True, slots=True)
class PageSubject:
    """The subject of a page that is one of many of its kind: a task, or a module."""

    key: str
    title: str
    claim_ids: tuple[str, ...] = ()
    snippets: tuple[PageSnippet, ...] = ()
    symbols: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    """All inputs for the text of one page."""

    material: LaunchMaterial
    subject: PageSubject | None = None
    children: tuple[LinkedPage, ...] = ()
    related: tuple[LinkedPage, ...] = ()
    section: Mapping[str, LinkedPage] = field(default_factory=dict)
    """The pages of the same section by slug."""
    tier: str = "standard"
    max_lines: int = 500

    @property
    def max_items(self) -> int:
        """The most items of a list."""
        return MAX_ITEMS_BY_TIER[self.tier]

    @property
    def max_rows(self) -> int:
        """The most rows of all tables of a page together, with room for other text."""
        return max(10, self.max_lines - 120)


MAX_CODE_LINES = 60
"""The longest example on a page; a longer one is a program to read in the repository."""


def render_claims(context: PageContext, claim_ids: Sequence[str]) -> str:
    """Render statements; those about the product become a list in which it is called "it".

    Other statements are quoted from their sources, so they become a paragraph with one per line: a
    list item of the page is never an item copied from a source.
    """
    material = context.material
    name = f"{material.product_name} "
    texts = {claim_id: str(material.claims[claim_id]["claim_text"]) for claim_id in claim_ids}
    features = f"The features of {name}"
    product_statements = {
        claim_id: f"It {text[len(name) :]}" if text.startswith(name) else text
        for claim_id, text in texts.items()
        if text.startswith((name, features))
    }
    if len(product_statements) < 2:
        return "\n".join(material.state_claim(claim_id) for claim_id in claim_ids)
    bullets = [f"- {material.state_claim(claim_id, text)}" for claim_id, text in product_statements.items()]
    other_statements = [material.state_claim(claim_id) for claim_id in claim_ids if claim_id not in product_statements]
    return "\n\n".join(filter(None, ("\n".join(bullets), "\n".join(other_statements))))


def render_snippets(*snippets: PageSnippet, lead: str = "") -> str:
    """Render code with its path in the repository.

    The path is given once for consecutive snippets of a file, and not at all if the lead names it.
    """
    blocks: list[str] = []
    path = ""
    for snippet in snippets:
        if snippet.path and snippet.path != path and f"`{snippet.path}`" not in lead:
            blocks.append(f"From `{snippet.path}`:")
        path = snippet.path
        blocks.append(fence_code(snippet.language, snippet.code))
    return "\n\n".join(blocks)


def strip_markup(title: str) -> str:
    """Remove Markdown markup from a title, for front matter and link texts."""
    return re.sub(r"[`*]", "", title)


def is_short(snippet: PageSnippet) -> bool:
    """Return True if the snippet is short enough for a page."""
    return snippet.code.count("\n") < MAX_CODE_LINES


def fence_code(language: str, code: str) -> str:
    """Fence code with more backticks than it contains."""
    fence_marks = "```"
    while fence_marks in code:
        fence_marks += "`"
    return f"{fence_marks}{language}\n{code}\n{fence_marks}"


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


def split_errors(symbols: Sequence[Symbol]) -> tuple[list[Symbol], list[Symbol]]:
    """Split classes into ordinary ones and errors."""
    parts: tuple[list[Symbol], list[Symbol]] = ([], [])
    for symbol in symbols:
        parts[is_error(symbol)].append(symbol)
    return parts


def render_symbols(material: LaunchMaterial, symbols: Iterable[Symbol], limit: int, heading: str) -> str:
    """Render symbols: described ones as a table, the others as a list of names below it."""
    stateable = [symbol for symbol in symbols if symbol.get("claim_id") in material.claims]
    descriptions = [(symbol, describe_symbol(material, symbol)) for symbol in stateable]
    undescribed = [symbol for symbol, text in descriptions if not text]
    rows = [
        f"| `{_escape_cell(_format_name(material, symbol, text))}`"
        f" | {_escape_cell(text)} {format_claim_marker(symbol['claim_id'])} |"
        for symbol, text in [pair for pair in descriptions if pair[1]][:limit]
    ]
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
    is_plain_word = first_word in BASE_VERBS | THIRD_PERSON_VERBS | ARTICLE_WORDS
    return summary[:1].upper() + summary[1:] if is_plain_word else summary


def _format_name(material: LaunchMaterial, symbol: Symbol, text: str) -> str:
    """Return a name, with its arguments if they are short and its claim supports them."""
    name = str(symbol["name"])
    module, _, last_name = name.rpartition(".")
    signature = str(symbol.get("signature") or "")
    full_signature = f"{module}.{signature}" if module else signature
    claim_text = str(material.claims[symbol["claim_id"]]["claim_text"])
    fits = signature.startswith(f"{last_name}(") and len(signature) <= MAX_SIGNATURE_CHARS
    is_supported = fits and measure_overlap(f"{full_signature} {text}", claim_text) >= MIN_SUPPORTED_SHARE
    return full_signature if is_supported else name


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")

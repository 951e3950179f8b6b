"""The names a product offers to programs, as tables.

A name is described only in the words of its own source; the others are named and nothing more.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cleats.toolsets.launch.drafting.material import Material, marker, sentence
from cleats.toolsets.launch.gates.wording import share
from cleats.toolsets.launch.source.verbs import PLAIN, THIRD

_ERROR_NAME = re.compile(r"(?:Error|Exception|Warning)$")
_RAISED = re.compile(r"^(?:raised|thrown)\b", re.IGNORECASE)

SUPPORTED = 0.75
"""How much of a description its claim has to hold: clearly more than the truth lock asks for."""

_BARE = re.compile(r"`\s+is\s+a\s+public\s+(?:class|function|name)\b")
"""A claim that a name is there, and nothing else; words of the name itself prove no description."""

SIGNATURE = 80
"""Characters of a signature that a table has room for."""

ARTICLES = frozenset({"a", "an", "the", "this"})

NAMES = 12
"""Names without a description that a page lists; more of them tell a reader nothing."""

Symbol = Mapping[str, Any]


def is_error(symbol: Symbol) -> bool:
    """Whether a class is something that is raised, by its name or its own words."""
    name = str(symbol["name"]).rsplit(".", 1)[-1]
    return bool(_ERROR_NAME.search(name) or _RAISED.match(str(symbol.get("summary", ""))))


def split(symbols: Iterable[Symbol]) -> tuple[list[Symbol], list[Symbol]]:
    """Classes to use, and classes that are raised."""
    listed = list(symbols)
    return [e for e in listed if not is_error(e)], [e for e in listed if is_error(e)]


def table(material: Material, symbols: Iterable[Symbol], limit: int, head: str) -> str:
    """The symbols: those with a description as a table, the others by their names below it."""
    listed = [each for each in symbols if each.get("claim_id") in material.claims]
    told = [(each, text) for each in listed if (text := described(material, each))]
    rows = [
        f"| `{_cell(_written(material, each, text))}` | {_cell(text)} {marker(each['claim_id'])} |"
        for each, text in told[:limit]
    ]
    bare = [each for each in listed if not described(material, each)]
    blocks = ["\n".join([f"| Name | {head} |", "| --- | --- |", *rows])] if rows else []
    if bare and len(rows) < limit:
        blocks.append(_named(bare[: limit - len(rows)], also=bool(rows)))
    return "\n\n".join(blocks)


def _named(symbols: Sequence[Symbol], *, also: bool) -> str:
    told = symbols[:NAMES]
    names = ", ".join(f"`{each['name']}`" for each in told)
    marks = " ".join(marker(each["claim_id"]) for each in told)
    said = f"{'Also public' if also else 'Public'}: {names}. {marks}"
    if len(told) == len(symbols):
        return said
    # What the page does has no claim, so it stands apart from the names.
    return f"{said}\n\nThis page lists only the first of the names without a description."


def described(material: Material, symbol: Symbol) -> str:
    """What a symbol is, in its own words as far as its claim holds them; else empty."""
    claim = material.claims.get(str(symbol.get("claim_id")))
    summary = sentence(str(symbol.get("summary", "")))
    if claim is None or not summary or "{{" in summary or _BARE.search(claim["claim_text"]):
        return ""
    if share(summary, str(claim["claim_text"])) < SUPPORTED:
        return ""
    # A name that a summary begins with stays as it is written.
    begins = summary.partition(" ")[0]
    return summary[:1].upper() + summary[1:] if begins in PLAIN | THIRD | ARTICLES else summary


def _written(material: Material, symbol: Symbol, text: str) -> str:
    """A name, with its arguments where they are few: they are no part of what its claim says."""
    name = str(symbol["name"])
    module, _, last = name.rpartition(".")
    signature = str(symbol.get("signature") or "")
    whole = f"{module}.{signature}" if module else signature
    said = str(material.claims[symbol["claim_id"]]["claim_text"])
    fits = signature.startswith(f"{last}(") and len(signature) <= SIGNATURE
    return whole if fits and share(f"{whole} {text}", said) >= SUPPORTED else name


def _cell(text: str) -> str:
    return str(text).replace("|", "\\|")

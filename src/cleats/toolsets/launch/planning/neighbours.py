"""Which pages a page leads to, read from the plan alone, so that planning and drafting agree."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from cleats.toolsets.launch.drafting.context import Neighbour

Entry: TypeAlias = Mapping[str, Any]

READING_ORDER = (
    ("products", "_index"),
    ("products", "overview"),
    ("docs", "overview"),
    ("docs", "installation"),
    ("docs", "getting-started"),
    ("docs", "developer-guide"),
    ("reference", "_index"),
    ("reference", "api-overview"),
    ("kb", "faq"),
    ("kb", "troubleshooting"),
)
"""The pages that others lead to, in the order in which a new reader wants them."""

MOST, LEAST = 3, 2
"""More links than the first number are a menu, and the site has one. Fewer pages behind this one
than the second: the first pages are named as well."""


def absolute(entry: Entry) -> str:
    """The address of a page with its host, as far as the site names one."""
    return f"{entry['token_mappings'].get('ORIGIN', '')}{entry['url_path']}"


def related(entry: Entry, entries: Sequence[Entry]) -> tuple[Neighbour, ...]:
    """Where a reader goes next: the pages behind this one in the reading order, then the first."""
    known = {_place(each): each for each in entries if _locale(each) == _locale(entry)}
    order = [place for place in READING_ORDER if place in known]
    here = _place(entry)
    at = order.index(here) + 1 if here in order else _start(entry, order)
    listed = {_place(child) for child in _below(entry, entries)} | {here}
    behind = [known[place] for place in order[at:] if place not in listed]
    before = [known[place] for place in order[:at] if place not in listed]
    chosen = behind if len(behind) >= LEAST else [*behind, *before][:LEAST]
    return tuple(_neighbour(entry, each) for each in chosen[:MOST])


def children(entry: Entry, entries: Sequence[Entry]) -> tuple[Neighbour, ...]:
    """The pages that a page gives an overview of, in the order of the section."""
    return tuple(_neighbour(entry, each) for each in _below(entry, entries))


def child_slugs(entry: Entry, entries: Sequence[Entry]) -> list[str]:
    """The same by their slugs, as the plan has them."""
    return [str(each["slug"]) for each in _below(entry, entries)]


def section(entry: Entry, entries: Sequence[Entry]) -> dict[str, Neighbour]:
    """The other pages of the same section, by their slugs."""
    return {
        str(each["slug"]): _neighbour(entry, each)
        for each in entries
        if each["section"] == entry["section"]
        and _locale(each) == _locale(entry)
        and each["slug"] != entry["slug"]
    }


def _below(entry: Entry, entries: Sequence[Entry]) -> list[Entry]:
    role = entry["page_role"]
    subject = bool(entry["token_mappings"].get("SUBJECT"))
    if subject or role not in ("toc", "api_reference", "comprehensive_guide"):
        return []
    found = [
        each
        for each in entries
        if each["section"] == entry["section"]
        and _locale(each) == _locale(entry)
        and each["slug"] != entry["slug"]
        and (role == "toc" or (_is_below(role, each)))
    ]
    return sorted(found, key=lambda each: int(each["token_mappings"]["WEIGHT"]))


def _is_below(role: str, other: Entry) -> bool:
    """Whether a page is one of many that a guide or an overview sums up."""
    wanted = {"api_reference": "api_reference", "comprehensive_guide": "workflow_page"}[role]
    return other["page_role"] == wanted and bool(other["token_mappings"].get("SUBJECT"))


def _start(entry: Entry, order: Sequence[tuple[str, str]]) -> int:
    """A page outside the reading order leads to what its readers lack most: the guide."""
    wanted = ("docs", "developer-guide")
    return order.index(wanted) if wanted in order and entry["section"] == "docs" else 0


def _neighbour(entry: Entry, other: Entry) -> Neighbour:
    origins = [each["token_mappings"].get("ORIGIN", "") for each in (entry, other)]
    url = other["url_path"] if origins[0] == origins[1] else absolute(other)
    return Neighbour(str(other["title"]), str(url), str(other["purpose"]))


def _place(entry: Entry) -> tuple[str, str]:
    return str(entry["section"]), str(entry["slug"])


def _locale(entry: Entry) -> str:
    return str(entry["token_mappings"]["LOCALE"])

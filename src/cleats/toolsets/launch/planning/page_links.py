"""Links between pages, derived from the plan alone, so that planning and drafting agree."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from cleats.toolsets.launch.drafting.page_context import LinkedPage

PlanEntry: TypeAlias = Mapping[str, Any]

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
"""The pages that others link to, in the order in which a new reader needs them."""

MAX_RELATED_PAGES, MIN_RELATED_PAGES = 3, 2
"""The most related pages, because more links would be a menu, which the site already has; and the
number below which the first pages of the reading order are added."""


def format_absolute_url(entry: PlanEntry) -> str:
    """Return the address of a page with its host, if the site names one."""
    return f"{entry['token_mappings'].get('ORIGIN', '')}{entry['url_path']}"


def find_related(entry: PlanEntry, entries: Sequence[PlanEntry]) -> tuple[LinkedPage, ...]:
    """Return the next pages in the reading order, then the first ones."""
    entries_by_key = {_build_page_key(other): other for other in entries if _read_locale(other) == _read_locale(entry)}
    order = [page_key for page_key in READING_ORDER if page_key in entries_by_key]
    own_key = _build_page_key(entry)
    position = order.index(own_key) + 1 if own_key in order else _find_start(entry, order)
    excluded_keys = {_build_page_key(child) for child in _find_child_entries(entry, entries)} | {own_key}
    following = [entries_by_key[page_key] for page_key in order[position:] if page_key not in excluded_keys]
    preceding = [entries_by_key[page_key] for page_key in order[:position] if page_key not in excluded_keys]
    chosen = following if len(following) >= MIN_RELATED_PAGES else [*following, *preceding][:MIN_RELATED_PAGES]
    return tuple(_build_link(entry, other) for other in chosen[:MAX_RELATED_PAGES])


def find_children(entry: PlanEntry, entries: Sequence[PlanEntry]) -> tuple[LinkedPage, ...]:
    """Return the pages that a page summarizes, in the order of the section."""
    return tuple(_build_link(entry, child) for child in _find_child_entries(entry, entries))


def list_child_slugs(entry: PlanEntry, entries: Sequence[PlanEntry]) -> list[str]:
    """Return the slugs of the pages that a page summarizes."""
    return [str(child["slug"]) for child in _find_child_entries(entry, entries)]


def find_section_pages(entry: PlanEntry, entries: Sequence[PlanEntry]) -> dict[str, LinkedPage]:
    """Return the other pages of the same section by slug."""
    return {
        str(other["slug"]): _build_link(entry, other)
        for other in entries
        if other["section"] == entry["section"]
        and _read_locale(other) == _read_locale(entry)
        and other["slug"] != entry["slug"]
    }


def _find_child_entries(entry: PlanEntry, entries: Sequence[PlanEntry]) -> list[PlanEntry]:
    role = entry["page_role"]
    has_subject = bool(entry["token_mappings"].get("SUBJECT"))
    if has_subject or role not in ("toc", "api_reference", "comprehensive_guide"):
        return []
    child_entries = [
        other
        for other in entries
        if other["section"] == entry["section"]
        and _read_locale(other) == _read_locale(entry)
        and other["slug"] != entry["slug"]
        and (role == "toc" or (_is_child(role, other)))
    ]
    return sorted(child_entries, key=lambda other: int(other["token_mappings"]["WEIGHT"]))


def _is_child(role: str, other: PlanEntry) -> bool:
    """Return True if a page is one of those that a guide or an overview summarizes."""
    child_role = {"api_reference": "api_reference", "comprehensive_guide": "workflow_page"}[role]
    return other["page_role"] == child_role and bool(other["token_mappings"].get("SUBJECT"))


def _find_start(entry: PlanEntry, order: Sequence[tuple[str, str]]) -> int:
    """Return the start for a page outside of the reading order: the guide, for documentation."""
    guide_key = ("docs", "developer-guide")
    return order.index(guide_key) if guide_key in order and entry["section"] == "docs" else 0


def _build_link(entry: PlanEntry, other: PlanEntry) -> LinkedPage:
    origins = [page["token_mappings"].get("ORIGIN", "") for page in (entry, other)]
    url = other["url_path"] if origins[0] == origins[1] else format_absolute_url(other)
    return LinkedPage(str(other["title"]), str(url), str(other["purpose"]))


def _build_page_key(entry: PlanEntry) -> tuple[str, str]:
    return str(entry["section"]), str(entry["slug"])


def _read_locale(entry: PlanEntry) -> str:
    return str(entry["token_mappings"]["LOCALE"])

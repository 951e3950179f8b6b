"""The site of a plan: its configurations, the layout of its pages, and the links between them.

Links are derived from the plan alone, so that planning and drafting agree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from cleats.toolsets.launch.drafting.page_context import LinkedPage, PageContext
from cleats.toolsets.launch.patching.launch_records import LaunchRecords
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.site.detection import get_site_kind
from cleats.toolsets.launch.site.kinds import SiteKind, UrlRules
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree


@dataclass(frozen=True)
class PlannedSite:
    """The worktree as the planner sees it; nothing is written."""

    root: Path
    profile: Profile
    config: Mapping[str, Any]

    @cached_property
    def tree(self) -> CheckoutTree:
        return CheckoutTree(self.root)

    @property
    def kind(self) -> SiteKind:
        return get_site_kind(self.profile)

    @cached_property
    def layout(self) -> str:
        return self.profile.resolve_layout(self.config["layout_mode"], self.config["target_platform"])

    @cached_property
    def pages(self) -> list[str]:
        """All Markdown files of the content."""
        return [path for path in self.tree.paths if path.endswith(".md")]

    def load_url_rules(self, section: str) -> UrlRules:
        """Return the rules for the addresses of a section."""
        config_paths = self.kind.list_configs(self.profile, section, str(self.config["family"]))
        return self.kind.load_url_rules(self.tree, config_paths)

    def resolve_page_path(self, section: str, slug: str, locale: str) -> str:
        """Return the path for a page, in the layout of its section."""
        path = self.profile.build_page_path(section, slug, **self._path_variables(locale))
        section_folder = PurePosixPath(self.profile.site.content_root) / self.profile.get_section(section).root
        return self.kind.place_page(path, [page for page in self.pages if page.startswith(f"{section_folder}/")])

    def was_removed_by_people(self, section: str, slug: str, locale: str) -> bool:
        """Return True if an earlier launch wrote the page and the site has it no more."""
        path = self.resolve_page_path(section, slug, locale)
        records = LaunchRecords(self.tree.read_text, self.config["allowed_paths"])
        return path not in self.tree.path_set and records.find_page(path) is not None

    def resolve_page_url(self, section: str, slug: str, locale: str) -> str:
        """Return the address of the profile, for a site whose configuration does not define it."""
        return self.profile.build_page_url(section, slug, **self._path_variables(locale))

    def resolve_origin(self, section: str, url_rules: UrlRules, locale: str) -> str:
        """Return the scheme and host of a section."""
        host = self.profile.get_section(section).host
        return f"https://{host}" if host else url_rules.resolve_origin(locale)

    def _path_variables(self, locale: str) -> dict[str, str]:
        return {
            "layout": self.layout,
            "family": self.config["family"],
            "platform": self.config["target_platform"],
            "locale": locale,
        }


PlanEntry: TypeAlias = Mapping[str, Any]

READING_ORDER = (
    *(("products", slug) for slug in ("_index", "overview")),
    *(("docs", slug) for slug in ("overview", "installation", "getting-started", "developer-guide")),
    *(("reference", slug) for slug in ("_index", "api-overview")),
    *(("kb", slug) for slug in ("faq", "troubleshooting")),
)
"""The pages that others link to, in the order in which a new reader needs them."""

_CHILD_ROLES: Mapping[str, str] = {"toc": "", "api_reference": "api_reference", "comprehensive_guide": "workflow_page"}
"""The roles of the pages that a page summarizes, by its own role; a table of contents lists all."""

MAX_RELATED_PAGES, MIN_RELATED_PAGES = 3, 2
"""The most related pages, because more links would be a menu, which the site already has; and the
number below which the first pages of the reading order are added."""


def format_absolute_url(entry: PlanEntry) -> str:
    """Return the address of a page with its host, if the site names one."""
    return f"{entry['token_mappings'].get('ORIGIN', '')}{entry['url_path']}"


def find_related(kind: SiteKind, entry: PlanEntry, entries: Sequence[PlanEntry]) -> tuple[LinkedPage, ...]:
    """Return the next pages in the reading order, then the first ones."""
    entries_by_key = {_build_page_key(other): other for other in entries if _read_locale(other) == _read_locale(entry)}
    order = [page_key for page_key in READING_ORDER if page_key in entries_by_key]
    own_key = _build_page_key(entry)
    guide_key = ("docs", "developer-guide")  # where a page of the documentation outside of the order begins
    position = order.index(own_key) + 1 if own_key in order else 0
    if own_key not in order and guide_key in order and entry["section"] == "docs":
        position = order.index(guide_key)
    excluded_keys = {_build_page_key(child) for child in find_child_entries(entry, entries)} | {own_key}
    following = [entries_by_key[page_key] for page_key in order[position:] if page_key not in excluded_keys]
    preceding = [entries_by_key[page_key] for page_key in order[:position] if page_key not in excluded_keys]
    chosen = following if len(following) >= MIN_RELATED_PAGES else [*following, *preceding][:MIN_RELATED_PAGES]
    return tuple(_build_link(kind, entry, other) for other in chosen[:MAX_RELATED_PAGES])


def add_neighbours(kind: SiteKind, context: PageContext, entry: PlanEntry, entries: Sequence[PlanEntry]) -> PageContext:
    """Return the context of a page with the pages it links to: those it summarizes, related ones, its section."""
    return replace(
        context,
        children=tuple(_build_link(kind, entry, child) for child in find_child_entries(entry, entries)),
        related=find_related(kind, entry, entries),
        section={
            str(other["slug"]): _build_link(kind, entry, other) for other in _list_section_entries(entry, entries)
        },
    )


def _list_section_entries(entry: PlanEntry, entries: Sequence[PlanEntry]) -> list[PlanEntry]:
    scope = (entry["section"], _read_locale(entry))
    own_entries = [other for other in entries if (other["section"], _read_locale(other)) == scope]
    return [other for other in own_entries if other["slug"] != entry["slug"]]


def find_child_entries(entry: PlanEntry, entries: Sequence[PlanEntry]) -> list[PlanEntry]:
    """Return the entries of the pages that a page summarizes."""
    role = entry["page_role"]
    if entry["token_mappings"].get("SUBJECT") or role not in _CHILD_ROLES:
        return []
    child_role = _CHILD_ROLES[role]
    child_entries = [
        other
        for other in _list_section_entries(entry, entries)
        if role == "toc" or (other["page_role"] == child_role and other["token_mappings"].get("SUBJECT"))
    ]
    return sorted(child_entries, key=lambda other: int(other["token_mappings"]["WEIGHT"]))


def _build_link(kind: SiteKind, entry: PlanEntry, other: PlanEntry) -> LinkedPage:
    origins = [page["token_mappings"].get("ORIGIN", "") for page in (entry, other)]
    url = kind.link_page(entry, other) if origins[0] == origins[1] else format_absolute_url(other)
    return LinkedPage(str(other["title"]), str(url), str(other["purpose"]))


def _build_page_key(entry: PlanEntry) -> tuple[str, str]:
    return str(entry["section"]), str(entry["slug"])


def _read_locale(entry: PlanEntry) -> str:
    return str(entry["token_mappings"]["LOCALE"])

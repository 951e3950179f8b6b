"""The patches that make the pages of a launch reachable from the pages that the site has."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from cleats.system import front_matter
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.patches import SitePatch
from cleats.toolsets.launch.site import pages
from cleats.toolsets.launch.site.mkdocs import CONFIG_NAMES, parse_mkdocs_config
from cleats.toolsets.launch.site.mkdocs_nav import NavGroup, update_nav

LINK_HEADINGS = ("links and resources", "related links", "see also")
NEW_HEADING = "See also"

PlanEntry: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChanges:
    """What a launch does with pages, as far as menus and links are concerned."""

    plan: Sequence[PlanEntry]
    """All pages of the launch, section by section."""
    new_paths: frozenset[str]
    removed_paths: Sequence[str]
    product_name: str
    section_titles: Mapping[str, str]
    read_page: Callable[[str], str | None]
    """Returns a file that may be changed, or None when it is missing or must not be touched."""

    @property
    def new_entries(self) -> list[PlanEntry]:
        return [entry for entry in self.plan if entry["output_path"] in self.new_paths]


def plan_index_links(changes: PageChanges) -> Iterator[SitePatch]:
    """Link the first of the new pages on the index above them, which Hugo renders without a list of them."""
    planned_paths = {entry["output_path"] for entry in changes.plan}
    entries_by_index: dict[str, list[PlanEntry]] = {}
    for entry in changes.new_entries:
        parent_folder = PurePosixPath(entry["output_path"]).parent.parent
        index = str(parent_folder / "_index.md")
        is_index = PurePosixPath(entry["output_path"]).name.startswith("_index.")
        if is_index and index not in planned_paths:
            entries_by_index.setdefault(index, []).append(entry)
    for index, entries in sorted(entries_by_index.items()):
        text = changes.read_page(index)
        if text is not None:
            yield from _link_pages(index, text, entries)


def _link_pages(path: str, text: str, entries: Sequence[PlanEntry]) -> Iterator[SitePatch]:
    page = front_matter.parse_page(text)
    linked_targets = {link.target.rstrip("/") for link in pages.list_links(page.body)}
    new_entries = [entry for entry in entries if entry["url_path"].rstrip("/") not in linked_targets]
    items = "\n".join(f"- [{entry['title']}]({entry['url_path']})" for entry in new_entries)
    if not items:
        return
    for heading in pages.list_headings(page.body):
        if heading.text.casefold() in LINK_HEADINGS:
            yield patches.make_anchor_patch(path, text, heading.text, items)
            return
    end = text.count("\n") + (not text.endswith("\n"))
    gap = "" if text.endswith("\n\n") else "\n"
    yield patches.make_range_patch(path, text, end + 1, end, f"{gap}## {NEW_HEADING}\n\n{items}\n")


def plan_nav_entries(changes: PageChanges) -> Iterator[SitePatch]:
    """Add the new pages to the navigation of a MkDocs site, if it has one, and remove the removed ones."""
    path = next((name for name in CONFIG_NAMES if changes.read_page(name) is not None), "")
    text = changes.read_page(path) if path else None
    if text is None:
        return
    prefix = f"{parse_mkdocs_config(path, text).docs_folder}/"
    sections = list(dict.fromkeys(entry["section"] for entry in changes.plan))
    entries = sorted(
        (entry for entry in changes.plan if str(entry["output_path"]).startswith(prefix)),
        key=lambda entry: (sections.index(entry["section"]), int(entry["token_mappings"]["WEIGHT"])),
    )
    new_pages: dict[str, list[str]] = {}
    for entry in entries:
        if entry["output_path"] in changes.new_paths:
            new_pages.setdefault(entry["section"], []).append(entry["output_path"].removeprefix(prefix))
    first_section = next(iter(new_pages), "")
    # A group for one page would only be another click.
    flat = {section for section, group in new_pages.items() if section == first_section or len(group) == 1}
    group = NavGroup(
        title=changes.product_name,
        pages=[page for section in new_pages if section in flat for page in new_pages[section]],
        subgroups={changes.section_titles[it]: pages_of for it, pages_of in new_pages.items() if it not in flat},
    )
    order = [str(entry["output_path"]).removeprefix(prefix) for entry in entries]
    removed = [path.removeprefix(prefix) for path in changes.removed_paths]
    updated = update_nav(text, order, group, removed)
    if updated is not None:
        yield patches.make_text_patch(path, text, updated)


NAVIGATION_PLANNERS: Final[Mapping[str, Callable[[PageChanges], Iterator[SitePatch]]]] = MappingProxyType(
    {"hugo": plan_index_links, "mkdocs": plan_nav_entries}
)
"""What each kind of site needs."""

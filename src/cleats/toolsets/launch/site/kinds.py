"""Kinds of sites: everything that differs between the site generators that Cleats knows.

A kind says where the files of pages are, at which addresses they are served, and how pages link to each other. Its
gates are `gates/<kind>_config.py` and `gates/<kind>_build.py`, which a profile of that kind names;
`patching/navigation.py` has what it adds to the menus of a site.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.site.pages import PageHeading
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree


class UrlRules(Protocol):
    """The rules for the addresses of one section."""

    def with_paths(self, paths: Iterable[str], /) -> Self:
        """Return the rules for a site that also has these files."""
        ...

    def resolve_origin(self, language: str, /) -> str:
        """Return the scheme and host of a language, or an empty text if they are unknown."""
        ...

    def resolve_url_path(self, path: str, *, title: str = "", date: dt.date | None = None) -> str | None:
        """Return the path at which a file is served on its host, or None if it is unknown."""
        ...


class SiteLinks(Protocol):
    """The links of a worktree."""

    def resolve_file_link(self, path: str, link_path: str) -> str | None:
        """Return the address of the file that a link in a page names; None if the link is an address itself."""
        ...

    def list_addresses(self) -> Iterable[tuple[str, str]]:
        """Return the host and the path of every file of the site, known without a build."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRequest:
    """A site to serve, with a folder for what the generator writes."""

    site: Path
    profile: Profile
    config_path: str
    scratch: Path
    settings: Mapping[str, Any]
    port: int


@dataclass(frozen=True, slots=True)
class PreviewCommand:
    """A server to start, and the address at which it serves."""

    argv: Sequence[str]
    env: Mapping[str, str]
    address: str


class SiteKind(Protocol):
    """One kind of site."""

    name: str
    has_title_headings: bool
    """Whether a page begins with its title; else the theme renders the title of the front matter."""
    needs_front_matter: bool
    orders_by_weight: bool
    """Whether menus follow the key `weight` of the front matter."""

    def list_configs(self, profile: Profile, section: str, family: str) -> Sequence[str]:
        """Return the files that may configure a section, the most likely one first."""
        ...

    def locate_content(self, tree: CheckoutTree, profile: Profile) -> str:
        """Return the folder of the content in a site."""
        ...

    def list_menu_files(self, tree: CheckoutTree) -> Sequence[str]:
        """Return the files outside the content that a launch changes to list its pages."""
        ...

    def describe_site(self, tree: CheckoutTree) -> tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]:
        """Return the parts of the site context, and the artifacts of this kind of site by name."""
        ...

    def load_url_rules(self, tree: CheckoutTree, config_paths: Sequence[str]) -> UrlRules:
        """Return the rules for the addresses of the section that these files may configure."""
        ...

    def open_links(self, site: Path, profile: Profile) -> SiteLinks:
        """Return the links of a worktree."""
        ...

    def place_page(self, path: str, section_pages: Sequence[str]) -> str:
        """Return the path of a new page, in the layout of the pages that its section has."""
        ...

    def link_page(self, entry: Mapping[str, Any], target: Mapping[str, Any]) -> str:
        """Return the link from one planned page to another of the same host."""
        ...

    def list_anchors(self, headings: Sequence[PageHeading]) -> Sequence[str]:
        """Return the anchors that the generator gives to the headings of a page."""
        ...

    def plan_server(self, request: PreviewRequest) -> PreviewCommand:
        """Plan the server of the generator, on this machine only.

        Raises:
            ToolError: ILLEGAL_STATE, the site must not be built.
        """
        ...

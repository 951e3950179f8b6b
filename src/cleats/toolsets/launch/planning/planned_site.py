"""The site of a plan: its configurations, its pages, and the layout of its pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.site import hugo
from cleats.toolsets.launch.site.hugo_urls import HugoUrlRules
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

MAX_SAMPLED_PAGES = 50
"""Pages of a section that are examined for its layout."""

MIN_FOLDER_PAGES_SHARE = 0.7
"""The share of pages with their own folder from which a new page gets one too."""


@dataclass(frozen=True)
class PlannedSite:
    """The worktree as the planner sees it; nothing is written."""

    root: Path
    profile: Profile
    config: Mapping[str, Any]

    @cached_property
    def tree(self) -> CheckoutTree:
        return CheckoutTree(self.root)

    @cached_property
    def layout(self) -> str:
        return self.profile.resolve_layout(self.config["layout_mode"], self.config["target_platform"])

    @cached_property
    def pages(self) -> list[str]:
        """All Markdown files of the content."""
        return [path for path in self.tree.paths if path.endswith(".md")]

    def load_url_rules(self, section: str) -> HugoUrlRules:
        """Return the rules for the addresses of a section."""
        family = str(self.config["family"])
        config_paths = self.profile.list_hugo_configs(section, family)
        config_path = next((path for path in config_paths if path in self.tree.paths), "")
        settings = hugo.read_hugo_settings(self.tree, config_path)
        return HugoUrlRules.from_settings(settings).with_paths(self.pages)

    def resolve_page_path(self, section: str, slug: str, locale: str) -> str:
        """Return the path for a page, in the layout of its section."""
        path = self.profile.build_page_path(section, slug, **self._path_variables(locale))
        name = PurePosixPath(path)
        stem, dot, ending = name.name.partition(".")
        if stem in ("index", "_index") or not self._uses_page_folders(section):
            return path
        return str(name.parent / stem / f"index{dot}{ending}")

    def resolve_page_url(self, section: str, slug: str, locale: str) -> str:
        """Return the address of the profile, for a site whose configuration does not define it."""
        return self.profile.build_page_url(section, slug, **self._path_variables(locale))

    def resolve_origin(self, section: str, url_rules: HugoUrlRules, locale: str) -> str:
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

    def _uses_page_folders(self, section: str) -> bool:
        """Return True if the pages of a section have own folders: `x/index.md`, not `x.md`."""
        section_folder = f"{self.profile.site.content_root}/{self.profile.get_section(section).root}/"
        names = [PurePosixPath(path).name for path in self.pages if path.startswith(section_folder)]
        page_names = [name for name in names if not name.startswith("_index.")][:MAX_SAMPLED_PAGES]
        folder_count = sum(name.startswith("index.") for name in page_names)
        return bool(page_names) and folder_count >= MIN_FOLDER_PAGES_SHARE * len(page_names)

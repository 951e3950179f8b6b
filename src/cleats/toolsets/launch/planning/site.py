"""The site a plan is made for: its configurations, its pages, and the habits of its pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from cleats.toolsets.launch.planning.serving import Serving
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.source import hugo
from cleats.toolsets.launch.source.tree import Tree

SAMPLE = 50
"""Pages of a section that are looked at for its habits."""

MOST = 0.7
"""The share of pages in folders of their own from which on a new page gets one too."""


@dataclass(frozen=True)
class PlannedSite:
    """The worktree as the planner sees it; nothing is written."""

    root: Path
    profile: Profile
    config: Mapping[str, Any]

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.root)

    @cached_property
    def layout(self) -> str:
        return self.profile.layout(self.config["layout_mode"], self.config["target_platform"])

    @cached_property
    def pages(self) -> list[str]:
        """Every Markdown file of the content."""
        return [path for path in self.tree.paths if path.endswith(".md")]

    def serving(self, section: str) -> Serving:
        """How the pages of a section are served."""
        family = str(self.config["family"])
        wanted = self.profile.hugo_configs(section, family)
        found = next((path for path in wanted if path in self.tree.paths), "")
        settings = hugo.settings(self.tree, found)
        return Serving.of(settings).knowing(self.pages)

    def path(self, section: str, slug: str, locale: str) -> str:
        """Where a page is to lie, in the style of its section."""
        path = self.profile.page_path(section, slug, **self._place(locale))
        name = PurePosixPath(path)
        stem, dot, ending = name.name.partition(".")
        if stem in ("index", "_index") or not self._in_folders(section):
            return path
        return str(name.parent / stem / f"index{dot}{ending}")

    def url(self, section: str, slug: str, locale: str) -> str:
        """What the profile says the address is, where the site's configuration does not."""
        return self.profile.page_url(section, slug, **self._place(locale))

    def origin(self, section: str, serving: Serving, locale: str) -> str:
        """The scheme and host of a section."""
        host = self.profile.section(section).host
        return f"https://{host}" if host else serving.origin(locale)

    def _place(self, locale: str) -> dict[str, str]:
        return {
            "layout": self.layout,
            "family": self.config["family"],
            "platform": self.config["target_platform"],
            "locale": locale,
        }

    def _in_folders(self, section: str) -> bool:
        """Whether the pages of a section lie in folders of their own: `x/index.md`, not `x.md`."""
        below = f"{self.profile.site.content_root}/{self.profile.section(section).root}/"
        names = [PurePosixPath(path).name for path in self.pages if path.startswith(below)]
        leaves = [name for name in names if not name.startswith("_index.")][:SAMPLE]
        folders = sum(name.startswith("index.") for name in leaves)
        return bool(leaves) and folders >= MOST * len(leaves)

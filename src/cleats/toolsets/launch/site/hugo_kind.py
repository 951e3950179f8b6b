"""Sites made with Hugo."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.site import hugo, hugo_command, programs
from cleats.toolsets.launch.site.hugo_urls import HugoUrlRules
from cleats.toolsets.launch.site.kinds import PreviewCommand, PreviewRequest
from cleats.toolsets.launch.site.pages import PageHeading
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

MAX_SAMPLED_PAGES = 50
"""Pages of a section that are examined for its layout."""

MIN_FOLDER_PAGES_SHARE = 0.7
"""The share of pages with their own folder from which a new page gets one too."""


class HugoKind:
    """Sites made with Hugo: pages link to addresses, and the front matter has the title."""

    name = "hugo"
    has_title_headings = False
    needs_front_matter = True
    orders_by_weight = True

    def list_configs(self, profile: Profile, section: str, family: str) -> Sequence[str]:
        return profile.list_hugo_configs(section, family)

    def locate_content(self, tree: CheckoutTree, profile: Profile) -> str:
        del tree
        return profile.site.content_root

    def list_menu_files(self, tree: CheckoutTree) -> Sequence[str]:
        del tree
        return ()  # the index above the pages is content

    def describe_site(self, tree: CheckoutTree) -> tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]:
        config = hugo.read_hugo_config(tree)
        return {"hugo": hugo.build_hugo_context(tree, config)}, {"hugo_facts.json": hugo.derive_hugo_facts(config)}

    def load_url_rules(self, tree: CheckoutTree, config_paths: Sequence[str]) -> HugoUrlRules:
        config_path = next((path for path in config_paths if path in tree.path_set), "")
        settings = hugo.read_hugo_settings(tree, config_path)
        return HugoUrlRules.from_settings(settings).with_paths(path for path in tree.paths if path.endswith(".md"))

    def open_links(self, site: Path, profile: Profile) -> "HugoLinks":
        return HugoLinks(site, profile)

    def place_page(self, path: str, section_pages: Sequence[str]) -> str:
        """Give a page its own folder, `x/index.md` instead of `x.md`, if the pages of its section have one."""
        name = PurePosixPath(path)
        stem, dot, ending = name.name.partition(".")
        names = [PurePosixPath(page).name for page in section_pages]
        page_names = [page for page in names if not page.startswith("_index.")][:MAX_SAMPLED_PAGES]
        folder_count = sum(page.startswith("index.") for page in page_names)
        has_folders = bool(page_names) and folder_count >= MIN_FOLDER_PAGES_SHARE * len(page_names)
        return str(name.parent / stem / f"index{dot}{ending}") if has_folders and stem not in _INDEX_NAMES else path

    def link_page(self, entry: Mapping[str, Any], target: Mapping[str, Any]) -> str:
        del entry
        return str(target["url_path"])

    def list_anchors(self, headings: Sequence[PageHeading]) -> Sequence[str]:
        return [heading.anchor for heading in headings]

    def plan_server(self, request: PreviewRequest) -> PreviewCommand:
        env = hugo_command.build_hugo_environment(request.scratch, request.settings.get("git_env", {}))
        arguments = hugo_command.list_server_arguments(
            request.site, request.config_path, request.profile.site.environment, request.port
        )
        program = programs.locate_program("hugo", request.settings)
        return PreviewCommand([program, *arguments], env, f"http://127.0.0.1:{request.port}/")


_INDEX_NAMES = ("index", "_index")


@dataclass(frozen=True, slots=True)
class HugoLinks:
    """The links of a Hugo site, whose pages link to addresses."""

    site: Path
    profile: Profile

    def resolve_file_link(self, path: str, link_path: str) -> str | None:
        del path, link_path
        return None

    def list_addresses(self) -> Iterable[tuple[str, str]]:
        hosts_by_root = {section.root: section.host for section in self.profile.sections if section.host}
        for path in _list_files(self.site / self.profile.site.content_root):
            host = hosts_by_root.get(path.parts[0], "")
            yield host, _derive_url_path(PurePosixPath(*path.parts[1:]) if host else path)
        for path in _list_files(self.site / "static"):
            yield from ((host, f"/{path}") for host in ("", *hosts_by_root.values()))


def _list_files(folder: Path) -> Iterator[PurePosixPath]:
    return (PurePosixPath(path.relative_to(folder).as_posix()) for path in folder.rglob("*") if path.is_file())


def _derive_url_path(file: PurePosixPath) -> str:
    if file.suffix != ".md":
        return f"/{file.as_posix()}"
    stem = file.name.removesuffix(".md").split(".", 1)[0]
    folder = "" if str(file.parent) == "." else f"{file.parent.as_posix()}/"
    return f"/{folder}".lower() if stem in _INDEX_NAMES else f"/{folder}{stem}/".lower()

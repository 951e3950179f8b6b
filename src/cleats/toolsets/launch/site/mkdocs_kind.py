"""Sites made with MkDocs."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.site import mkdocs_command
from cleats.toolsets.launch.site.kinds import PreviewCommand, PreviewRequest
from cleats.toolsets.launch.site.mkdocs import CONFIG_NAMES, is_inside, read_mkdocs_config
from cleats.toolsets.launch.site.mkdocs_urls import MkDocsUrlRules, make_file_link
from cleats.toolsets.launch.site.pages import PageHeading
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

_EXPLICIT_ANCHOR_PATTERN = re.compile(r"_(\d+)$")


class MkDocsKind:
    """Sites made with MkDocs: pages link to files, and begin with their title."""

    name = "mkdocs"
    has_title_headings = True
    needs_front_matter = False
    orders_by_weight = False

    def list_configs(self, profile: Profile, section: str, family: str) -> Sequence[str]:
        del profile, section, family
        return CONFIG_NAMES

    def locate_content(self, tree: CheckoutTree, profile: Profile) -> str:
        config = read_mkdocs_config(tree)
        return config.docs_folder if config.path and is_inside(config.docs_folder) else profile.site.content_root

    def list_menu_files(self, tree: CheckoutTree) -> Sequence[str]:
        config = read_mkdocs_config(tree)
        return (config.path,) if config.has_nav else ()

    def describe_site(self, tree: CheckoutTree) -> tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]:
        config = read_mkdocs_config(tree)
        facts = {"config_path": config.path, "docs_dir": config.docs_folder, "has_nav": config.has_nav}
        no_hugo = {"config_root": ".", "config_files": [], "build_matrix": []}
        return {"hugo": no_hugo, "mkdocs": facts}, {}

    def load_url_rules(self, tree: CheckoutTree, config_paths: Sequence[str]) -> MkDocsUrlRules:
        del config_paths
        return MkDocsUrlRules.from_config(read_mkdocs_config(tree))

    def open_links(self, site: Path, profile: Profile) -> "MkDocsLinks":
        del profile
        tree = CheckoutTree(site)
        return MkDocsLinks(tree, self.load_url_rules(tree, ()))

    def place_page(self, path: str, section_pages: Sequence[str]) -> str:
        del section_pages
        folder, _, name = path.rpartition("/")
        return f"{folder}/{name.removeprefix('_')}" if name.startswith("_index.") else path

    def link_page(self, entry: Mapping[str, Any], target: Mapping[str, Any]) -> str:
        return make_file_link(str(entry["output_path"]), str(target["output_path"]))

    def list_anchors(self, headings: Sequence[PageHeading]) -> Sequence[str]:
        anchors: list[str] = []
        for heading in headings:
            anchor = _slugify(heading.text)
            while anchor in anchors or not anchor:
                number = _EXPLICIT_ANCHOR_PATTERN.search(anchor)
                anchor = f"{anchor[: number.start()]}_{int(number[1]) + 1}" if number else f"{anchor}_1"
            anchors.append(anchor)
        return anchors

    def plan_server(self, request: PreviewRequest) -> PreviewCommand:
        site, scratch = request.site, request.scratch
        config = read_mkdocs_config(CheckoutTree(site))
        if fault := config.fault or "; ".join(refusal.message for refusal in config.refusals):
            raise ToolError(ErrorCode.ILLEGAL_STATE, f"{config.path} cannot be served: {fault}.")
        build_file = mkdocs_command.write_build_file(config, site, scratch)
        arguments = ["serve", "--config-file", str(build_file), "--dev-addr", f"127.0.0.1:{request.port}"]
        base_path = MkDocsUrlRules.from_config(config).base_path
        return PreviewCommand(
            mkdocs_command.build_command(site, scratch, arguments),
            mkdocs_command.build_environment(scratch, request.settings.get("git_env", {})),
            f"http://127.0.0.1:{request.port}{base_path}",
        )


@dataclass(frozen=True, slots=True)
class MkDocsLinks:
    """The links of a MkDocs site, whose pages link to files."""

    tree: CheckoutTree
    rules: MkDocsUrlRules

    def resolve_file_link(self, path: str, link_path: str) -> str | None:
        return self.rules.resolve_file_link(path, link_path)

    def list_addresses(self) -> Iterable[tuple[str, str]]:
        urls = map(self.rules.resolve_url_path, self.tree.paths)
        return (("", url) for url in urls if url is not None)


def _slugify(text: str) -> str:
    """Return the anchor that Python-Markdown makes of a heading."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())

"""The site of a run as gates and fixes see it: the worktree, its pages, and the output of the build."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import unescape
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urljoin, urlsplit

from cleats.system import front_matter
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site import claim_markers, pages
from cleats.toolsets.launch.site.detection import get_site_kind
from cleats.toolsets.launch.site.kinds import SiteKind, SiteLinks

T = TypeVar("T")

_ANCHOR_PATTERN = re.compile(r"""<[^>]*?\s(?:id|name)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")


@dataclass(frozen=True)
class BuiltSite:
    """The folder of a build, the sections it serves, and the hosts and path it is served at."""

    folder: Path
    sections: tuple[str, ...]
    hosts: frozenset[str]
    base_path: str = "/"
    _anchor_cache: dict[str, frozenset[str]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def files(self) -> frozenset[str]:
        """All files, relative to the folder, with their exact names: case matters."""
        return frozenset(
            Path(directory, name).relative_to(self.folder).as_posix()
            for directory, _, names in os.walk(self.folder)
            for name in names
        )

    @cached_property
    def _files_by_folded_name(self) -> dict[str, str]:
        return {name.casefold(): name for name in sorted(self.files, reverse=True)}

    def find_file(self, address: str) -> str | None:
        """Return the file that a web server returns for a URL path, or None."""
        return next((candidate for candidate in self._list_candidates(address) if candidate in self.files), None)

    def find_file_ignoring_case(self, address: str) -> str | None:
        """Return the file that a web server would return if case did not matter, or None."""
        matches = (self._files_by_folded_name.get(candidate.casefold()) for candidate in self._list_candidates(address))
        return next(filter(None, matches), None)

    def _list_candidates(self, address: str) -> list[str]:
        path = unquote(address)
        base = self.base_path.rstrip("/") + "/"
        if path + "/" == base:
            path = base
        if not path.startswith(base):
            return []
        relative_path = path.removeprefix(base)
        if not relative_path or relative_path.endswith("/"):
            return [f"{relative_path}index.html"]
        return [relative_path, f"{relative_path}/index.html", f"{relative_path}.html"]

    def list_anchors(self, file: str) -> frozenset[str]:
        """Return the anchors of a page that a link can name."""
        if file not in self._anchor_cache:
            text = (self.folder / file).read_bytes().decode("utf-8", "replace")
            self._anchor_cache[file] = frozenset(unescape("".join(it)) for it in _ANCHOR_PATTERN.findall(text))
        return self._anchor_cache[file]


def _list_in_body(list_elements: Callable[[str, int], list[T]]) -> "cached_property[list[T]]":
    """Return a property of a page: the elements of one kind in its body, with their lines in the file."""
    return cached_property(lambda file: list_elements(file.body, file.body_line))


@dataclass(frozen=True)
class PageFile:
    """A Markdown file of the run, as it is in the worktree."""

    path: str
    text: str
    plan: Mapping[str, Any] = field(default_factory=dict)
    """The file's entry in the page plan; empty for a file that is not planned."""

    @cached_property
    def page(self) -> front_matter.ParsedPage | None:
        """The parsed page, or None when its front matter cannot be read."""
        try:
            return front_matter.parse_page(self.text)
        except front_matter.FrontMatterError:
            return None

    @property
    def section(self) -> str:
        return str(self.plan.get("section", ""))

    @property
    def front(self) -> Mapping[str, Any]:
        return self.page.front if self.page else {}

    @property
    def body(self) -> str:
        return self.page.body if self.page else self.text

    @property
    def body_line(self) -> int:
        """The line of the file at which the body begins."""
        return self.page.body_line if self.page else 1

    headings = _list_in_body(pages.list_headings)
    links = _list_in_body(pages.list_links)
    images = _list_in_body(pages.list_images)
    fences = _list_in_body(pages.list_code_blocks)
    claims = _list_in_body(claim_markers.list_claim_markers)

    @cached_property
    def prose(self) -> list[tuple[int, str]]:
        """The lines of the body that are neither code nor evidence, with their line numbers in the file."""
        code = pages.find_code_lines(self.body)
        evidence_list = claim_markers.parse_evidence_list(self.body)
        evidence_lines = range(evidence_list.line, evidence_list.end + 1) if evidence_list.line else ()
        return [
            (self.body_line + number - 1, line)
            for number, line in enumerate(self.body.removesuffix("\n").split("\n"), start=1)
            if number not in code and number not in evidence_lines
        ]


@dataclass(frozen=True, slots=True)
class WorktreeChange:
    """A path that differs from the base commit. `kind` is file, link, folder, device or gone."""

    path: str
    kind: str
    mode: int = 0
    new_lines: frozenset[int] | None = None
    """The new lines of a file that existed before; None when the launch wrote the whole file."""


@dataclass(frozen=True, kw_only=True)
class LaunchSite:
    """Everything that a gate may inspect."""

    job: WorkerJob
    profile: Profile
    level: str
    """The validation profile: local, ci or prod."""
    scratch: Path
    """A folder for this validation only; it is removed when the validation ends."""
    changes: Sequence[WorktreeChange] = ()
    programs: Mapping[str, str] = field(default_factory=dict)
    """The paths of the tools that the gates may run, by name."""
    built_sites: dict[str, BuiltSite] = field(default_factory=dict)
    """The output of the build gate, by name of the build."""

    @property
    def kind(self) -> SiteKind:
        return get_site_kind(self.profile)

    @cached_property
    def links(self) -> SiteLinks:
        return self.kind.open_links(self.job.site, self.profile)

    def resolve_link(self, file: PageFile, link: str) -> str:
        """Return the path at which the target of a relative link is served; empty when it cannot be parsed."""
        try:
            path = urlsplit(link).path
            address = self.links.resolve_file_link(file.path, path) if path else None
            return address or urlsplit(urljoin(str(file.plan.get("url_path", "/")), path)).path
        except ValueError:
            return ""

    @property
    def config(self) -> Mapping[str, Any]:
        return self.job.config

    def scrub(self, text: str) -> str:
        """Remove the folders of this machine from a text; paths in the worktree become relative."""
        job = self.job
        for folder, name in ((job.site, ""), (job.repo, "repo/"), (self.scratch, "scratch/"), (job.root, "run/")):
            for spelling in dict.fromkeys((str(folder), str(folder.resolve()))):
                text = text.replace(f"{spelling}/", name).replace(spelling, name.rstrip("/") or ".")
        for name, program in self.programs.items():
            text = text.replace(program, name)
        return text

    def is_from_launch(self, path: str, line: int) -> bool:
        """Return whether a line of a page came with this launch; line 0 is the file as a whole.

        On a page that people edited since an earlier launch, only lines that this launch drafted did.
        """
        if path in self.edited_drafts:
            return line > 0 and self.are_lines_from_launch(path, line, line)
        if any(entry["output_path"] == path for entry in self.plan):
            return True
        new_lines = next((change.new_lines for change in self.changes if change.path == path), None)
        return new_lines is None or line in new_lines

    def are_lines_from_launch(self, path: str, first: int, last: int) -> bool:
        """Return whether all lines of a block came with this launch, and none from people before it."""
        if path not in self.edited_drafts:
            return self.is_from_launch(path, first)
        new_lines = next((change.new_lines for change in self.changes if change.path == path), frozenset()) or ()
        lines = (self.read_text(path) or "").split("\n")
        drafted_lines = self.edited_drafts[path]
        return all(
            number in new_lines or (number <= len(lines) and lines[number - 1] in drafted_lines)
            for number in range(first, last + 1)
        )

    @cached_property
    def edited_drafts(self) -> Mapping[str, frozenset[str]]:
        """The drafted lines of each page that people edited since an earlier launch, by path."""
        updates = self.load_document("page_updates.json").get("pages", ())
        sections = {entry["output_path"]: entry["section"] for entry in self.plan}
        return {
            update["path"]: frozenset(
                self.job.read(f"drafts/{sections[update['path']]}/{update['path']}").decode().split("\n")
            )
            for update in updates
            if update["edited"] and update["path"] in sections
        }

    def load_document(self, name: str) -> Mapping[str, Any]:
        """Return an artifact that is a JSON object; empty when the run has none of that name."""
        return self.job.read_json(name) if self.job.has_artifact(name) else {}

    @cached_property
    def plan(self) -> Sequence[Mapping[str, Any]]:
        return tuple(self.load_document("page_plan.json").get("pages", ()))

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        return self.load_document("product_facts.json")

    @cached_property
    def front_matter_contracts(self) -> Mapping[str, Mapping[str, Any]]:
        """The keys, types and common values of the front matter of each section."""
        contracts: Mapping[str, Any] = self.load_document("frontmatter_contract.json").get("sections", {})
        return contracts

    @cached_property
    def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        """The claims of the evidence map, by id."""
        return {claim["claim_id"]: claim for claim in self.load_document("evidence_map.json").get("claims", ())}

    @cached_property
    def passed_programs(self) -> Mapping[str, str]:
        """The places of the programs that ran without an error, by their code."""
        return claim_markers.index_passed_programs(self.load_document("snippet_catalog.json"))

    @cached_property
    def files(self) -> Sequence[PageFile]:
        """The planned pages that exist, and all other Markdown files that changed."""
        planned = {entry["output_path"]: entry for entry in self.plan}
        changed = {change.path for change in self.changes if change.kind == "file" and change.path.endswith(".md")}
        texts = ((path, self.read_text(path)) for path in sorted(planned.keys() | changed))
        return tuple(PageFile(path, text, planned.get(path, {})) for path, text in texts if text is not None)

    def iterate_changed_texts(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the text of each changed file."""
        for change in self.changes:
            text = self.read_text(change.path) if change.kind == "file" else None
            if text is not None:
                yield change.path, text

    def read_text(self, path: str) -> str | None:
        """Return the text of a plain file of the worktree, or None when there is none.

        Bytes that are not UTF-8 become replacement characters; the allowed_paths gate reports them.
        """
        file = self.job.site / path
        if file.is_symlink() or not file.is_file():
            return None
        return file.read_bytes().decode("utf-8", "replace")

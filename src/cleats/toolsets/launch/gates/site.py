"""The site as the gates see it: the worktree, what changed in it, and the pages of the run.

Read once for all gates, so that they judge the same bytes. Nothing here writes, except that the
build gate leaves its output in `scratch` for the gates that follow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cleats.toolsets.launch import pages
from cleats.toolsets.launch.gates.output import Output
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.workers.job import Job


@dataclass(frozen=True)
class PageFile:
    """A Markdown file of the run, as it lies in the worktree."""

    path: str
    text: str
    plan: Mapping[str, Any] = field(default_factory=dict)
    """Its entry in the page plan; empty for a file that no plan names."""

    @cached_property
    def page(self) -> pages.Page | None:
        """The page, or None when its front matter cannot be read."""
        try:
            return pages.parse(self.text)
        except pages.FrontMatterError:
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
    def first(self) -> int:
        """The line of the file at which the body begins."""
        return self.page.body_line if self.page else 1

    @cached_property
    def headings(self) -> list[pages.Heading]:
        return pages.headings(self.body, self.first)

    @cached_property
    def links(self) -> list[pages.Link]:
        return pages.links(self.body, self.first)

    @cached_property
    def images(self) -> list[pages.Image]:
        return pages.images(self.body, self.first)

    @cached_property
    def fences(self) -> list[pages.Fence]:
        return pages.fences(self.body, self.first)

    @cached_property
    def claims(self) -> list[pages.Claim]:
        return pages.claims(self.body, self.first)

    @cached_property
    def prose(self) -> list[tuple[int, str]]:
        """The lines of the body that are not code, with their numbers in the file."""
        code = pages.code_lines(self.body)
        return [
            (self.first + number - 1, line)
            for number, line in enumerate(self.body.removesuffix("\n").split("\n"), start=1)
            if number not in code
        ]


@dataclass(frozen=True, slots=True)
class Change:
    """A path that differs from the base commit. `kind` is file, link, folder or gone."""

    path: str
    kind: str
    mode: int = 0
    lines: frozenset[int] | None = None
    """The lines that are new, of a file that was there before; None when all of it is ours."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """Everything a gate may look at."""

    job: Job
    profile: Profile
    level: str
    """The validation profile: local, ci or prod."""
    scratch: Path
    """A folder of this validation alone; it goes when the validation ends."""
    changes: Sequence[Change] = ()
    programs: Mapping[str, str] = field(default_factory=dict)
    """Where the tools are that the gates may run."""
    built: dict[str, Output] = field(default_factory=dict)
    """What the build gate made, by the name of the build."""

    @property
    def config(self) -> Mapping[str, Any]:
        return self.job.config

    def scrub(self, text: str) -> str:
        """A text without the folders of this machine; paths in the worktree become relative."""
        for folder, name in (
            (self.job.site, ""),
            (self.job.repo, "repo/"),
            (self.scratch, "scratch/"),
            (self.job.root, "run/"),
        ):
            for spelled in dict.fromkeys((str(folder), str(folder.resolve()))):
                text = text.replace(f"{spelled}/", name).replace(spelled, name.rstrip("/") or ".")
        for name, program in self.programs.items():
            text = text.replace(program, name)
        return text

    @cached_property
    def _older(self) -> Mapping[str, frozenset[int]]:
        return {each.path: each.lines for each in self.changes if each.lines is not None}

    def ours(self, path: str, line: int) -> bool:
        """Whether a line of a page came with this launch; line 0 is the file as a whole."""
        planned = any(entry["output_path"] == path for entry in self.plan)
        return planned or path not in self._older or line in self._older[path]

    def document(self, name: str) -> Mapping[str, Any]:
        """An artifact that is a JSON object; empty when the run has none of that name."""
        return self.job.json(name) if self.job.has(name) else {}

    @cached_property
    def plan(self) -> Sequence[Mapping[str, Any]]:
        return tuple(self.document("page_plan.json").get("pages", ()))

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        return self.document("product_facts.json")

    @cached_property
    def evidence(self) -> Mapping[str, Mapping[str, Any]]:
        """The claims of the evidence map, by id."""
        claims = self.document("evidence_map.json").get("claims", ())
        return {claim["claim_id"]: claim for claim in claims}

    @cached_property
    def files(self) -> Sequence[PageFile]:
        """The planned pages that are there, and every other Markdown file that changed."""
        planned = {entry["output_path"]: entry for entry in self.plan}
        changed = {
            change.path
            for change in self.changes
            if change.kind == "file" and change.path.endswith(".md")
        }
        found = []
        for path in sorted(planned.keys() | changed):
            text = self.text(path)
            if text is not None:
                found.append(PageFile(path, text, planned.get(path, {})))
        return tuple(found)

    def text(self, path: str) -> str | None:
        """The text of a plain file of the worktree; None when there is none.

        Bytes that are no UTF-8 are shown as replacement signs; the gate of allowed paths reports
        them.
        """
        file = self.job.site / path
        if file.is_symlink() or not file.is_file():
            return None
        return file.read_bytes().decode("utf-8", "replace")

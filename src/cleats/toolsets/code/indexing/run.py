"""One build, from the first look at the folder to a published generation.

Full and incremental builds take the same road; an incremental one begins with a copy of the last
catalogue and reads only what has changed. Either way the catalogue says the same in the end.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cleats.toolsets.code.discovery.files import Discovery, discover
from cleats.toolsets.code.history.state import GitState, state
from cleats.toolsets.code.indexing import authorship, description, parts, risks
from cleats.toolsets.code.indexing.basis import Basis
from cleats.toolsets.code.indexing.failures import explained
from cleats.toolsets.code.indexing.heads import Stand, stand
from cleats.toolsets.code.indexing.intake import Intake, take_in
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.indexing.plan import Checked, Plan, check, compare, tasks
from cleats.toolsets.code.indexing.progress import Counter, Progress, Report
from cleats.toolsets.code.indexing.reading import Reader
from cleats.toolsets.code.indexing.report import BuildReport, Files
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.files import clone
from cleats.toolsets.code.store.generations import Shelf

PATIENCE: Final = 0.2
"""Seconds between two attempts to become the builder."""

WORTH_NOTING: Final = 8 << 20
"""Bytes of unchanged files that are hashed at every look before their times are noted anew: a
generation that only says so costs more than to hash less."""


def build(root: Path, shelf: Shelf, options: Options, report: Report) -> BuildReport:
    """Bring the index of a repository up to date, or make it anew; return what was done.

    Waits while somebody else builds the same index.

    Raises:
        ToolError: the index cannot be written; the last one is as it was.
    """
    with explained(shelf.folder), _alone(shelf, report):
        shelf.collect()
        with Basis.of(shelf, options) as basis:
            return Build(root, shelf, options, report, basis).run()


@contextmanager
def _alone(shelf: Shelf, report: Report) -> Iterator[None]:
    while (lock := shelf.claim()) is None:
        report(Progress("wait", "another build of this repository is running"))
        time.sleep(PATIENCE)
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class Survey:
    """How things stand before anything is read for the index."""

    found: Discovery
    plan: Plan
    checked: Checked
    head: Stand | None

    @property
    def changed(self) -> list[str]:
        return [each.path for each in self.checked.changed]


@dataclass
class Build:
    """One build on its way."""

    root: Path
    shelf: Shelf
    options: Options
    report: Report
    basis: Basis
    started: float = field(default_factory=time.monotonic)
    warnings: list[str] = field(default_factory=list)

    def run(self) -> BuildReport:
        """Look, and write a generation if there is anything to say."""
        survey = self._survey()
        lease = self.basis.lease
        if lease is not None and self._up_to_date(survey):
            return self._done(lease.name, self.basis.meta, Files(), published=False)
        with self.shelf.draft() as draft:
            meta, files = self._write(draft, survey)
            self.report(Progress("publish", "writing to the disk"))
            generation = self.shelf.publish(draft)
        self.shelf.collect()
        return self._done(generation, meta, files, published=True)

    def _survey(self) -> Survey:
        self.report(Progress("look", "looking for files"))
        head = stand(self.root) if self.options.git else None
        found = discover(self.root, self.options.limits)
        plan = compare(found.files, self.basis.known)
        return Survey(found, plan, check(plan.suspects, self.basis.known), head)

    def _up_to_date(self, survey: Survey) -> bool:
        made_of = description.made_of(self.basis, self.options, survey.head)
        return (
            not (survey.plan.added or survey.plan.removed or survey.changed)
            and survey.checked.bytes < WORTH_NOTING
            and all(self.basis.meta.get(key) == value for key, value in made_of.items())
        )

    def _write(self, draft: Path, survey: Survey) -> tuple[dict[str, Any], Files]:
        previous = self.basis.lease.folder if self.basis.lease else None
        git = self._git()
        with self._catalogue(draft / schema.FILE) as catalogue:
            intake = self._take_in(catalogue, survey)
            touched = None if previous is None else {*intake.paths, *survey.plan.removed}
            self._enrich(catalogue, draft, touched, git)
            meta = {
                **description.made_of(self.basis, self.options, survey.head),
                **description.made_when(git),
                **description.contents(catalogue, survey.found),
            }
            catalogue.set_meta(meta)
            catalogue.commit()
        parts.write(draft, previous, touched, self.report, sqlite=self.basis.sqlite)
        return meta, _files(survey, intake, meta)

    def _enrich(
        self, catalogue: Catalogue, draft: Path, touched: set[str] | None, git: GitState | None
    ) -> None:
        """Add what the bytes of one file cannot say."""
        previous = self.basis.lease.folder if self.basis.lease else None
        self.report(Progress("git", "reading the history"))
        self.warnings += authorship.add(
            catalogue, self.root, git, touched, previous=previous, draft=draft
        )
        if touched is None or touched:
            self.report(Progress("risk", "following values from function to function"))
            risks.add(catalogue)

    def _git(self) -> GitState | None:
        git = state(self.root) if self.options.git else None
        if git is not None and git.warning:
            self.warnings.append(git.warning)
        return git

    def _catalogue(self, path: Path) -> Catalogue:
        if self.basis.lease is None:
            return Catalogue.create(path)
        clone(self.basis.lease.catalogue, path)
        return Catalogue.update(path)

    def _take_in(self, catalogue: Catalogue, survey: Survey) -> Intake:
        catalogue.remove((*survey.plan.removed, *survey.changed))
        for path, length, mtime in survey.checked.same:
            catalogue.touch(path, length, mtime)
        wanted = tasks((*survey.plan.added, *survey.checked.changed))
        form = self.basis.form
        reader = Reader(
            frozenset(form.modes), form.vectors, self.options.limits, self.options.rule_files
        )
        counter = Counter(self.report, "read", "files", len(wanted))
        return take_in(catalogue, wanted, reader, self.options.workers, counter)

    def _done(
        self, generation: str, meta: Mapping[str, Any], files: Files, *, published: bool
    ) -> BuildReport:
        if not published:
            total = meta["counts"]["files"]
            files = Files(total=total, unchanged=total, skipped=sum(meta["skipped"].values()))
        return BuildReport.of(
            meta,
            generation=generation,
            published=published,
            files=files,
            warnings=self.warnings,
            seconds=round(time.monotonic() - self.started, 3),
        )


def _files(survey: Survey, intake: Intake, meta: dict[str, Any]) -> Files:
    known = {each.path for each in survey.checked.changed}
    changed = sum(path in known for path in intake.indexed)
    total: int = meta["counts"]["files"]
    return Files(
        total=total,
        added=len(intake.indexed) - changed,
        changed=changed,
        removed=len(survey.plan.removed) + len(known.intersection(intake.gone)),
        unchanged=total - len(intake.indexed),
        skipped=sum(meta["skipped"].values()),
    )

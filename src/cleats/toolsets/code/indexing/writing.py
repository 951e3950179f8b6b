"""A generation in the making: its catalogue, then all that is made from it."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from cleats.toolsets.code.discovery.files import Found
from cleats.toolsets.code.history.state import GitState, state
from cleats.toolsets.code.indexing import authorship, description, linting, parts, risks
from cleats.toolsets.code.indexing.basis import Basis
from cleats.toolsets.code.indexing.intake import Intake, take_in
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.indexing.progress import Counter, Progress, Report
from cleats.toolsets.code.indexing.reading import Reader, Task, rules
from cleats.toolsets.code.indexing.report import Files
from cleats.toolsets.code.indexing.survey import Survey, made_of
from cleats.toolsets.code.lint import Linters
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.files import clone

LIGHT: Final = 1 << 18
"""Bytes of files that are read sooner than numpy is loaded, which is quicker from then on."""


class Writing(Struct):
    """One generation on its way, in a folder of its own."""

    root: Path
    options: Options
    report: Report
    basis: Basis
    survey: Survey
    draft: Path
    warnings: list[str] = []

    @property
    def previous(self) -> Path | None:
        """The generation that this one begins from."""
        return self.basis.lease.folder if self.basis.lease else None

    def run(self) -> tuple[dict[str, Any], Files]:
        """Write everything; return what it says about itself, and what became of the files."""
        git = self._git()
        count = len(self.survey.plan.added) + len(self.survey.checked.changed)
        with (
            authorship.begun(self.root, git, self.previous, count) as beginning,
            self._catalogue() as catalogue,
        ):
            intake = self._take_in(catalogue)
            touched = None if self.previous is None else self._touched(intake)
            self.report(Progress("git", "reading the history"))
            gaps = authorship.add(
                catalogue, self.root, git, touched, beginning=beginning, draft=self.draft
            )
            self.warnings += gaps
            lint_mark = self._enrich(catalogue, touched)
            meta = {
                "lint_mark": lint_mark,
                "history_gaps": gaps,
                **made_of(self.basis, self.options, self.survey.head),
                **description.made_when(git),
                **description.contents(catalogue, self.survey.found),
            }
            catalogue.set_meta(meta)
            catalogue.commit()
        parts.write(
            *(self.draft, self.previous, self.report),
            sqlite=self.basis.sqlite,
            workers=self.options.workers,
        )
        return meta, self._files(intake, meta)

    def _git(self) -> GitState | None:
        git = state(self.root) if self.options.git else None
        if git is not None and git.warning:
            self.warnings.append(git.warning)
        return git

    def _catalogue(self) -> Catalogue:
        path = self.draft / schema.FILE
        if self.basis.lease is None:
            return Catalogue.create(path)
        clone(self.basis.lease.catalogue, path)
        return Catalogue.update(path)

    def _take_in(self, catalogue: Catalogue) -> Intake:
        checked, form = self.survey.checked, self.basis.form
        catalogue.remove((*self.survey.plan.removed, *self.survey.changed))
        for path, length, mtime in checked.same:
            catalogue.touch(path, length, mtime)
        wanted = _tasks((*self.survey.plan.added, *checked.changed))
        reader = Reader(
            frozenset(form.modes),
            form.vectors,
            self.options.limits,
            self.options.rule_files,
            light=sum(task.size for task in wanted) <= LIGHT,
        )
        if wanted and self.options.rule_files:
            self.warnings += rules(self.options.rule_files).problems
        counter = Counter(self.report, "read", "files", len(wanted))
        return take_in(catalogue, wanted, reader, self.options.workers, counter)

    def _touched(self, intake: Intake) -> set[str]:
        return {*intake.paths, *self.survey.plan.removed}

    def _enrich(self, catalogue: Catalogue, touched: AbstractSet[str] | None) -> str | None:
        """Add what flows between files and what linters say; return the mark of the linters."""
        self.report(Progress("risk", "following values from function to function"))
        risks.add(catalogue, touched, previous=self.previous, draft=self.draft)
        return self._lint(catalogue, touched)

    def _lint(self, catalogue: Catalogue, touched: AbstractSet[str] | None) -> str | None:
        if not self.options.lint:
            linting.forget(catalogue)
            return None
        self.report(Progress("lint", "asking linters"))
        linters = Linters.of(self.root, run_repository_code=self.options.repository_code)
        before = self.basis.meta.get("lint_mark")
        linted = linting.add(catalogue, self.root, linters, touched, before)
        self.warnings += linted.warnings
        return linted.mark

    def _files(self, intake: Intake, meta: dict[str, Any]) -> Files:
        known = set(self.survey.changed)
        changed = sum(path in known for path in intake.indexed)
        total: int = meta["counts"]["files"]
        return Files(
            total=total,
            added=len(intake.indexed) - changed,
            changed=changed,
            removed=len(self.survey.plan.removed) + len(known.intersection(intake.gone)),
            unchanged=total - len(intake.indexed),
            skipped=sum(meta["skipped"].values()),
        )


def _tasks(found: Iterable[Found]) -> list[Task]:
    """What to read, in the order of the paths."""
    return [
        Task(each.path, each.fs_path, each.lang, each.mode, each.size, each.mtime_ns)
        for each in sorted(found, key=lambda each: each.path)
    ]

"""The writing of a generation: its catalogue, then everything derived from it."""

import os
import time
from collections import Counter
from collections.abc import Set as AbstractSet
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleats.contract.versions import TOOLING_VERSION
from cleats.toolsets.code.analysis.history.head import GitState, read_git_state
from cleats.toolsets.code.analysis.lint import Linters
from cleats.toolsets.code.discovery.files import Discovery
from cleats.toolsets.code.index import catalogue_layers, catalogue_schema, ingest
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.changes import BuildInputs, FileSurvey, describe_inputs
from cleats.toolsets.code.index.file_reader import FileReader, ReadTask, load_rules
from cleats.toolsets.code.index.ingest import IngestedFiles, ingest_files
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.index.parsed_files import ParsedFiles
from cleats.toolsets.code.index.progress import BuildProgress, FileTotals, ProgressCallback, ProgressCounter
from cleats.toolsets.code.records.archive import VIRTUAL_FOLDER

MAX_LISTED_PROBLEMS: Final = 20
MAX_LISTED_SKIPPED: Final = 200
"""Files that are listed by name; the others are only counted."""


def describe_origin(git: GitState | None) -> dict[str, Any]:
    """Return when a generation was built, by which version, and from which commit."""
    return {
        "tool": TOOLING_VERSION,
        "created": time.time(),
        "branch": git.branch if git else None,
        "commit": git.commit if git else None,
        "dirty": bool(git and git.dirty),
    }


def describe_contents(catalogue: IndexCatalogue, discovery: Discovery) -> dict[str, Any]:
    """Return the contents of a generation, and the files that were skipped."""
    counts = catalogue.count_contents(VIRTUAL_FOLDER)
    skipped = Counter(discovery.count_reasons()) + Counter(counts.skipped)
    return {
        "counts": {name: count for name, count in counts._asdict().items() if name != "skipped"},
        "problems": catalogue.list_problems(MAX_LISTED_PROBLEMS),
        "source": discovery.source,
        "skipped": dict(sorted(skipped.items())),
        "left_out": sorted([*discovery.skipped, *catalogue.list_skipped_files()])[:MAX_LISTED_SKIPPED],
    }


class GenerationWriter(Struct):
    """One generation being written, in its own folder."""

    root: Path
    options: BuildOptions
    report: ProgressCallback
    inputs: BuildInputs
    survey: FileSurvey
    draft: Path
    warnings: list[str] = []

    @property
    def previous(self) -> Path | None:
        """The generation that this one starts from."""
        return self.inputs.lease.folder if self.inputs.lease else None

    def run(self) -> tuple[dict[str, Any], FileTotals]:
        """Write everything; return the metadata of the generation and the file totals."""
        known_git = self._read_known_git_state()
        git = known_git or self._read_git_state()
        count = len(self.survey.added) + len(self.survey.changed)
        with (
            ingest.prepare_history(self.root, git, self.previous, count) as load_history,
            self._open_catalogue() as catalogue,
        ):
            ingested = self._ingest_files(catalogue)
            touched = None if self.previous is None else {*ingested.paths, *self.survey.removed}
            self.report(BuildProgress("git", "reading the history"))
            gaps, is_dirty = ingest.add_authorship(
                catalogue, self.root, git, touched, load_history=load_history, previous=self.previous, draft=self.draft
            )
            if git is not None and is_dirty:
                git = replace(git, dirty=True)
            elif known_git is not None:
                git = self._read_git_state()
            self.warnings += gaps
            self.report(BuildProgress("risk", "following values from function to function"))
            ingest.add_risks(catalogue, touched, previous=self.previous, draft=self.draft)
            lint_mark = self._add_findings(catalogue, touched)
            meta = {
                "lint_mark": lint_mark,
                "history_gaps": gaps,
                **describe_inputs(self.inputs, self.options, self.survey.head),
                **describe_origin(git),
                **describe_contents(catalogue, self.survey.discovery),
            }
            catalogue.set_meta(meta)
            changed_paths = None if self.previous is None else catalogue.list_changed_paths()
            catalogue.commit()
        self._write_search_parts(changed_paths)
        return meta, self._count_files(ingested, meta)

    def _write_search_parts(self, changed_paths: AbstractSet[str] | None) -> None:
        self.report(BuildProgress("search", "making it searchable"))
        # Each of these loads a library that only builders and searches need.
        from cleats.toolsets.code.index.shard_writer import write_shards  # noqa: PLC0415

        workers = self.options.workers or os.cpu_count() or 1
        write_shards(self.draft, self.previous, self.report, workers, changed_paths=changed_paths)
        if self.inputs.sqlite:
            from cleats.toolsets.code.index.full_text import write_fts_index  # noqa: PLC0415

            self.report(BuildProgress("search", "making it searchable with SQLite"))
            write_fts_index(self.draft)

    def _read_known_git_state(self) -> GitState | None:
        """Return the branch and the commit, if they are those of the earlier generation; otherwise None.

        Then git need not be asked for the state of all files, if one of those that were read differs from the commit.
        """
        head, meta = self.survey.head, self.inputs.meta
        if self.previous is None or head is None or head[0] is None or head != meta.get("head"):
            return None
        return GitState(head[1], head[0]) if meta.get("commit") == head[0] else None

    def _read_git_state(self) -> GitState | None:
        git = read_git_state(self.root) if self.options.git else None
        if git is not None and git.warning:
            self.warnings.append(git.warning)
        return git

    def _open_catalogue(self) -> IndexCatalogue:
        path = self.draft / catalogue_schema.CATALOGUE_FILE_NAME
        if self.inputs.lease is None:
            return IndexCatalogue.create(path)
        count = sum(map(len, (self.survey.added, self.survey.changed, self.survey.removed, self.survey.same)))
        is_small = count <= max(1, len(self.inputs.known_files) * catalogue_layers.MAX_CHANGES_SHARE)
        catalogue_layers.copy_catalogue(self.inputs.lease.folder, self.draft, is_small_change=is_small)
        return IndexCatalogue.open_for_update(path)

    def _ingest_files(self, catalogue: IndexCatalogue) -> IngestedFiles:
        survey, form = self.survey, self.inputs.form
        catalogue.remove_files((*survey.removed, *survey.changed_paths))
        for path, length, mtime in survey.same:
            catalogue.update_mtime(path, length, mtime)
        files = sorted((*survey.added, *survey.changed), key=lambda file: file.path)
        tasks = [ReadTask(file.path, file.fs_path, file.lang, file.mode, file.size, file.mtime_ns) for file in files]
        reader = FileReader(frozenset(form.modes), form.vectors, self.options.limits, self.options.rule_files)
        if tasks and self.options.rule_files:
            self.warnings += load_rules(self.options.rule_files).problems
        counter = ProgressCounter(self.report, "read", "files", len(tasks))
        if len(tasks) < ingest.MIN_PARALLEL_FILES:
            return ingest_files(catalogue, tasks, reader, self.options.workers, counter)
        with closing(ParsedFiles(self.draft.parents[1], form)) as parsed_files:
            return ingest_files(catalogue, tasks, reader, self.options.workers, counter, parsed_files=parsed_files)

    def _add_findings(self, catalogue: IndexCatalogue, touched: AbstractSet[str] | None) -> str | None:
        if not self.options.lint:
            ingest.clear_findings(catalogue)
            return None
        self.report(BuildProgress("lint", "asking linters"))
        linters = Linters.discover(self.root, run_repository_code=self.options.repository_code)
        previous_hash = self.inputs.meta.get("lint_mark")
        linters_hash, warnings = ingest.add_findings(catalogue, self.root, linters, touched, previous_hash)
        self.warnings += warnings
        return linters_hash

    def _count_files(self, ingested: IngestedFiles, meta: dict[str, Any]) -> FileTotals:
        changed_paths = set(self.survey.changed_paths)
        changed = sum(path in changed_paths for path in ingested.indexed)
        total: int = meta["counts"]["files"]
        return FileTotals(
            total=total,
            added=len(ingested.indexed) - changed,
            changed=changed,
            removed=len(self.survey.removed) + len(changed_paths.intersection(ingested.vanished)),
            unchanged=total - len(ingested.indexed),
            skipped=sum(meta["skipped"].values()),
        )

"""Freshness of an index, determined as cheaply as possible.

A full check lists the files as a build does and compares them with the catalogue. In a long-lived
process, the next check only asks the system whether anything that the last one saw has changed: the
files, and the folders that hold them, whose times a new file changes. Changes that neither shows,
such as an ignore rule outside the repository, are found at the next full check.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field

from cleats.toolsets.code.analysis.history.head import GitHead, is_same_head, read_head
from cleats.toolsets.code.discovery.files import DiscoveredFile
from cleats.toolsets.code.index.build_inputs import IndexForm
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.catalogue_schema import UNCERTAIN_MTIME_NS
from cleats.toolsets.code.index.changes import FileSurvey, describe_lint
from cleats.toolsets.code.index.generations import GenerationLease, GenerationStore
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.index.progress import BuildReport

FULL_CHECK_SECONDS: Final = 60.0
"""Seconds after which a check is a full one again."""


class Freshness(NamedTuple):
    """The differences between an index and its files."""

    generation: str
    added: int = 0
    changed: int = 0
    removed: int = 0
    head_moved: bool = False
    """Another commit or branch is checked out."""
    outgrown: bool = False
    """This version, or these settings, would read the files in another way."""
    git: str = ""
    """The change of the git state, in words."""

    @property
    def is_stale(self) -> bool:
        """True if an update would find anything to do."""
        return self != Freshness(self.generation)

    def __str__(self) -> str:
        counts = ((self.added, "new"), (self.changed, "changed"), (self.removed, "removed"))
        counted = [f"{count:,} {word}" for count, word in counts if count]
        reasons = [f"{', '.join(counted)} file(s)"] if counted else []
        reasons += [self.git] if self.git else []
        reasons += ["it was built by another version of Cleats or with other settings"] * self.outgrown
        return "; ".join(reasons) or "up to date"


def check_generation(
    root: Path, lease: GenerationLease, options: BuildOptions
) -> tuple[Freshness, "FreshnessSnapshot"]:
    """Compare a generation with its files, in full."""
    started_ns = time.time_ns()
    with IndexCatalogue.open(lease.catalogue_path) as catalogue:
        meta, known_files = catalogue.read_meta(), catalogue.read_known_files()
    survey = FileSurvey.from_folder(root, known_files, options)
    # The modes and vectors of an index are its builder's choice; only its form can be outgrown.
    form_options = msgspec.structs.replace(options, modes=(), vectors=None)
    same_sources = meta["git"] == options.git and meta["lint"] == describe_lint(options)
    fresh = Freshness(
        generation=lease.name,
        added=len(survey.comparison.added),
        changed=len(survey.changed_paths),
        removed=len(survey.comparison.removed),
        head_moved=options.git and not is_same_head(meta["head"], survey.head),
        git=_describe_head_change(meta["head"], survey.head) if options.git else "",
        outgrown=not (same_sources and IndexForm.from_options(form_options, meta).matches_meta(meta)),
    )
    return fresh, FreshnessSnapshot.from_survey(root, survey, started_ns)


def _describe_head_change(before: GitHead | None, after: GitHead | None) -> str:
    if before == after:
        return ""
    if before is None or after is None:
        return "it is under git now" if after else "it is no longer under git"
    if before[0] != after[0]:
        return "another commit is checked out"
    if before[1] != after[1]:
        return "another branch is checked out"
    # A shallow clone that reaches further back than it did, or less far.
    return "git has another part of the history"


class FreshnessSnapshot(Struct, frozen=True):
    """The state of a folder that a full check saw."""

    files: list[DiscoveredFile]
    head: GitHead | None
    """None where git does not count."""
    folders: dict[str, int]
    """The modification time of each folder; `UNCERTAIN_MTIME_NS` if it changed during the check."""
    taken_at: float = field(default_factory=time.monotonic)

    @classmethod
    def from_survey(cls, root: Path, survey: FileSurvey, started_ns: int) -> "FreshnessSnapshot":
        """Take a snapshot of a survey that started at a time, in nanoseconds."""
        paths = _collect_folders(root, survey.discovery.files).union(survey.watched_folders)
        folders = {folder: _read_mtime(folder) for folder in paths}
        mtimes = {
            folder: mtime_ns if mtime_ns < started_ns else UNCERTAIN_MTIME_NS for folder, mtime_ns in folders.items()
        }
        return cls(survey.discovery.files, survey.head, mtimes)

    def is_valid(self, root: Path) -> bool:
        """Return whether nothing has changed, and the snapshot is recent."""
        return time.monotonic() - self.taken_at < FULL_CHECK_SECONDS and not self.has_changed(root)

    def has_changed(self, root: Path) -> bool:
        """Return whether anything in the snapshot has changed."""
        return (
            (self.head is not None and read_head(root) != self.head)
            or any(_read_mtime(folder) != mtime_ns for folder, mtime_ns in self.folders.items())
            or not all(_is_unchanged(file) for file in self.files)
        )


class FreshnessChecker:
    """Checks the freshness of one repository's index."""

    def __init__(self, root: Path, store: GenerationStore, options: BuildOptions) -> None:
        self._root, self._store, self._options = root, store, options
        self._last: tuple[Freshness, FreshnessSnapshot] | None = None

    def check(self) -> Freshness | None:
        """Compare the index with its files; return None when there is no index. Blocks."""
        lease = self._store.lease_current()
        if lease is None:
            return None
        with lease:
            last = self._last
            if last is None or last[0].generation != lease.name or not last[1].is_valid(self._root):
                last = self._last = check_generation(self._root, lease, self._options.for_repository(self._root))
            return last[0]

    def _is_known_stale(self) -> bool:
        """Return whether the last check proves staleness; a builder checks in full anyway."""
        if self._last is None or self._last[0].generation != self._store.read_current_name():
            return False
        fresh, snapshot = self._last
        return UNCERTAIN_MTIME_NS not in snapshot.folders.values() and (
            fresh.is_stale or snapshot.has_changed(self._root)
        )

    def report_if_unchanged(self, options: BuildOptions) -> BuildReport | None:
        """Return the report of a build with these options if it would change nothing."""
        if self._is_known_stale():
            return None
        fresh = self.check()
        lease = self._store.lease_current()
        if fresh is None or fresh.is_stale or lease is None:
            return None
        with lease, IndexCatalogue.open(lease.catalogue_path) as catalogue:
            meta = catalogue.read_meta()
        sqlite = options.sqlite if options.sqlite is not None else meta["sqlite"]
        if sqlite != meta["sqlite"] or not IndexForm.from_options(
            options.for_repository(self._root), meta
        ).matches_meta(meta):
            return None
        return BuildReport.from_unchanged(meta, lease.name)


def _collect_folders(root: Path, files: Iterable[DiscoveredFile]) -> set[str]:
    """Return the folders with files in them, and their parents up to the root."""
    top = os.fspath(root)
    folders = {top}
    for file in files:
        folder = os.path.dirname(file.fs_path)  # noqa: PTH120 - a Path for every file is dear
        while folder not in folders and len(folder) > len(top):
            folders.add(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120
    return folders


def _read_mtime(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - a Path for every file is dear
    except OSError:
        return 0


def _is_unchanged(file: DiscoveredFile) -> bool:
    try:
        status = os.lstat(file.fs_path)
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns)

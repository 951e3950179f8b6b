"""Freshness of an index, determined as cheaply as possible.

A full check lists the files as a build does and compares them with the catalogue. In a long-lived
process, the next check only asks the system whether anything that the last one saw has changed: the
files, and the folders that hold them, whose times a new file changes. Where the system reports changes
of folders by itself, even that is asked only after a report. Changes that neither shows, such as an
ignore rule outside the repository, are found at the next full check.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import anyio
import msgspec
from msgspec import Struct

from cleats.system.processes import blocking
from cleats.system.processes.command import GRACE_SECONDS
from cleats.system.processes.shared_runs import SharedRuns
from cleats.toolsets.code.analysis.history.head import GitHead, is_same_head
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.catalogue_schema import UNCERTAIN_MTIME_NS
from cleats.toolsets.code.index.changes import FileSurvey, IndexForm, describe_lint
from cleats.toolsets.code.index.freshness_snapshot import FreshnessSnapshot, SnapshotWatch
from cleats.toolsets.code.index.generations import GenerationLease, GenerationStore
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.index.progress import BuildReport
from cleats.toolsets.code.repository import Repository

log = logging.getLogger(__name__)


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
    uncounted: bool = False
    """Files were written since the last check, and the next one is not done."""

    @property
    def is_stale(self) -> bool:
        """True if an update would find anything to do."""
        return self != Freshness(self.generation)

    def __str__(self) -> str:
        counts = ((self.added, "new"), (self.changed, "changed"), (self.removed, "removed"))
        counted = [f"{count:,} {word}" for count, word in counts if count]
        reasons = [f"{', '.join(counted)} file(s)"] if counted else []
        reasons += [self.git] if self.git else []
        reasons += ["files were written since it was last checked"] * self.uncounted
        reasons += ["it was built by another version of Cleats or with other settings"] * self.outgrown
        return "; ".join(reasons) or "up to date"


def check_generation(root: Path, lease: GenerationLease, options: BuildOptions) -> tuple[Freshness, FreshnessSnapshot]:
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
        added=len(survey.added),
        changed=len(survey.changed),
        removed=len(survey.removed),
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


class FreshnessChecker:
    """Checks the freshness of one repository's index."""

    def __init__(self, root: Path, store: GenerationStore, options: BuildOptions) -> None:
        self._root, self._store, self._options = root, store, options
        self._last: tuple[Freshness, SnapshotWatch] | None = None

    def check(self) -> Freshness | None:
        """Compare the index with its files; return None when there is no index. Blocks."""
        lease = self._store.lease_current()
        if lease is None:
            return None
        with lease:
            last = self._last
            if last is None or last[0].generation != lease.name or not self._is_valid(last[1]):
                fresh, snapshot = check_generation(self._root, lease, self._options.for_repository(self._root))
                last = self._last = fresh, SnapshotWatch(snapshot)
            return last[0]

    def _is_valid(self, watch: SnapshotWatch) -> bool:
        return watch.snapshot.is_recent and not watch.has_changed(self._root)

    def has_changed(self) -> bool | None:
        """Return whether anything has changed since the last check; None if that says too little. Blocks briefly."""
        last = self._last
        if last is None or last[0].generation != self._store.read_current_name():
            return None
        is_uncertain = UNCERTAIN_MTIME_NS in last[1].snapshot.folders.values()
        return None if is_uncertain else last[1].has_changed(self._root)

    def report_if_unchanged(self, options: BuildOptions) -> BuildReport | None:
        """Return the report of a build with these options if it would change nothing."""
        if self.has_changed():
            return None  # a builder checks in full anyway
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


FRESHNESS_CACHE_SECONDS: Final = 2.0
"""Seconds for which the result of a freshness check is reused."""

MAX_CHECK_SECONDS: Final = 60.0
"""Seconds after which a check is given up: git lists a million files on a cold disk in fewer."""

MAX_WATCHED_REPOSITORIES: Final = 16
"""Repositories that are remembered; one costs about a kilobyte for each of its files."""


class FreshnessWatch:
    """The freshness of the indexes of repositories, checked in threads and shared by callers.

    A check ends with the last call that waits for it. One that nobody waits for any more, because
    an answer did not wait to its end, belongs to the server and ends after `MAX_CHECK_SECONDS`, or
    with the server.
    """

    def __init__(
        self,
        options: BuildOptions,
        open_store: Callable[[Repository], GenerationStore],
        update_records: Callable[[Repository], object],
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._options, self._open_store, self._update_records = options, open_store, update_records
        self._grace = grace
        self._watchers: dict[str, _FreshnessWatcher] = {}
        self._checks: set[_RunningCheck] = set()

    def get_checker(self, repository: Repository) -> FreshnessChecker:
        """Return the checker of a repository, which remembers its last check."""
        return self._get_watcher(repository).checker

    async def check(
        self, repository: Repository, current: str | None, max_wait: float | None = None
    ) -> Freshness | None:
        """Compare the current generation with its files; return None when there is no index.

        A result that is not older than `FRESHNESS_CACHE_SECONDS` is returned again unless a file was written since.
        With `max_wait`, the new check has that many seconds; if it is not done by then, the answer is the result of
        the last one and whether files were written since, or None when that saw another generation.
        """
        watcher = self._get_watcher(repository)
        if watcher.generation != current:
            watcher.valid_until = 0.0
        has_changed = await watcher.changes.run()
        if has_changed is False and time.monotonic() < watcher.valid_until:
            return watcher.freshness
        if watcher.running is None or watcher.running.is_over:
            watcher.running = _RunningCheck(watcher, self._grace)
            self._checks = {check for check in self._checks if not check.task.done()} | {watcher.running}
        is_done = await watcher.running.wait(max_wait)
        if is_done:
            return watcher.freshness
        if watcher.generation != current or watcher.freshness is None:
            return None  # the check before a build says nothing about the new index
        return watcher.freshness._replace(uncounted=bool(has_changed))

    async def wait_for_checks(self) -> None:
        """Wait until no check is running here, and stop those without a caller: a check holds its index."""
        for check in list(self._checks):
            if not check.waiting:
                check.cancel()
        if self._checks:
            await asyncio.wait([check.task for check in self._checks])
        while any(watcher.threads for watcher in self._watchers.values()):  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.01)

    def stop(self) -> None:
        """Stop all checks, when the server ends."""
        for check in list(self._checks):
            check.cancel()

    def _get_watcher(self, repository: Repository) -> "_FreshnessWatcher":
        watcher = self._watchers.pop(repository.id, None)
        if watcher is None:
            checker = FreshnessChecker(repository.root, self._open_store(repository), self._options)
            changes = SharedRuns(checker.has_changed, self._grace)
            watcher = _FreshnessWatcher(checker, changes, lambda: self._update_records(repository))
            if len(self._watchers) >= MAX_WATCHED_REPOSITORIES:
                del self._watchers[next(iter(self._watchers))]
        self._watchers[repository.id] = watcher  # at the end: the first is the longest unused
        return watcher


class _FreshnessWatcher(Struct):
    checker: FreshnessChecker
    changes: SharedRuns[bool | None]
    update_records: Callable[[], object]
    freshness: Freshness | None = None
    generation: str | None = None
    valid_until: float = 0.0
    running: "_RunningCheck | None" = None
    threads: int = 0
    """Threads that are checking now; one whose check was cancelled is on its way out."""

    async def refresh(self, grace: float) -> None:
        with anyio.move_on_after(MAX_CHECK_SECONDS) as limit:
            self.freshness = await blocking.run_in_thread(self._check, grace=grace)
            self.generation = self.freshness.generation if self.freshness else None
            self.valid_until = time.monotonic() + FRESHNESS_CACHE_SECONDS
        if limit.cancelled_caught:
            log.warning("freshness.timeout seconds=%g", MAX_CHECK_SECONDS)

    def _check(self) -> Freshness | None:
        self.threads += 1
        try:
            self.update_records()
            return self.checker.check()
        finally:
            self.threads -= 1


class _RunningCheck:
    def __init__(self, watcher: _FreshnessWatcher, grace: float) -> None:
        self.task = asyncio.create_task(watcher.refresh(grace))
        self.waiting = 0
        self._is_cancelled = False

    @property
    def is_over(self) -> bool:
        return self._is_cancelled or self.task.done()

    async def wait(self, seconds: float | None) -> bool:
        """Wait for the check, at most so long; return whether it is done. Cancelling the last wait cancels it.

        Raises:
            OSError: it failed, as everything that it raised.
        """
        self.waiting += 1
        try:
            await asyncio.wait({self.task}, timeout=seconds)
        except asyncio.CancelledError:
            if self.waiting == 1:
                self.cancel()
            raise
        finally:
            self.waiting -= 1
        if not self.task.done() or self.task.cancelled():
            return False
        self.task.result()
        return True

    def cancel(self) -> None:
        self._is_cancelled = True  # the next caller starts another
        self.task.cancel()

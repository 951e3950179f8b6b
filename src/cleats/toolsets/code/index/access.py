"""Access to the indexes of this machine for the tools and the commands.

Imported when a server starts, so modules that open an index are imported when they are first
needed.
"""

import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.code.index.generations import GenerationLease, GenerationStore
from cleats.toolsets.code.index.options import BuildOptions, options_from_settings
from cleats.toolsets.code.index.progress import BuildProgress, BuildReport
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    import asyncio

    from cleats.toolsets.code.index.freshness import Freshness, FreshnessChecker
    from cleats.toolsets.code.sharing.opensearch.federation import RemoteIndexGroup
    from cleats.toolsets.code.sharing.opensearch.remote_index import RemoteIndex
    from cleats.toolsets.code.sharing.shared_index import SharedIndex
    from cleats.toolsets.code.triage.postgres_records import RecordDatabase
    from cleats.toolsets.code.triage.record_store import RecordStore
    from cleats.toolsets.code.workspace import Workspace


FRESHNESS_CACHE_SECONDS: Final = 2.0
"""Seconds for which the result of a freshness check is reused."""

MAX_WATCHED_REPOSITORIES: Final = 16
"""Repositories that are remembered; one costs about a kilobyte for each of its files."""


class Indexes:
    """The index of each repository: its location, its freshness, and how to build it."""

    def __init__(self, settings: Settings) -> None:
        self.options: BuildOptions = options_from_settings(settings)
        self.grace: float = settings.grace
        self._settings = settings
        self._watchers: dict[str, _FreshnessWatcher] = {}

    def find_repository(self, path: str | None) -> Repository:
        """Return the repository that a caller means.

        Raises:
            ToolError: INVALID_REQUEST, there is no such folder.
        """
        return Repository.from_path(path, self._settings.project_dir, self._has_index)

    def read_workspace(self, path: str, within: str | None = None) -> "Workspace":
        """Read the repositories that a workspace file names.

        Args:
            path: The workspace file.
            within: A repository that must contain the file, if given.

        Raises:
            ToolError: the file does not exist, is not a workspace, or is outside the repository.
        """
        from cleats.toolsets.code.workspace import Workspace  # noqa: PLC0415 - few have one

        cache = self._settings.cache_dir
        if within is None:
            return Workspace.read(path, self._settings.project_dir, cache)
        root = self.find_repository(within).root
        return Workspace.read(path, root, cache, within=root)

    @cached_property
    def shared_index(self) -> "SharedIndex | None":
        """The index that is shared with other machines; None when there is none."""
        if not self._settings.index_url:
            return None
        from cleats.toolsets.code.sharing.shared_index import open_shared_index  # noqa: PLC0415 - few have one

        return open_shared_index(self._settings, self.find_repository(None))

    @cached_property
    def remote_index(self) -> "RemoteIndex | RemoteIndexGroup | None":
        """The index in OpenSearch, or several of them; None when there is none."""
        if not self._settings.opensearch_url:
            return None
        from cleats.toolsets.code.sharing.opensearch.remote_index import open_remote_index  # noqa: PLC0415 - few have one

        return open_remote_index(self._settings, self.find_repository(None))

    def _find_remote_reader(self, repository: Repository) -> "SharedIndex | RemoteIndex | RemoteIndexGroup | None":
        """Return the index that another machine builds, if this one only reads it."""
        readers = (self.shared_index, self.remote_index)
        return next((reader for reader in readers if reader is not None and reader.is_read_only_for(repository)), None)

    @cached_property
    def _record_database(self) -> "RecordDatabase | None":
        if not self._settings.database_url:
            return None
        from cleats.toolsets.code.triage.postgres_records import RecordDatabase  # noqa: PLC0415 - few have any

        return RecordDatabase(self._settings.database_url)

    def open_records(self, repository: Repository) -> "RecordStore":
        """Return the record store of a repository: a folder, or the database of a fleet."""
        from cleats.toolsets.code.triage.archive import RecordArchive  # noqa: PLC0415 - a server starts

        archive = RecordArchive.from_repository(Path(self.options.records), repository)
        if self._record_database is None:
            return archive
        from cleats.toolsets.code.triage.postgres_records import DatabaseRecordStore  # noqa: PLC0415 - as above

        is_default = repository == self.find_repository(None)
        name = repository.shared_name(self._settings.index_name if is_default else "")
        return DatabaseRecordStore(self._record_database, name, archive)

    def find_remote_builder(self, repository: Repository) -> str:
        """Return the name of the shared index that another machine builds; empty if none.

        That machine must see the same records as this one.

        Raises:
            ToolError: FORBIDDEN, another machine builds it, and never sees the records of this one.
        """
        reader = self._find_remote_reader(repository)
        if reader is None:
            return ""
        if self._record_database is None:
            reader.reject_build(repository)
        return reader.name

    def update_records(self, repository: Repository) -> str:
        """Update the records that an index is built from; return a warning if they may be outdated.

        Blocks. Records that were there before stay available.
        """
        try:
            self.open_records(repository).refresh()
        except ToolError as error:
            import logging  # noqa: PLC0415 - there is hardly ever anything to say

            log = logging.getLogger(__name__)
            log.warning("records.late repo=%s error=%s", repository.id, error.message)
            return f"Records may be missing. {error.message}"
        return ""

    async def wait_until_ready(self, repository: Repository) -> None:
        """Wait for what a first search needs: a shared index may have to be fetched.

        Raises:
            ToolError: NO_INDEX, there is none to fetch.
        """
        if self.shared_index is not None and self.shared_index.is_index_of(repository):
            await self.shared_index.ensure_available(self.open_store(repository))

    async def check_reachable(self) -> None:
        """Check that the remote stores that searches and records need can be reached.

        Raises:
            OSError: one of them cannot.
        """
        if self._settings.database_url:
            from cleats.system import postgres  # noqa: PLC0415 - few have one

            await postgres.check_database(self._settings.database_url)
        if self.remote_index is not None and self.remote_index.is_read_only_for(self.find_repository(None)):
            await self.remote_index.check_reachable()

    def open_store(self, repository: Repository) -> GenerationStore:
        """Return the generation store of a repository."""
        return GenerationStore(self._settings.cache_dir, repository)

    def _has_index(self, repository: Repository) -> bool:
        return self.open_store(repository).read_current_name() is not None

    def lease_index(self, repository: Repository) -> GenerationLease:
        """Lease the index of a repository; the caller closes the lease.

        Raises:
            ToolError: NO_INDEX, there is none that this version can read.
        """
        store = self.open_store(repository)
        lease = store.lease_current()
        if lease is not None:
            return lease
        version_note = " that this version can read" if store.is_outdated() else ""
        parents = (Repository(folder) for folder in repository.root.parents)
        parent_note = next((f", but {parent.root} has one" for parent in parents if self._has_index(parent)), "")
        raise ToolError(
            ErrorCode.NO_INDEX,
            f"{repository.root} has no index{version_note}{parent_note}.",
            hint="Call build_index, or run `cleats index`, in it first.",
        )

    async def check_freshness(self, repository: Repository, *, max_wait: float | None = None) -> "Freshness | None":
        """Compare an index with its files; return None when there is no index.

        A result that is not older than `FRESHNESS_CACHE_SECONDS` is returned again. With `max_wait`,
        the answer comes after that many seconds at most; if the new check is not done by then, it
        is the result of the last one, or None when that saw another generation.
        """
        import asyncio  # noqa: PLC0415 - `cleats index` needs none

        if self._find_remote_reader(repository) is not None:
            return None  # the indexed files are on the other machine
        watcher = self._get_watcher(repository)
        current = self.open_store(repository).read_current_name()
        if watcher.generation != current:
            watcher.valid_until = 0.0
        if time.monotonic() < watcher.valid_until:
            return watcher.freshness
        if watcher.task is None or watcher.task.done():
            watcher.task = asyncio.create_task(watcher.refresh())
        await asyncio.wait({watcher.task}, timeout=max_wait)
        if watcher.task.done():
            watcher.task.result()
        elif watcher.generation != current:
            return None  # the check before a build says nothing about the new index
        return watcher.freshness

    async def wait_for_checks(self) -> None:
        """Wait until no freshness check is running here: a check holds its index."""
        import asyncio  # noqa: PLC0415

        checks = [watcher.task for watcher in self._watchers.values() if watcher.task is not None]
        if checks:
            await asyncio.wait(checks)

    def _get_watcher(self, repository: Repository) -> "_FreshnessWatcher":
        watcher = self._watchers.pop(repository.id, None)
        if watcher is None:
            from cleats.toolsets.code.index.freshness import FreshnessChecker  # noqa: PLC0415

            checker = FreshnessChecker(repository.root, self.open_store(repository), self.options)
            watcher = _FreshnessWatcher(checker, lambda: self.update_records(repository))
            if len(self._watchers) >= MAX_WATCHED_REPOSITORIES:
                del self._watchers[next(iter(self._watchers))]
        self._watchers[repository.id] = watcher  # at the end: the first is the longest unused
        return watcher

    async def build_index(
        self, repository: Repository, options: BuildOptions, report: Callable[[BuildProgress], None]
    ) -> BuildReport:
        """Build in another process, unless a freshness check shows that there is nothing to do.

        Raises:
            ToolError: the build failed; the last index is unchanged.
        """
        if (reader := self._find_remote_reader(repository)) is not None:
            reader.reject_build(repository)
        records_warning = await self._update_records_in_thread(repository)
        built = await self._run_build(repository, options, report)
        store, sharing_warning, publishing_warning = self.open_store(repository), "", ""
        if self.shared_index is not None and self.shared_index.is_index_of(repository):
            sharing_warning = await self.shared_index.publish(store)
        if self.remote_index is not None and self.remote_index.is_index_of(repository):
            publishing_warning = await self.remote_index.publish(store, report)
        warnings = [warning for warning in (records_warning, sharing_warning, publishing_warning) if warning]
        if not warnings:
            return built
        import msgspec  # noqa: PLC0415 - as above

        return msgspec.structs.replace(built, warnings=[*built.warnings, *warnings])

    async def _update_records_in_thread(self, repository: Repository) -> str:
        if self._record_database is None:
            return ""
        from anyio import to_thread  # noqa: PLC0415

        return await to_thread.run_sync(self.update_records, repository, abandon_on_cancel=True)

    async def _run_build(
        self, repository: Repository, options: BuildOptions, report: Callable[[BuildProgress], None]
    ) -> BuildReport:
        from anyio import to_thread  # noqa: PLC0415

        if options.incremental and not options.artifacts:
            checker = self._get_watcher(repository).checker
            unchanged = await to_thread.run_sync(checker.report_if_unchanged, options, abandon_on_cancel=True)
            if unchanged is not None:
                return unchanged
        from cleats.toolsets.code.index import build_process  # noqa: PLC0415

        request = build_process.BuildRequest(str(repository.root), str(self._settings.cache_dir), options)
        return await build_process.run_build(request, report, self.grace)


class _FreshnessWatcher(Struct):
    checker: "FreshnessChecker"
    update_records: Callable[[], object]
    freshness: "Freshness | None" = None
    generation: str | None = None
    valid_until: float = 0.0
    task: "asyncio.Task[None] | None" = None

    async def refresh(self) -> None:
        from anyio import to_thread  # noqa: PLC0415

        self.freshness = await to_thread.run_sync(self._check, abandon_on_cancel=True)
        self.generation = self.freshness.generation if self.freshness else None
        self.valid_until = time.monotonic() + FRESHNESS_CACHE_SECONDS

    def _check(self) -> "Freshness | None":
        self.update_records()
        return self.checker.check()

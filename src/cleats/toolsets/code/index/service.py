"""The local indexes of this machine, for the tools and the commands.

Imported when a server starts, so modules that open an index are imported when they are first
needed.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.code.index.generations import GenerationLease, GenerationStore
from cleats.toolsets.code.index.options import BuildOptions, BuildRequest, options_from_settings
from cleats.toolsets.code.index.progress import BuildProgress, BuildReport
from cleats.toolsets.code.index.remote import RemoteIndexPort
from cleats.toolsets.code.records.store_selection import RecordStores
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.index.freshness import Freshness
    from cleats.toolsets.code.index.freshness_watch import FreshnessWatch
    from cleats.toolsets.code.workspace import Workspace

BUILDER_MODULE = "cleats.toolsets.code.index"


class Indexes:
    """The index of each repository: its location, its freshness, and how to build it."""

    def __init__(self, settings: Settings, open_remotes: Callable[[], Sequence[RemoteIndexPort]]) -> None:
        """Use the folders and options of the settings.

        Args:
            settings: The settings of this machine.
            open_remotes: Opens the indexes elsewhere, when one is first asked for.
        """
        self.options: BuildOptions = options_from_settings(settings)
        self.grace: float = settings.grace
        self.records = RecordStores(settings, Path(self.options.records))
        self._settings = settings
        self._open_remotes = open_remotes

    @cached_property
    def remotes(self) -> Sequence[RemoteIndexPort]:
        """The indexes elsewhere that the settings name.

        Raises:
            SettingError: a setting is wrong.
        """
        return self._open_remotes()

    @cached_property
    def _watch(self) -> "FreshnessWatch":
        from cleats.toolsets.code.index.freshness_watch import FreshnessWatch  # noqa: PLC0415 - `cleats index` needs none

        return FreshnessWatch(self.options, self.open_store, self.records.update)

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

    def find_remote_reader(self, repository: Repository) -> RemoteIndexPort | None:
        """Return the index that another machine builds, if this one only reads it."""
        return next((remote for remote in self.remotes if remote.is_read_only_for(repository)), None)

    def find_remote_builder(self, repository: Repository) -> str:
        """Return the name of the shared index that another machine builds; empty if none.

        That machine must see the same records as this one.

        Raises:
            ToolError: FORBIDDEN, another machine builds it, and never sees the records of this one.
        """
        reader = self.find_remote_reader(repository)
        if reader is None:
            return ""
        if not self.records.are_shared:
            reader.reject_build(repository)
        return reader.name

    async def wait_until_ready(self, repository: Repository) -> None:
        """Wait for what a first search needs: a shared index may have to be fetched.

        Raises:
            ToolError: NO_INDEX, there is none to fetch.
        """
        for remote in self.remotes:
            if remote.is_index_of(repository):
                await remote.ensure_available(self.open_store(repository))

    async def check_reachable(self) -> None:
        """Check that the remote stores that searches and records need can be reached.

        Raises:
            OSError: one of them cannot.
        """
        await self.records.check_reachable()
        for remote in self.remotes:
            if remote.is_read_only_for(self.find_repository(None)):
                await remote.check_reachable()

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
        """Compare an index with its files, see `FreshnessWatch`; return None when there is no index."""
        if self.find_remote_reader(repository) is not None:
            return None  # the indexed files are on the other machine
        return await self._watch.check(repository, self.open_store(repository).read_current_name(), max_wait)

    async def wait_for_checks(self) -> None:
        """Wait until no freshness check is running here: a check holds its index."""
        await self._watch.wait_for_checks()

    async def build_index(
        self, repository: Repository, options: BuildOptions, report: Callable[[BuildProgress], None]
    ) -> BuildReport:
        """Build in another process, unless a freshness check shows that there is nothing to do.

        Raises:
            ToolError: the build failed, or the builder died; the last index is unchanged.
        """
        if (reader := self.find_remote_reader(repository)) is not None:
            reader.reject_build(repository)
        records_warning = await self.records.update_in_thread(repository)
        built = await self._run_build(repository, options, report)
        store = self.open_store(repository)
        owners = [remote for remote in self.remotes if remote.is_index_of(repository)]
        warnings = [records_warning, *[await remote.publish(store, report) for remote in owners]]
        return msgspec.structs.replace(built, warnings=[*built.warnings, *filter(None, warnings)])

    async def _run_build(
        self, repository: Repository, options: BuildOptions, report: Callable[[BuildProgress], None]
    ) -> BuildReport:
        from anyio import to_thread  # noqa: PLC0415 - `cleats index` needs neither

        from cleats.system import worker_process  # noqa: PLC0415

        if options.incremental and not options.artifacts:
            checker = self._watch.get_checker(repository)
            unchanged = await to_thread.run_sync(checker.report_if_unchanged, options, abandon_on_cancel=True)
            if unchanged is not None:
                return unchanged
        request = BuildRequest(str(repository.root), str(self._settings.cache_dir), options)
        return await worker_process.send_task(
            BUILDER_MODULE, request, BuildReport, BuildProgress, report, "builder", self.grace
        )

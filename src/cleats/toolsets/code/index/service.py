"""The local indexes of this machine, for the tools and the commands.

Imported when a server starts, so modules that open an index are imported when they are first
needed.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.code.index.generations import GenerationLease, GenerationStore
from cleats.toolsets.code.index.options import BuildOptions, BuildRequest, options_from_settings
from cleats.toolsets.code.index.progress import BuildProgress, BuildReport
from cleats.toolsets.code.records.store_selection import RecordStores
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.index.freshness import Freshness, FreshnessWatch
    from cleats.toolsets.code.workspace import Workspace


class RemoteIndexPort:
    """The index of one repository in shared storage or in a search cluster, built here or on another machine.

    `composition` makes the ones that the settings name.
    """

    name: str
    """The name of the index, the same on every machine."""
    publishes: bool
    """Whether this server builds it, also for others."""
    root: Path
    """The repository of the index, on this machine."""

    @property
    @abstractmethod
    def reader_activity(self) -> str:
        """The activity of a server that does not build the index, as a verb phrase."""

    @abstractmethod
    async def publish(self, store: GenerationStore, on_progress: Callable[[BuildProgress], None]) -> str:
        """Publish the current generation; return an error text, or an empty string on success."""

    def is_index_of(self, repository: Repository) -> bool:
        return repository.root == self.root

    def is_read_only_for(self, repository: Repository) -> bool:
        """Return whether this is the index of the repository, and another machine builds it."""
        return self.is_index_of(repository) and not self.publishes

    def reject_build(self, repository: Repository) -> None:
        """Reject the build of an index that another machine builds.

        Raises:
            ToolError: FORBIDDEN.
        """
        if self.is_read_only_for(repository):
            raise ToolError(
                ErrorCode.FORBIDDEN,
                f"This server {self.reader_activity}; another machine builds it.",
                hint="Run `cleats worker` where the repository is, or set CLEATS_INDEX_SHARE to "
                "publish on the machine that builds.",
            )

    async def ensure_available(self, store: GenerationStore) -> None:
        """Wait for the generation that a first search needs, if it has to be fetched.

        Raises:
            ToolError: NO_INDEX, there is none to fetch.
        """

    async def follow(self, store: GenerationStore) -> None:
        """Fetch every generation that is published, until cancelled, if it has to be fetched."""

    async def check_reachable(self) -> None:
        """Check that what searches need can be reached; a server keeps serving what it has fetched.

        Raises:
            OSError: it cannot.
        """


MAX_SUGGESTED_REPOSITORIES = 5
"""Repositories with an index that are named when the one that was asked for has none."""
BUILDER_MODULE = "cleats.toolsets.code.index"


class Indexes:
    """The index of each repository: its location, its freshness, and how to build it."""

    def __init__(self, settings: Settings, open_remotes: Callable[[], Sequence[RemoteIndexPort]]) -> None:
        """Use the folders and options of the settings; `open_remotes` opens the indexes elsewhere when needed."""
        self.options: BuildOptions = options_from_settings(settings)
        self.grace: float = settings.grace
        self.records = RecordStores(settings, Path(self.options.records))
        self._settings = settings
        self._default_folder = settings.project_dir
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
        from cleats.toolsets.code.index.freshness import FreshnessWatch  # noqa: PLC0415 - `cleats index` needs none

        return FreshnessWatch(self.options, self.open_store, self.records.update, self.grace)

    def find_repository(self, path: str | None) -> Repository:
        """Return the repository that a caller means.

        Raises:
            ToolError: INVALID_REQUEST, there is no such folder.
        """
        return Repository.from_path(path, self._default_folder, self._has_index)

    def find_suitable_repository(self, path: str | None, argument: str) -> Repository:
        """Return the repository that a caller means with an argument, to be read as a whole.

        Raises:
            ToolError: INVALID_REQUEST, there is no such folder, or it is no repository and too large.
        """
        repository = self.find_repository(path)
        try:
            repository.reject_unsuitable_root()
        except ToolError as error:
            hint = f"Give the folder of a project as {argument}.{self._suggest_repositories(argument)} {error.hint}"
            raise ToolError(error.code, error.message, hint=hint) from None
        return repository

    @property
    def roots_callback(self) -> Callable[[Sequence[Path]], None] | None:
        """The callback for the folders of a client; None if there is a repository or it was configured."""
        with suppress(ToolError, OSError):
            repository = self.find_repository(None)
            if self._default_folder == Path.cwd() and not repository.is_marked and not self._has_index(repository):
                return self._use_first_root
        return None

    def _use_first_root(self, folders: Sequence[Path]) -> None:
        """Use the first repository among some folders, else the first folder, for calls that name none."""
        existing = [folder for folder in folders if folder.is_dir()]
        marked = [folder for folder in existing if Repository.from_path(None, folder).is_marked]
        self._default_folder = next(iter([*marked, *existing]), self._settings.project_dir)

    def read_workspace(self, path: str, within: str | None = None) -> "Workspace":
        """Read the repositories that a workspace file names, which must be within a repository if one is given.

        Raises:
            ToolError: the file does not exist, is not a workspace, or is outside the repository.
        """
        from cleats.toolsets.code.workspace import Workspace  # noqa: PLC0415 - few have one

        cache = self._settings.cache_dir
        if within is None:
            return Workspace.read(path, self._default_folder, cache)
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
            hint="Call build_index or run `cleats index` there first, or give another repository as repoPath."
            f"{self._suggest_repositories('repoPath')}",
        )

    def _suggest_repositories(self, argument: str) -> str:
        """Return a sentence with the repositories that have an index, the most recent first; empty if none has."""
        from cleats.toolsets.code.index.cache import list_indexes  # noqa: PLC0415 - only errors need it

        indexes = reversed(list_indexes(self._settings.cache_dir))
        roots = [index.root for index in indexes if index.generation is not None]
        names = [str(root) for root in roots if root is not None and root.is_dir()][:MAX_SUGGESTED_REPOSITORIES]
        return f" These have an index, for {argument}: {', '.join(names)}." if names else ""

    async def check_freshness(self, repository: Repository, *, max_wait: float | None = None) -> "Freshness | None":
        """Compare an index with its files, see `FreshnessWatch`; return None when there is no index."""
        if self.find_remote_reader(repository) is not None:
            return None  # the indexed files are on the other machine
        return await self._watch.check(repository, self.open_store(repository).read_current_name(), max_wait)

    async def wait_for_checks(self) -> None:
        """Wait until no freshness check is running here: a check holds its index."""
        await self._watch.wait_for_checks()

    def stop_checks(self) -> None:
        """Stop all freshness checks, when the server ends."""
        if "_watch" in self.__dict__:  # else none was ever made
            self._watch.stop()

    async def build_index(
        self,
        repository: Repository,
        options: BuildOptions,
        report: Callable[[BuildProgress], None],
        *,
        in_background: bool = False,
    ) -> BuildReport:
        """Build in another process, unless a freshness check shows that there is nothing to do.

        A build in the background leaves the processor to everything else.

        Raises:
            ToolError: the build failed, or the builder died; the last index is unchanged.
        """
        if (reader := self.find_remote_reader(repository)) is not None:
            reader.reject_build(repository)
        records_warning = await self.records.update_in_thread(repository)
        built = await self._run_build(repository, options, report, in_background=in_background)
        store = self.open_store(repository)
        owners = [remote for remote in self.remotes if remote.is_index_of(repository)]
        warnings = [records_warning, *[await remote.publish(store, report) for remote in owners]]
        return msgspec.structs.replace(built, warnings=[*built.warnings, *filter(None, warnings)])

    async def _run_build(
        self,
        repository: Repository,
        options: BuildOptions,
        report: Callable[[BuildProgress], None],
        *,
        in_background: bool,
    ) -> BuildReport:
        from cleats.system import worker_process  # noqa: PLC0415 - `cleats index` needs neither
        from cleats.system.processes import blocking  # noqa: PLC0415

        if options.incremental and not options.artifacts:
            checker = self._watch.get_checker(repository)
            unchanged = await blocking.run_in_thread(checker.report_if_unchanged, options, grace=self.grace)
            if unchanged is not None:
                return unchanged
        request = BuildRequest(str(repository.root), str(self._settings.cache_dir), options, in_background)
        return await worker_process.send_task(
            BUILDER_MODULE, request, BuildReport, BuildProgress, report, "builder", self.grace
        )

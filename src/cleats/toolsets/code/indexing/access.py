"""The indexes of this machine, as the tools and the commands reach them.

Imported when a server starts, so whatever opens an index is imported when it is first needed.
"""

import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.code.indexing.options import Options, configured
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.indexing.report import BuildReport
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.generations import Lease, Shelf

if TYPE_CHECKING:
    import asyncio

    from cleats.toolsets.code.fleet.shared import Shared
    from cleats.toolsets.code.indexing.freshness import Freshness, Lookout
    from cleats.toolsets.code.opensearch.remote import Remote
    from cleats.toolsets.code.opensearch.together import Together
    from cleats.toolsets.code.triage.books import Books
    from cleats.toolsets.code.triage.keeping import Keeper
    from cleats.toolsets.code.workspace import Workspace


RECENT: Final = 2.0
"""Seconds for which a look at the files holds."""

WATCHED: Final = 16
"""Repositories that are remembered; one costs about a kilobyte for each of its files."""


class Indexes:
    """The index of each repository: where it is, whether it is fresh, and how to make it so."""

    def __init__(self, settings: Settings) -> None:
        self.options: Options = configured(settings)
        self.grace: float = settings.grace
        self._settings = settings
        self._watched: dict[str, _Watched] = {}

    def repository(self, path: str | None) -> Repository:
        """The repository that a caller means.

        Raises:
            ToolError: INVALID_REQUEST, there is no such folder.
        """
        return Repository.at(path, self._settings.project_dir, self._indexed)

    def workspace(self, path: str, within: str | None = None) -> "Workspace":
        """The repositories that a file names; with `within`, a file of that repository.

        Raises:
            ToolError: there is no such file, it is no workspace, or it is not in there.
        """
        from cleats.toolsets.code.workspace import Workspace  # noqa: PLC0415 - few have one

        cache = self._settings.cache_dir
        if within is None:
            return Workspace.read(path, self._settings.project_dir, cache)
        root = self.repository(within).root
        return Workspace.read(path, root, cache, within=root)

    @cached_property
    def shared(self) -> "Shared | None":
        """The index that other machines have too; None when there is none."""
        if not self._settings.index_url:
            return None
        from cleats.toolsets.code.fleet.shared import shared  # noqa: PLC0415 - few have one

        return shared(self._settings, self.repository(None))

    @cached_property
    def remote(self) -> "Remote | Together | None":
        """The index that lies in an OpenSearch, or several of them; None when there is none."""
        if not self._settings.opensearch_url:
            return None
        from cleats.toolsets.code.opensearch.remote import remote  # noqa: PLC0415 - few have one

        return remote(self._settings, self.repository(None))

    def _elsewhere(self, repository: Repository) -> "Shared | Remote | Together | None":
        """What another machine builds, if this one only reads it."""
        both = (self.shared, self.remote)
        return next((each for each in both if each is not None and each.reads(repository)), None)

    @cached_property
    def _books(self) -> "Books | None":
        if not self._settings.database_url:
            return None
        from cleats.toolsets.code.triage.books import Books  # noqa: PLC0415 - few have any

        return Books(self._settings.database_url)

    def records(self, repository: Repository) -> "Keeper":
        """What keeps the records of a repository: a folder, or the database of a fleet."""
        from cleats.toolsets.code.triage.archive import Archive  # noqa: PLC0415 - a server starts

        here = Archive.of(Path(self.options.records), repository)
        if self._books is None:
            return here
        from cleats.toolsets.code.triage.books import Book  # noqa: PLC0415 - as above

        own = repository == self.repository(None)
        name = repository.shared_name(self._settings.index_name if own else "")
        return Book(self._books, name, here)

    def built_elsewhere(self, repository: Repository) -> str:
        """Which shared index another machine builds, of the records that it has too; or none.

        Raises:
            ToolError: FORBIDDEN, another machine builds it, and never sees the records of this one.
        """
        reading = self._elsewhere(repository)
        if reading is None:
            return ""
        if self._books is None:
            reading.refuse_build(repository)
        return reading.name

    def catch_up(self, repository: Repository) -> str:
        """Have the records that an index is built of; why they are not new, empty when they are.

        Blocks. Whatever was had before is still there.
        """
        try:
            self.records(repository).current()
        except ToolError as error:
            import logging  # noqa: PLC0415 - there is hardly ever anything to say

            log = logging.getLogger(__name__)
            log.warning("records.late repo=%s error=%s", repository.id, error.message)
            return f"Records may be missing. {error.message}"
        return ""

    async def ready(self, repository: Repository) -> None:
        """Wait for what a first search needs: a shared index may have to be fetched.

        Raises:
            ToolError: NO_INDEX, there is none to fetch.
        """
        if self.shared is not None and self.shared.concerns(repository):
            await self.shared.ready(self.shelf(repository))

    async def answers(self) -> None:
        """Return while the stores elsewhere that searches and records need can be reached.

        Raises:
            OSError: one of them cannot.
        """
        if self._settings.database_url:
            from cleats.runtime import postgres  # noqa: PLC0415 - few have one

            await postgres.answers(self._settings.database_url)
        if self.remote is not None and self.remote.reads(self.repository(None)):
            await self.remote.answers()

    def shelf(self, repository: Repository) -> Shelf:
        """Where the generations of a repository are."""
        return Shelf(self._settings.cache_dir, repository)

    def _indexed(self, repository: Repository) -> bool:
        return self.shelf(repository).name() is not None

    def lease(self, repository: Repository) -> Lease:
        """The index of a repository, to be closed by the caller.

        Raises:
            ToolError: NO_INDEX, there is none that this version can read.
        """
        shelf = self.shelf(repository)
        lease = shelf.current()
        if lease is not None:
            return lease
        old = " that this version can read" if shelf.outdated() else ""
        parents = (Repository(folder) for folder in repository.root.parents)
        above = next((f", but {each.root} has one" for each in parents if self._indexed(each)), "")
        raise ToolError(
            ErrorCode.NO_INDEX,
            f"{repository.root} has no index{old}{above}.",
            hint="Call build_index, or run `cleats index`, in it first.",
        )

    async def freshness(
        self, repository: Repository, *, within: float | None = None
    ) -> "Freshness | None":
        """How an index compares with its files; None when there is none.

        A look that is not older than `RECENT` is given again. With `within`, the answer comes
        after so many seconds at most; if the new look is not done it is that of the last one, or
        None when that saw another generation.
        """
        import asyncio  # noqa: PLC0415 - `cleats index` needs none

        if self._elsewhere(repository) is not None:
            return None  # the files it was made of are there too
        watched = self._watch(repository)
        current = self.shelf(repository).name()
        if watched.generation != current:
            watched.until = 0.0
        if time.monotonic() < watched.until:
            return watched.seen
        if watched.looking is None or watched.looking.done():
            watched.looking = asyncio.create_task(watched.look())
        await asyncio.wait({watched.looking}, timeout=within)
        if watched.looking.done():
            watched.looking.result()
        elif watched.generation != current:
            return None  # what an index was before a build says nothing of it now
        return watched.seen

    async def looked(self) -> None:
        """Wait until nobody here looks at an index: who looks holds it."""
        import asyncio  # noqa: PLC0415

        looks = [each.looking for each in self._watched.values() if each.looking is not None]
        if looks:
            await asyncio.wait(looks)

    def _watch(self, repository: Repository) -> "_Watched":
        watched = self._watched.pop(repository.id, None)
        if watched is None:
            from cleats.toolsets.code.indexing.freshness import Lookout  # noqa: PLC0415

            lookout = Lookout(repository.root, self.shelf(repository), self.options)
            watched = _Watched(lookout, lambda: self.catch_up(repository))
            if len(self._watched) >= WATCHED:
                del self._watched[next(iter(self._watched))]
        self._watched[repository.id] = watched  # at the end: the first is the longest unused
        return watched

    async def build(
        self, repository: Repository, options: Options, report: Callable[[Progress], None]
    ) -> BuildReport:
        """Build in another process, unless a look says that there is nothing to do.

        Raises:
            ToolError: it could not be done; the last index is as it was.
        """
        if (reading := self._elsewhere(repository)) is not None:
            reading.refuse_build(repository)
        late = await self._late(repository)
        made = await self._built(repository, options, report)
        shelf, unshared, unpublished = self.shelf(repository), "", ""
        if self.shared is not None and self.shared.concerns(repository):
            unshared = await self.shared.publish(shelf)
        if self.remote is not None and self.remote.concerns(repository):
            unpublished = await self.remote.publish(shelf, report)
        warnings = [warning for warning in (late, unshared, unpublished) if warning]
        if not warnings:
            return made
        import msgspec  # noqa: PLC0415 - as above

        return msgspec.structs.replace(made, warnings=[*made.warnings, *warnings])

    async def _late(self, repository: Repository) -> str:
        if self._books is None:
            return ""
        from anyio import to_thread  # noqa: PLC0415

        return await to_thread.run_sync(self.catch_up, repository, abandon_on_cancel=True)

    async def _built(
        self, repository: Repository, options: Options, report: Callable[[Progress], None]
    ) -> BuildReport:
        from anyio import to_thread  # noqa: PLC0415

        if options.incremental and not options.artifacts:
            lookout = self._watch(repository).lookout
            settled = await to_thread.run_sync(lookout.settled, options, abandon_on_cancel=True)
            if settled is not None:
                return settled
        from cleats.toolsets.code.indexing import builder  # noqa: PLC0415

        order = builder.Order(str(repository.root), str(self._settings.cache_dir), options)
        return await builder.run(order, report, self.grace)


class _Watched(Struct):
    lookout: "Lookout"
    catch_up: Callable[[], object]
    seen: "Freshness | None" = None
    generation: str | None = None
    until: float = 0.0
    looking: "asyncio.Task[None] | None" = None

    async def look(self) -> None:
        from anyio import to_thread  # noqa: PLC0415

        self.seen = await to_thread.run_sync(self._look, abandon_on_cancel=True)
        self.generation = self.seen.generation if self.seen else None
        self.until = time.monotonic() + RECENT

    def _look(self) -> "Freshness | None":
        self.catch_up()
        return self.lookout.look()

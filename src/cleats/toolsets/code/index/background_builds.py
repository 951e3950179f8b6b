"""Builds that belong to the server: a call starts one, and its end does not end the build."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.index.progress import BuildProgress
from cleats.toolsets.code.index.service import Indexes
from cleats.toolsets.code.repository import Repository

log = logging.getLogger(__name__)


class _BackgroundBuild(Struct):
    task: "asyncio.Task[None]"
    progress: BuildProgress = BuildProgress("wait", "waiting for other builds")
    problem: str = ""


class BackgroundBuilds:
    """The builds of a server, at most one for each repository and one at a time. Not thread-safe."""

    def __init__(self, indexes: Indexes, *, is_enabled: bool) -> None:
        self._indexes = indexes
        self._is_enabled = is_enabled
        self._builds: dict[str, _BackgroundBuild] = {}
        self._turn = asyncio.Lock()

    def start(self, repository: Repository) -> None:
        """Start a build, if the settings allow it, unless one is running or has failed.

        A folder that is too large, and an index that another machine builds, are left alone.
        """
        build = self._builds.get(repository.id)
        if not self._is_enabled or (build is not None and (not build.task.done() or build.problem)):
            return
        try:
            repository.reject_unsuitable_root()
        except ToolError:
            return
        if self._indexes.find_remote_reader(repository) is None:
            task = asyncio.get_running_loop().create_task(self._build(repository))
            self._builds[repository.id] = _BackgroundBuild(task)

    def start_first(self, repository: Repository) -> bool:
        """Start the build of an index where there is none; return whether it is running."""
        lease = self._indexes.open_store(repository).lease_current()
        if lease is not None:
            lease.close()
            return False
        self.start(repository)
        return self.find_progress(repository) is not None

    def find_progress(self, repository: Repository) -> BuildProgress | None:
        """Return how far the build of a repository is; None if none is running."""
        build = self._builds.get(repository.id)
        return None if build is None or build.task.done() else build.progress

    def describe(self, repository: Repository) -> str:
        """Describe the build of a repository; empty if there is none."""
        build = self._builds.get(repository.id)
        if build is not None and build.problem:
            return f"building it failed: {build.problem}"
        progress = self.find_progress(repository)
        return "" if progress is None else f"index being built: {progress.percent} %"

    async def _build(self, repository: Repository) -> None:
        build = self._builds[repository.id]

        def report(progress: BuildProgress) -> None:
            build.progress = progress

        async with self._turn:
            log.info("index.build begin root=%s", repository.root)
            try:
                await self._indexes.build_index(repository, self._indexes.options, report, in_background=True)
            except ToolError as error:
                build.problem = error.message
                log.warning("index.build failed root=%s: %s", repository.root, error.message)
            except Exception:
                build.problem = ErrorCode.INTERNAL.name
                log.exception("index.build crashed root=%s", repository.root)
            else:
                log.info("index.build end root=%s", repository.root)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Stop all builds when the server ends."""
        try:
            yield
        finally:
            tasks = [build.task for build in self._builds.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

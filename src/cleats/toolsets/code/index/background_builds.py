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
    progress: BuildProgress | None = None
    problem: str = ""


class BackgroundBuilds:
    """The builds of a server, at most one for each repository and one at a time. Not thread-safe."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes
        self._builds: dict[str, _BackgroundBuild] = {}
        self._turn = asyncio.Lock()

    def start(self, repository: Repository) -> None:
        """Start a build unless one is running or has failed; a folder that is too large is left alone."""
        build = self._builds.get(repository.id)
        if build is not None and (not build.task.done() or build.problem):
            return
        try:
            repository.reject_unsuitable_root()
        except ToolError:
            return
        task = asyncio.get_running_loop().create_task(self._build(repository))
        self._builds[repository.id] = _BackgroundBuild(task)

    def describe(self, repository: Repository) -> str:
        """Describe the build of a repository; empty if there is none."""
        build = self._builds.get(repository.id)
        if build is None:
            return ""
        if build.problem:
            return f"building it failed: {build.problem}"
        if build.task.done():
            return ""
        progress = build.progress
        if progress is None or not progress.total:
            return "being built" if progress is None else f"being built: {progress.message}"
        return f"being built: {progress.phase} {100 * progress.done // progress.total} %"

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

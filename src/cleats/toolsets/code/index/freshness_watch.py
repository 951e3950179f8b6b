"""Freshness checks of a long-lived process: run in threads, shared by callers, reused for a while."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from anyio import to_thread
from msgspec import Struct

from cleats.toolsets.code.index.freshness import Freshness, FreshnessChecker
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.repository import Repository

FRESHNESS_CACHE_SECONDS: Final = 2.0
"""Seconds for which the result of a freshness check is reused."""

MAX_WATCHED_REPOSITORIES: Final = 16
"""Repositories that are remembered; one costs about a kilobyte for each of its files."""


class FreshnessWatch:
    """The freshness of the indexes of repositories."""

    def __init__(
        self,
        options: BuildOptions,
        open_store: Callable[[Repository], GenerationStore],
        update_records: Callable[[Repository], object],
    ) -> None:
        self._options, self._open_store, self._update_records = options, open_store, update_records
        self._watchers: dict[str, _FreshnessWatcher] = {}

    def get_checker(self, repository: Repository) -> FreshnessChecker:
        """Return the checker of a repository, which remembers its last check."""
        return self._get_watcher(repository).checker

    async def check(
        self, repository: Repository, current: str | None, max_wait: float | None = None
    ) -> Freshness | None:
        """Compare the current generation with its files; return None when there is no index.

        A result that is not older than `FRESHNESS_CACHE_SECONDS` is returned again. With `max_wait`,
        the answer comes after that many seconds at most; if the new check is not done by then, it
        is the result of the last one, or None when that saw another generation.
        """
        watcher = self._get_watcher(repository)
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
        """Wait until no check is running here: a check holds its index."""
        checks = [watcher.task for watcher in self._watchers.values() if watcher.task is not None]
        if checks:
            await asyncio.wait(checks)

    def _get_watcher(self, repository: Repository) -> "_FreshnessWatcher":
        watcher = self._watchers.pop(repository.id, None)
        if watcher is None:
            checker = FreshnessChecker(repository.root, self._open_store(repository), self._options)
            watcher = _FreshnessWatcher(checker, lambda: self._update_records(repository))
            if len(self._watchers) >= MAX_WATCHED_REPOSITORIES:
                del self._watchers[next(iter(self._watchers))]
        self._watchers[repository.id] = watcher  # at the end: the first is the longest unused
        return watcher


class _FreshnessWatcher(Struct):
    checker: FreshnessChecker
    update_records: Callable[[], object]
    freshness: Freshness | None = None
    generation: str | None = None
    valid_until: float = 0.0
    task: "asyncio.Task[None] | None" = None

    async def refresh(self) -> None:
        self.freshness = await to_thread.run_sync(self._check, abandon_on_cancel=True)
        self.generation = self.freshness.generation if self.freshness else None
        self.valid_until = time.monotonic() + FRESHNESS_CACHE_SECONDS

    def _check(self) -> Freshness | None:
        self.update_records()
        return self.checker.check()

"""Background refresh of a skill library while a server runs.

A timer guarantees the refresh; file events only trigger it early, because they come late, twice or
not at all. Clients are notified of a list only when its content differs.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

import anyio
from anyio import to_thread

from cleats.contract.resources import ListName
from cleats.contract.tools import ListChangeCallback
from cleats.settings import Settings
from cleats.toolsets.skills.catalogue import load_matcher
from cleats.toolsets.skills.library import CatalogueEdition, SkillLibrary

log = logging.getLogger(__name__)

REFRESH_REST_FACTOR = 4
"""The pause after a refresh, as a multiple of its duration: a fifth of a core at worst."""

SETTLE_SECONDS = 0.05
"""The time after the first event of a change in which the rest of it usually follows."""

MAX_LOGGED_PROBLEMS = 20
"""The number of problems that are logged one by one; `cleats skills validate` reports them all."""


class LibraryRefresher:
    """A refresher of a library on a timer, on file events, and on request."""

    def __init__(self, library: SkillLibrary, settings: Settings) -> None:
        self._library = library
        self._settings = settings
        self._refresh_requested = anyio.Event()
        self._folders_changed = anyio.Event()
        self._is_stopped = False

    def request_refresh(self) -> None:
        """Request a refresh soon, because the catalogue seems to be out of date."""
        self._refresh_requested.set()

    @asynccontextmanager
    async def run(self, notify_changed: ListChangeCallback) -> AsyncIterator[None]:
        """Refresh once, then keep refreshing until the block ends."""
        log.info("skills.scan")
        self._log_edition(await to_thread.run_sync(self._library.refresh))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, load_matcher)
            tasks.start_soon(self._refresh_repeatedly, notify_changed)
            if self._settings.skills.watch == "on":
                tasks.start_soon(self._watch_folders)
            try:
                yield
            finally:
                # The watcher's thread checks only its own event; cancelling would wait for it.
                self._is_stopped = True
                self._folders_changed.set()
                tasks.cancel_scope.cancel()
        log.info("skills.end")

    async def _refresh_repeatedly(self, notify_changed: ListChangeCallback) -> None:
        interval = self._settings.skills.refresh or None
        while True:
            with anyio.move_on_after(interval):
                await self._refresh_requested.wait()
                await anyio.sleep(SETTLE_SECONDS)
            self._refresh_requested = anyio.Event()
            before, folders = self._library.edition, self._library.list_folders()
            try:
                after = await to_thread.run_sync(self._library.refresh, abandon_on_cancel=True)
            except Exception:
                log.exception("skills.refresh failed; the previous catalogue stays in use")
                await anyio.sleep(1)
                continue
            if self._library.list_folders() != folders:
                self._folders_changed.set()
            if after is not before:
                self._log_edition(after)
                old, new = _fingerprint_lists(before), _fingerprint_lists(after)
                if lists := [name for name in old if old[name] != new[name]]:
                    notify_changed(*lists)
            await anyio.sleep(REFRESH_REST_FACTOR * self._library.refresh_seconds)

    async def _watch_folders(self) -> None:
        """Request a refresh when the system reports a change in an existing folder."""
        watchfiles = await to_thread.run_sync(import_module, "watchfiles")  # not needed to start
        while not self._is_stopped:
            self._folders_changed = anyio.Event()
            folders = self._library.list_folders()
            try:
                if folders:
                    async for _ in watchfiles.awatch(
                        *folders,
                        stop_event=self._folders_changed,
                        watch_filter=None,
                        debounce=int(SETTLE_SECONDS * 1000),
                        step=int(SETTLE_SECONDS * 1000),
                        rust_timeout=1000,
                        ignore_permission_denied=True,
                    ):
                        self._refresh_requested.set()
            except Exception as error:  # noqa: BLE001 - the timer works without it
                log.warning("skills.watch failed; skills are still refreshed by a timer: %s", error)
                folders = []
            if not folders:
                await self._folders_changed.wait()

    def _log_edition(self, edition: CatalogueEdition) -> None:
        catalogue = edition.catalogue
        log.info(
            "skills.found skills=%d sources=%d shadowed=%d off=%d problems=%d ms=%d",
            len(catalogue.skills),
            len(catalogue.sources),
            len(catalogue.shadowed),
            len(catalogue.disabled),
            len(catalogue.problems),
            self._library.refresh_seconds * 1000,
        )
        serious = [problem for problem in catalogue.problems if problem.severity == "error"]
        for problem in serious[:MAX_LOGGED_PROBLEMS]:
            log.info("skills.problem path=%s: %s", problem.path, problem.message)
        if serious:
            log.warning(
                "skills.broken count=%d first=%s: run `cleats skills validate` to see all problems",
                len(serious),
                serious[0].path,
            )


def _fingerprint_lists(edition: CatalogueEdition) -> dict[ListName, object]:
    """Return what each list shows of an edition, for comparison."""
    published = [skill for skill in edition.catalogue.skills if skill.publishable]
    return {
        "tools": edition.description,
        "resources": [(skill.uri, skill.description, skill.stamp.size) for skill in published],
        "prompts": [(name, skill.description) for name, skill in edition.catalogue.for_people.items()],
    }

"""Keep a library current while a server runs, off the road that requests take.

A timer is the truth; reports of the system only make it ring early, because they come late, twice
or not at all. Clients are told of a list only when it reads differently.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from cleats.contract.listing import ListName
from cleats.contract.tools import Changed
from cleats.settings import Settings
from cleats.toolsets.skills import likeness
from cleats.toolsets.skills.library import Edition, Library
from cleats.toolsets.skills.publishing import fingerprint

log = logging.getLogger(__name__)

SHARE = 4
"""A refresh waits this many times as long as the last one took: a fifth of a core at worst."""

SETTLE = 0.05
"""Seconds after the first report of a change in which the rest of it usually follows."""

SHOWN = 20
"""Problems that are logged one by one; skill_diagnostics has them all."""


class Keeper:
    """Refreshes a library on a timer, on file events, and when asked."""

    def __init__(self, library: Library, settings: Settings) -> None:
        self._library = library
        self._settings = settings
        self._ring = anyio.Event()
        self._moved = anyio.Event()
        self._over = False

    def ask(self) -> None:
        """Look again soon: somebody saw something that the catalogue does not know."""
        self._ring.set()

    @asynccontextmanager
    async def running(self, changed: Changed) -> AsyncIterator[None]:
        """Look once, then keep looking until the block ends."""
        log.info("skills.scan")
        self._report(await to_thread.run_sync(self._library.refresh))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep, changed)
            if self._settings.skill_watch == "on":
                tasks.start_soon(self._watch)
            try:
                yield
            finally:
                # The watcher's thread sees only its own event; a cancel would wait for it.
                self._over = True
                self._moved.set()
                tasks.cancel_scope.cancel()
        log.info("skills.end")

    async def _keep(self, changed: Changed) -> None:
        await to_thread.run_sync(likeness.warm)
        every = self._settings.skill_refresh or None
        while True:
            with anyio.move_on_after(every):
                await self._ring.wait()
                await anyio.sleep(SETTLE)
            # Something is known to have changed, so it is worth to look everywhere.
            look = partial(self._library.refresh, thorough=self._ring.is_set())
            self._ring = anyio.Event()
            before, folders = self._library.edition, self._library.folders()
            try:
                after = await to_thread.run_sync(look, abandon_on_cancel=True)
            except Exception:
                log.exception("skills.refresh failed; the catalogue stays as it was")
                await anyio.sleep(1)
                continue
            if self._library.folders() != folders:
                self._moved.set()
            if after is not before:
                self._report(after)
                if lists := _different(before, after):
                    changed(*lists)
            await anyio.sleep(SHARE * self._library.took)

    async def _watch(self) -> None:
        """Ring when the system reports a change in a folder that is there."""
        awatch = await to_thread.run_sync(_watcher)
        while not self._over:
            self._moved = anyio.Event()
            folders = self._library.folders()
            try:
                if folders:
                    async for _ in awatch(
                        *folders,
                        stop_event=self._moved,
                        watch_filter=None,
                        debounce=int(SETTLE * 1000),
                        step=int(SETTLE * 1000),
                        rust_timeout=1000,
                        ignore_permission_denied=True,
                    ):
                        self._ring.set()
            except Exception as error:  # noqa: BLE001 - the timer does without
                log.warning("skills.watch is off, the timer goes on: %s", error)
                folders = []
            if not folders:
                await self._moved.wait()

    def _report(self, edition: Edition) -> None:
        catalogue = edition.catalogue
        log.info(
            "skills.found skills=%d sources=%d shadowed=%d off=%d problems=%d ms=%d",
            len(catalogue.skills),
            len(catalogue.sources),
            len(catalogue.shadowed),
            len(catalogue.off),
            len(catalogue.problems),
            self._library.took * 1000,
        )
        serious = [problem for problem in catalogue.problems if problem.severity == "error"]
        for problem in serious[:SHOWN]:
            log.info("skills.problem path=%s: %s", problem.path, problem.message)
        if serious:
            log.warning(
                "skills.broken count=%d first=%s: `cleats skills validate` says what is wrong",
                len(serious),
                serious[0].path,
            )


def _different(before: Edition, after: Edition) -> list[ListName]:
    """The lists of tools, resources and prompts that read differently now."""
    lists: list[ListName] = []
    if before.description != after.description:
        lists.append("tools")
    names: tuple[ListName, ListName] = ("resources", "prompts")
    pairs = zip(fingerprint(before.catalogue), fingerprint(after.catalogue), strict=True)
    for name, (old, new) in zip(names, pairs, strict=True):
        if list(old) != list(new):
            lists.append(name)
    return lists


def _watcher() -> Any:
    from watchfiles import awatch  # noqa: PLC0415 - not needed to start

    return awatch

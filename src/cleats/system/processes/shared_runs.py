"""Runs of blocking work that callers share: many requests that ask the same question at once cost one answer."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from cleats.system.processes.blocking import run_in_thread
from cleats.system.processes.command import GRACE_SECONDS

R = TypeVar("R")


class SharedRuns(Generic[R]):
    """Runs work in a thread, one run at a time; all callers that wait for the next run get its result.

    A caller never gets the result of a run that started before its call: what was written before the call is seen.
    """

    def __init__(self, work: Callable[[], R], grace: float = GRACE_SECONDS) -> None:
        self._work, self._grace = work, grace
        self._running: asyncio.Task[R] | None = None
        self._next: asyncio.Task[R] | None = None
        self._waiting: dict[asyncio.Task[R], int] = {}

    async def run(self) -> R:
        """Return the result of the next run. Cancelling the last caller of a run cancels it."""
        run = self._next = self._next or asyncio.create_task(self._run_next(self._running))
        self._waiting[run] = self._waiting.get(run, 0) + 1
        try:
            return await asyncio.shield(run)
        finally:
            self._waiting[run] -= 1
            if not self._waiting[run]:
                del self._waiting[run]
                self._forget(run)

    async def _run_next(self, previous: "asyncio.Task[R] | None") -> R:
        if previous is not None:
            await asyncio.wait([previous])
        self._running, self._next = self._next, None
        return await run_in_thread(self._work, grace=self._grace)

    def _forget(self, run: "asyncio.Task[R]") -> None:
        """End a run that nobody waits for, so that the next caller starts another."""
        if self._next is run:
            self._next = None
        if self._running is run:
            self._running = None
        run.cancel()

"""A worker: takes runs from the queue, drives them, and looks for those that lost their driver."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.drive.driver import Engine, goes_by_itself
from cleats.toolsets.launch.drive.steps import View, pending
from cleats.toolsets.launch.fleet.jobs import Jobs
from cleats.toolsets.launch.states import State
from cleats.toolsets.launch.store.port import Run, Step

log = logging.getLogger(__name__)

SWEEP: Final = 5.0
"""Seconds between two looks for runs without a driver."""

MANY: Final = 1000
"""Runs that one look takes care of."""


class PassingError(Exception):
    """Raised for the queue: the run could not go on, and may be able to later."""


@dataclass(eq=False)
class Worker:
    """One process of a fleet."""

    engine: Engine
    jobs: Jobs
    concurrency: int = 2
    drain: float = 2.0
    pause: float = SWEEP
    _driven: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Work until cancelled."""
        async with self.jobs.open(), self.engine.running(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._sweep)
            try:
                await self.jobs.work(self.drive, concurrency=self.concurrency, drain=self.drain)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._give_back()
                tasks.cancel_scope.cancel()

    async def drive(self, run_id: str) -> None:
        """Take a run to its next decision.

        Raises:
            PassingError: it could not go on, and may be able to later.
        """
        self._driven.add(run_id)
        try:
            await self.engine.resume(run_id)
        except ToolError as error:
            log.info("job.stop run=%s code=%s", run_id, error.code.name)
            if error.retryable:
                self._driven.discard(run_id)
                raise PassingError(error.code.name) from None
        self._driven.discard(run_id)

    async def _give_back(self) -> None:
        """Ask for another driver of what we leave half-way; without one a sweep finds it."""
        try:
            for run_id in sorted(self._driven):
                await self.jobs.defer(run_id)
        except OSError as error:
            log.warning("job.lost error=%s", type(error).__name__)

    async def _sweep(self) -> None:
        while True:
            try:
                for run in await to_thread.run_sync(self._abandoned):
                    log.info("job.takeover run=%s state=%s", run.run_id, run.state.value)
                    await self.jobs.defer(run.run_id)
            except (ToolError, OSError) as error:  # the database is away; we stay
                log.warning("sweep.failed error=%s", type(error).__name__)
            await anyio.sleep(self.pause)

    def _abandoned(self) -> list[Run]:
        store = self.engine.store
        return [run for run in store.orphans(MANY) if abandoned(run, store.steps(run.run_id))]


def abandoned(run: Run, done: Sequence[Step]) -> bool:
    """Whether a run that nobody drives should be driven: its driver was lost on the way.

    One that rests for a decision, or whose last step failed, waits for somebody to say so.
    """
    items: Sequence[Mapping[str, Any]] = run.snapshot["work_items"]
    if not goes_by_itself(run) or (items and items[-1]["status"] == "failed"):
        return False
    drive = run.config.get("drive", {})
    view = View(run.state, {each.step: each.output for each in done}, run.config)
    fixes = view.fixable and view.fixes < run.config.get("max_fix_attempts", 3)
    publishes = run.state is State.READY_FOR_PR and drive.get("auto_pr", False)
    return pending(view) is not None or publishes or bool(drive.get("auto_fix") and fixes)

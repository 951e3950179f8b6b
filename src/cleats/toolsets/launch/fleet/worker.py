"""A worker: takes runs from the queue, drives them, and looks for those that lost their driver."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

MANY: Final = 100
"""Runs that one look takes care of."""

MOVING: Final = tuple(
    state.value
    for state in State
    if state not in {State.READY_FOR_PR, State.DONE, State.FAILED, State.CANCELLED}
)
"""States in which a run that nobody drives may have lost its driver."""


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

    async def run(self) -> None:
        """Work until cancelled."""
        async with self.jobs.open(), self.engine.running(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._sweep)
            await self.jobs.work(self.drive, concurrency=self.concurrency, drain=self.drain)
            tasks.cancel_scope.cancel()

    async def drive(self, run_id: str) -> None:
        """Take a run to its next decision.

        Raises:
            PassingError: it could not go on, and may be able to later.
        """
        try:
            await self.engine.resume(run_id)
        except ToolError as error:
            log.info("job.stop run=%s code=%s", run_id, error.code.name)
            if error.retryable:
                raise PassingError(error.code.name) from None

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
        return [run for run in store.idle(MOVING, MANY) if abandoned(run, store.steps(run.run_id))]


def abandoned(run: Run, done: Sequence[Step]) -> bool:
    """Whether a run that nobody drives should be driven: its driver was lost on the way.

    One that rests for a decision, or whose last step failed, waits for somebody to say so.
    """
    items: Sequence[Mapping[str, Any]] = run.snapshot["work_items"]
    failed = bool(items) and items[-1]["status"] == "failed"
    view = View(run.state, {each.step: each.output for each in done}, run.config)
    return goes_by_itself(run) and not failed and pending(view) is not None

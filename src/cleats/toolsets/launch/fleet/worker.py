"""A worker of a fleet: it drives runs from the queue and takes over runs that lost their driver."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.drive.engine import RunEngine, is_automatic
from cleats.toolsets.launch.drive.pipeline import PipelineView, find_next_action
from cleats.toolsets.launch.fleet.queue import RunQueue
from cleats.toolsets.launch.runs.states import RunState
from cleats.toolsets.launch.store.interface import RecordedStep, Run

log = logging.getLogger(__name__)

SWEEP_INTERVAL_SECONDS: Final = 5.0
"""Interval between two sweeps for runs without a driver."""

MAX_SWEPT_RUNS: Final = 1000
"""Runs that one sweep handles."""


class RetryLaterError(Exception):
    """Raised for the queue: the run could not continue now, but may later."""


@dataclass(eq=False)
class FleetWorker:
    """One process of a fleet."""

    engine: RunEngine
    jobs: RunQueue
    concurrency: int = 2
    drain: float = 2.0
    pause: float = SWEEP_INTERVAL_SECONDS
    _driven_ids: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Work until cancelled."""
        async with self.jobs.open(), self.engine.running(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._sweep_runs)
            try:
                await self.jobs.run_worker(self.drive, concurrency=self.concurrency, drain=self.drain)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._requeue_runs()
                tasks.cancel_scope.cancel()

    async def drive(self, run_id: str) -> None:
        """Drive a run to its next decision.

        Raises:
            RetryLaterError: the run could not continue now, but may later.
        """
        self._driven_ids.add(run_id)
        try:
            await self.engine.resume(run_id)
        except ToolError as error:
            log.info("job.stop run=%s code=%s", run_id, error.code.name)
            if error.retryable:
                self._driven_ids.discard(run_id)
                raise RetryLaterError(error.code.name) from None
        self._driven_ids.discard(run_id)

    async def _requeue_runs(self) -> None:
        """Queue the runs that this worker leaves unfinished; if that fails, a sweep finds them."""
        try:
            for run_id in sorted(self._driven_ids):
                await self.jobs.defer(run_id)
        except OSError as error:
            log.warning("job.lost error=%s", type(error).__name__)

    async def _sweep_runs(self) -> None:
        while True:
            try:
                for run in await to_thread.run_sync(self._find_abandoned):
                    log.info("job.takeover run=%s state=%s", run.run_id, run.state.value)
                    await self.jobs.defer(run.run_id)
            except (ToolError, OSError) as error:  # the database is unreachable; keep running
                log.warning("sweep.failed error=%s", type(error).__name__)
            await anyio.sleep(self.pause)

    def _find_abandoned(self) -> list[Run]:
        store = self.engine.store
        return [run for run in store.list_orphans(MAX_SWEPT_RUNS) if is_abandoned(run, store.list_steps(run.run_id))]


def is_abandoned(run: Run, steps: Sequence[RecordedStep]) -> bool:
    """Return whether a run without a driver should be driven, because its driver was lost.

    A run that rests for a decision, or whose last step failed, waits for a call.
    """
    work_items: Sequence[Mapping[str, Any]] = run.snapshot["work_items"]
    if not is_automatic(run) or (work_items and work_items[-1]["status"] == "failed"):
        return False
    drive = run.config.get("drive", {})
    view = PipelineView(run.state, {step.step: step.output for step in steps}, run.config)
    can_fix = view.can_fix and view.fix_count < run.config.get("max_fix_attempts", 3)
    can_publish = run.state is RunState.READY_FOR_PR and drive.get("auto_pr", False)
    return find_next_action(view) is not None or can_publish or bool(drive.get("auto_fix") and can_fix)

"""Runs on many machines: the queue of runs to drive, and the workers that take runs from it.

The queue is Procrastinate, in the database that holds the runs. A job is only a nudge. The lease in
the store decides whether a run needs a driver and which one it is, so a job that comes twice, late,
or for a run that has ended does no harm. A worker also takes over runs that lost their driver.
"""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.system import postgres
from cleats.system.postgres import UnreachableError
from cleats.toolsets.launch.drive.engine import RunEngine, is_automatic
from cleats.toolsets.launch.drive.pipeline import PipelineView, find_next_action
from cleats.toolsets.launch.runs.states import RunState
from cleats.toolsets.launch.store.model import RecordedStep, Run, StoreUnreachableError

if TYPE_CHECKING:
    from procrastinate import App, BaseRetryStrategy
    from procrastinate.jobs import Job

log = logging.getLogger(__name__)

QUEUE_NAME: Final = "launch"
TASK_NAME: Final = "cleats.launch.drive"
JOBS_TABLE: Final = "procrastinate_jobs"

MAX_JOB_ATTEMPTS: Final = 5
"""Jobs that one run gets while its steps fail for transient reasons."""

RETRY_BASE_SECONDS: Final = 2
"""Wait before the second job; each further one waits twice as long, unless only the database was unreachable."""

POLL_INTERVAL_SECONDS: Final = 2.0
"""Interval between two polls of the queue, when no notification comes."""

CONNECT_TIMEOUT_SECONDS: Final = 30.0
"""Time that an operation on the queue waits for a connection."""

DriveCallback = Callable[[str], Awaitable[None]]


class RunQueue:
    """The queue of one database. Its tables are created when they are missing."""

    def __init__(self, url: str, *, connect_timeout: float = CONNECT_TIMEOUT_SECONDS) -> None:
        self._url = url
        self._connect_timeout = connect_timeout
        self._app: App | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Connect for the duration of the block.

        Raises:
            OSError: the database does not answer.
            ToolError: CAPABILITY_MISSING, an extra is not installed.
        """
        await to_thread.run_sync(_create_tables, self._url)  # first, as it says which extra is missing
        from procrastinate import App, PsycopgConnector  # noqa: PLC0415 - an extra

        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        address = postgres.add_connection_defaults(self._url)
        connector = PsycopgConnector(conninfo=address, min_size=1, max_size=4, timeout=self._connect_timeout)
        app = App(connector=connector)
        async with app.open_async():
            self._app = app
            try:
                yield
            finally:
                self._app = None

    async def defer(self, run_id: str) -> None:
        """Queue a run for a driver; a run that is queued already is queued once.

        Raises:
            OSError: the database does not answer.
        """
        from procrastinate import exceptions  # noqa: PLC0415 - an extra

        assert self._app is not None  # noqa: S101 - inside `open`
        task = self._app.configure_task(TASK_NAME, queue=QUEUE_NAME, queueing_lock=run_id)
        try:
            await task.defer_async(run_id=run_id)
        except exceptions.AlreadyEnqueued:
            log.debug("job.known run=%s", run_id)
        except exceptions.ConnectorException as error:
            cause = type(error.__cause__ or error).__name__
            raise UnreachableError(f"the queue of the runs does not answer ({cause})") from None

    async def run_worker(self, drive: DriveCallback, *, concurrency: int, drain: float) -> None:
        """Take jobs until cancelled; then give the running ones `drain` seconds."""
        assert self._app is not None  # noqa: S101 - inside `open`
        row = await self._app.connector.execute_query_one_async(
            "SELECT extract(epoch FROM clock_timestamp())::float8 AS now"
        )
        retry = _make_retry_strategy(row["now"] - time.monotonic())

        @self._app.task(name=TASK_NAME, queue=QUEUE_NAME, retry=retry)
        async def _drive_run(run_id: str) -> None:
            await drive(run_id)

        with anyio.CancelScope():
            await self._app.run_worker_async(
                queues=[QUEUE_NAME],
                concurrency=concurrency,
                fetch_job_polling_interval=POLL_INTERVAL_SECONDS,
                install_signal_handlers=False,
                shutdown_graceful_timeout=drain,
                delete_jobs="always",
            )


def _make_retry_strategy(clock_offset: float) -> "BaseRetryStrategy":
    """Return the strategy that repeats a job at a time of the database's clock.

    That of Procrastinate uses the clock of this machine. A clock that is an hour fast would delay a run by an hour,
    because a queued run is not queued again. `clock_offset` is the time of the database minus the monotonic time here.
    """
    from procrastinate import BaseRetryStrategy, RetryDecision  # noqa: PLC0415 - an extra

    class DatabaseClockRetry(BaseRetryStrategy):
        def get_retry_decision(self, *, exception: BaseException, job: "Job") -> RetryDecision | None:
            is_soon = isinstance(exception, RetrySoonError)
            if job.attempts >= MAX_JOB_ATTEMPTS and not is_soon:
                return None
            pause = RETRY_BASE_SECONDS ** (1 if is_soon else job.attempts + 1)
            retry_time = clock_offset + time.monotonic() + pause
            return RetryDecision(retry_at=datetime.fromtimestamp(retry_time, UTC))

    return DatabaseClockRetry()


def _create_tables(url: str) -> None:
    with postgres.open_connection(url) as connection:
        from procrastinate.schema import SchemaManager  # noqa: PLC0415 - an extra

        if not postgres.has_relations(connection, JOBS_TABLE):
            postgres.lock_table_creation(connection)
            if not postgres.has_relations(connection, JOBS_TABLE):  # another process may have been first
                connection.execute(SchemaManager.get_schema())


SWEEP_INTERVAL_SECONDS: Final = 5.0
"""Interval between two sweeps for runs without a driver."""

MAX_SWEPT_RUNS: Final = 1000
"""Runs that one sweep handles."""


class RetryLaterError(Exception):
    """Raised for the queue: the run could not continue now, but may later."""


class RetrySoonError(RetryLaterError):
    """Raised for the queue: the database was unreachable, which is not the fault of the run."""


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
                error_type = RetrySoonError if isinstance(error, StoreUnreachableError) else RetryLaterError
                raise error_type(error.code.name) from None
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

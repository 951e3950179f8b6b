"""The queue of runs to drive: Procrastinate, in the database that holds the runs.

A job is only a nudge. The lease in the store decides whether a run needs a driver and which one it
is, so a job that comes twice, late, or for a run that has ended does no harm.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from cleats.system import postgres
from cleats.system.postgres import UnreachableError

if TYPE_CHECKING:
    from procrastinate import App

log = logging.getLogger(__name__)

QUEUE_NAME: Final = "launch"
TASK_NAME: Final = "cleats.launch.drive"

MAX_JOB_ATTEMPTS: Final = 5
"""Jobs that one run gets while its steps fail for transient reasons."""

RETRY_BASE_SECONDS: Final = 2
"""Wait before the second job; each further one waits twice as long."""

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
        await to_thread.run_sync(_create_tables, self._url)
        app = self._make_app()
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
            raise _make_unreachable_error(error.__cause__ or error) from None

    async def run_worker(self, drive: DriveCallback, *, concurrency: int, drain: float) -> None:
        """Take jobs until cancelled; then give the running ones `drain` seconds."""
        from procrastinate import RetryStrategy  # noqa: PLC0415 - an extra

        assert self._app is not None  # noqa: S101 - inside `open`
        retry = RetryStrategy(max_attempts=MAX_JOB_ATTEMPTS, exponential_wait=RETRY_BASE_SECONDS)

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

    def _make_app(self) -> "App":
        from procrastinate import App, PsycopgConnector  # noqa: PLC0415 - an extra

        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        connector = PsycopgConnector(conninfo=self._url, min_size=1, max_size=4, timeout=self._connect_timeout)
        return App(connector=connector)


def _make_unreachable_error(error: BaseException) -> UnreachableError:
    return UnreachableError(f"the queue of the runs does not answer ({type(error).__name__})")


def _create_tables(url: str) -> None:
    from procrastinate.schema import SchemaManager  # noqa: PLC0415 - an extra

    with postgres.open_connection(url) as connection:
        postgres.create_tables(connection, "SELECT 1")  # one process at a time from here on
        row = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
        if row is None or row[0] is None:
            connection.execute(SchemaManager.get_schema())

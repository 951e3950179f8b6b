"""The queue of "drive this run": Procrastinate, in the database that holds the runs.

A job is only a nudge. Whether a run needs a driver, and who it is, is decided by the lease in the
store, so a job that comes twice, or late, or for a run that has ended, does no harm.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from cleats.runtime import postgres
from cleats.runtime.postgres import UnreachableError

if TYPE_CHECKING:
    from procrastinate import App

log = logging.getLogger(__name__)

QUEUE: Final = "launch"
TASK: Final = "cleats.launch.drive"

TRIES: Final = 5
"""Jobs that one run gets while its steps fail for reasons that may pass."""

PAUSE: Final = 2
"""Seconds before the second job; each further one waits twice as long."""

POLL: Final = 2.0
"""Seconds between two looks at the queue, when no notification comes."""

PATIENCE: Final = 30.0
"""Seconds that a question to the queue waits for a connection."""

Drive = Callable[[str], Awaitable[None]]


class Jobs:
    """The queue of one database. Its tables are made when they are missing."""

    def __init__(self, url: str, *, patience: float = PATIENCE) -> None:
        self._url = url
        self._patience = patience
        self._app: App | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Connect for as long as the block runs.

        Raises:
            OSError: the database does not answer.
            ToolError: CAPABILITY_MISSING, an extra is not installed.
        """
        await to_thread.run_sync(_make_tables, self._url)
        app = self._made()
        async with app.open_async():
            self._app = app
            try:
                yield
            finally:
                self._app = None

    async def defer(self, run_id: str) -> None:
        """Ask for a driver; a run that waits for one already is asked for once.

        Raises:
            OSError: the database does not answer.
        """
        from procrastinate import exceptions  # noqa: PLC0415 - an extra

        assert self._app is not None  # noqa: S101 - inside `open`
        task = self._app.configure_task(TASK, queue=QUEUE, queueing_lock=run_id)
        try:
            await task.defer_async(run_id=run_id)
        except exceptions.AlreadyEnqueued:
            log.debug("job.known run=%s", run_id)
        except exceptions.ConnectorException as error:
            raise _lost(error.__cause__ or error) from None

    async def work(self, drive: Drive, *, concurrency: int, drain: float) -> None:
        """Take jobs until cancelled; then give those that run `drain` seconds."""
        from procrastinate import RetryStrategy  # noqa: PLC0415 - an extra

        assert self._app is not None  # noqa: S101 - inside `open`
        retry = RetryStrategy(max_attempts=TRIES, exponential_wait=PAUSE)

        @self._app.task(name=TASK, queue=QUEUE, retry=retry)
        async def _drive(run_id: str) -> None:
            await drive(run_id)

        with anyio.CancelScope():
            await self._app.run_worker_async(
                queues=[QUEUE],
                concurrency=concurrency,
                fetch_job_polling_interval=POLL,
                install_signal_handlers=False,
                shutdown_graceful_timeout=drain,
                delete_jobs="always",
            )

    def _made(self) -> "App":
        from procrastinate import App, PsycopgConnector  # noqa: PLC0415 - an extra

        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        connector = PsycopgConnector(
            conninfo=self._url, min_size=1, max_size=4, timeout=self._patience
        )
        return App(connector=connector)


def _lost(error: BaseException) -> UnreachableError:
    return UnreachableError(f"the queue of the runs does not answer ({type(error).__name__})")


def _make_tables(url: str) -> None:
    from procrastinate.schema import SchemaManager  # noqa: PLC0415 - an extra

    with postgres.connected(url) as connection:
        postgres.make_tables(connection, "SELECT 1")  # one process at a time from here on
        row = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
        if row is None or row[0] is None:
            connection.execute(SchemaManager.get_schema())

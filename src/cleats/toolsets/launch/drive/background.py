"""Runs that go on by themselves while the server lives."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from cleats.contract.errors import ToolError

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Runs that go on at the same time; the others wait for their turn. Each has a worker process
that may well keep a core busy, and a call that drives a run does not wait behind them."""


class Background:
    """The drives of one server. They are stopped, not finished, when it stops."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._open = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take drives while the block runs; stop them at its end, and wait until they have."""
        self._open = True
        try:
            yield
        finally:
            self._open = False
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def start(self, run_id: str, drive: Callable[[], Awaitable[None]]) -> bool:
        """Drive a run from now on, if that is not done already; False when nobody will."""
        if not self._open:
            return False
        if run_id not in self._tasks:
            task = asyncio.get_running_loop().create_task(self._watched(run_id, drive))
            self._tasks[run_id] = task
            task.add_done_callback(lambda _: self._tasks.pop(run_id))
        return True

    async def _watched(self, run_id: str, drive: Callable[[], Awaitable[None]]) -> None:
        try:
            async with self._turns:
                await drive()
        except ToolError as error:
            # The run's own log has it; whoever asks for the status sees the issue.
            log.info("drive.stop run=%s code=%s", run_id, error.code.name)
        except Exception:
            log.exception("drive.crash run=%s", run_id)

"""Runs that go on by themselves while the server lives."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from cleats.contract.errors import ToolError

log = logging.getLogger(__name__)


class Background:
    """The drives of one server. They are stopped, not finished, when it stops."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take drives while the block runs; stop them at its end, and wait until they have."""
        self._open = True
        try:
            yield
        finally:
            self._open = False
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def start(self, run_id: str, drive: Coroutine[Any, Any, None]) -> bool:
        """Drive a run from now on; False when nobody is there to do it."""
        if not self._open:
            drive.close()
            return False
        task = asyncio.get_running_loop().create_task(_watched(run_id, drive))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True


async def _watched(run_id: str, drive: Coroutine[Any, Any, None]) -> None:
    try:
        await drive
    except ToolError as error:
        # The run's own log has it; whoever asks for the status sees the issue.
        log.info("drive.stop run=%s code=%s", run_id, error.code.name)
    except Exception:
        log.exception("drive.crash run=%s", run_id)

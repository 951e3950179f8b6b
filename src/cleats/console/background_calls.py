"""Calls that go on while a person reads other pages: index builds, launch steps, and calls from the page of a tool."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from time import time
from typing import Any, Final

from cleats.console.tool_calls import ToolCaller
from cleats.contract.outcome import Cancelled, Done, Outcome
from cleats.runtime.call import ToolCall
from cleats.runtime.progress import ProgressReport, ProgressReporter

MAX_KEPT_CALLS: Final = 100
"""The number of finished calls whose answers are kept for the page that shows them."""


@dataclass(eq=False, slots=True)
class BackgroundCall:
    """One call, its latest progress and its outcome."""

    call: ToolCall
    subject: str
    """The repository or run that it is about, so that a page finds its own."""
    started_at: float
    progress: ProgressReport | None = None
    outcome: Outcome | None = None
    version: int = 0
    """Rises with every change."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def id(self) -> str:
        return self.call.id or ""

    @property
    def state(self) -> str:
        """The state in one word: running, done, failed, rejected or cancelled."""
        return "running" if self.outcome is None else type(self.outcome).__name__.lower()

    @property
    def percent(self) -> int | None:
        """The progress so far; None if it is unknown."""
        if isinstance(self.outcome, Done):
            return 100
        if self.progress is None or not self.progress.total:
            return None
        return min(100, int(100 * self.progress.number / self.progress.total))

    def mark_changed(self) -> None:
        """Wake everybody who waits for a change."""
        self.version += 1
        self.changed.set()
        self.changed = asyncio.Event()


class BackgroundCalls:
    """The calls of one caller that no request waits for."""

    def __init__(self, tools: ToolCaller) -> None:
        self._tools = tools
        self._calls: dict[str, BackgroundCall] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the server stops."""

    @property
    def is_stopping(self) -> bool:
        """True if the server is about to end."""
        return self.stopped.done()

    def start(self, tool: str, arguments: Mapping[str, Any], subject: str = "") -> BackgroundCall:
        """Start a call, and return it at once."""
        background = BackgroundCall(self._tools.create_call(tool, arguments), subject, time())

        async def keep_progress(report: ProgressReport) -> None:
            background.progress = report
            background.mark_changed()

        background.call.reporter = ProgressReporter(keep_progress)
        self._calls[background.id] = background
        self._forget_oldest()
        task = asyncio.get_running_loop().create_task(self._run(background))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return background

    async def _run(self, background: BackgroundCall) -> None:
        background.outcome = Cancelled() if self.is_stopping else await self._tools.dispatch(background.call)
        background.mark_changed()

    def _forget_oldest(self) -> None:
        finished_ids = [call_id for call_id, item in self._calls.items() if item.outcome is not None]
        for call_id in finished_ids[: max(0, len(finished_ids) - MAX_KEPT_CALLS)]:
            del self._calls[call_id]

    def find(self, call_id: str) -> BackgroundCall | None:
        """Return a call by its id."""
        return self._calls.get(call_id)

    def find_running(self, tool: str, subject: str) -> BackgroundCall | None:
        """Return the latest running call of a tool about a subject."""
        matches = [
            item
            for item in self._calls.values()
            if item.outcome is None and item.call.tool == tool and item.subject == subject
        ]
        return matches[-1] if matches else None

    def find_latest(self, subject: str) -> BackgroundCall | None:
        """Return the call about a subject that was started last."""
        matches = [item for item in self._calls.values() if item.subject == subject]
        return matches[-1] if matches else None

    async def wait(self, background: BackgroundCall, seconds: float) -> bool:
        """Wait for the end of a call, but not longer than this; return whether it has ended."""
        try:
            async with asyncio.timeout(seconds):
                async for _ in self.follow(background):
                    pass
        except TimeoutError:
            return background.outcome is not None
        return background.outcome is not None

    async def follow(self, background: BackgroundCall) -> AsyncIterator[BackgroundCall]:
        """Yield a call now and after every change, until it has ended or the server stops."""
        while True:
            changed = background.changed
            yield background
            if background.outcome is not None or self.is_stopping:
                return
            await changed.wait()

    def stop(self) -> None:
        """Cancel every call, and end everybody's waiting."""
        if not self.stopped.done():
            self.stopped.set_result(None)
        for background in self._calls.values():
            if background.outcome is None:
                background.call.cancel()
            background.mark_changed()

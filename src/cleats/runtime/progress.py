"""Progress of a call, reported often enough and never too often.

Invariants: the number rises strictly and never exceeds the total, and a total that was reported once is reported until
the end; at most four reports are sent per second; reports that arrive in between are coalesced, and the newest wins;
the last report before the answer is not lost; nothing is sent after the answer or after a cancellation.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

log = logging.getLogger(__name__)

REPORT_INTERVAL_SECONDS = 0.34
"""Time between two reports: three a second, so that the final one still makes at most four."""


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """One step of progress, ready for a surface to word."""

    number: float
    total: float | None
    message: str
    phase: str


SendProgress: TypeAlias = Callable[[ProgressReport], Awaitable[None]]


class ProgressReporter:
    """The progress of one call, between its tool and its surface."""

    def __init__(self, send: SendProgress) -> None:
        self._send = send
        self._last_number = -1.0
        self._highest_done = 0.0
        self._total: float | None = None
        self._next_send_time = 0.0
        self._pending: ProgressReport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._send_task: asyncio.Task[None] | None = None
        self._closed = False

    def report(self, message: str, *, phase: str, done: float | None, total: float | None) -> None:
        """Accept a report; send it now, later, or never if a newer one comes first."""
        if self._closed:
            return
        if done is None or not math.isfinite(done):
            done = max(self._highest_done, math.floor(max(self._last_number, 0)) + 1)
        else:
            self._highest_done = max(self._highest_done, done)
            has_total = total is not None and math.isfinite(total)
            self._total = total if has_total else self._total
        self._pending = ProgressReport(done, self._total, message, phase)
        if self._timer is None and self._send_task is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._next_send_time), self._start_sending)

    async def close(self, *, flush: bool) -> None:
        """Stop reporting; with `flush`, send the newest unsent report first."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not flush:
            self._pending = None
        if self._send_task is not None:
            await self._send_task
        await self._send_pending()

    def _start_sending(self) -> None:
        self._timer = None
        self._send_task = asyncio.get_running_loop().create_task(self._send_and_reschedule())

    async def _send_and_reschedule(self) -> None:
        await self._send_pending()
        self._send_task = None
        if self._pending is not None and not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._next_send_time, self._start_sending)

    async def _send_pending(self) -> None:
        report, self._pending = self._pending, None
        if report is None:
            return
        self._next_send_time = asyncio.get_running_loop().time() + REPORT_INTERVAL_SECONDS
        # A tool may report 10 of 10 twice, or start over in the next phase; the wire requires a number that rises.
        number = report.number
        if number <= self._last_number:
            number = math.floor(self._last_number) + 1
        self._last_number = number
        total = None if report.total is None else _drop_zero_fraction(max(report.total, number))
        try:
            await self._send(ProgressReport(_drop_zero_fraction(number), total, report.message, report.phase))
        except Exception:
            log.exception("progress.lost message=%r", report.message)


def _drop_zero_fraction(number: float) -> float:
    """Return the number as an integer if its fraction is zero."""
    return int(number) if number == math.floor(number) else number

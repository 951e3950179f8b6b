"""How far a call is, told often enough and never too often.

Laws: the number rises strictly and never passes the total, and a total that was told once is told
to the end; at most four reports a second leave; what arrives in between is coalesced, the newest
wins; the last report before the answer is not lost; nothing leaves after the answer or after a
cancel.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

log = logging.getLogger(__name__)

INTERVAL = 0.34
"""Seconds between two reports: three a second, so that the final one still makes at most four."""


@dataclass(frozen=True, slots=True)
class Report:
    """One step of progress, ready for a surface to word."""

    number: float
    total: float | None
    message: str
    phase: str


Send: TypeAlias = Callable[[Report], Awaitable[None]]


class Progress:
    """The progress of one call, between its tool and its surface."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._last = -1.0
        self._reached = 0.0
        self._total: float | None = None
        self._next = 0.0
        self._pending: Report | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._closed = False

    def report(self, message: str, *, phase: str, done: float | None, total: float | None) -> None:
        """Take a report; send it now, later, or never if a newer one comes first."""
        if self._closed:
            return
        if done is None or not math.isfinite(done):
            done = max(self._reached, math.floor(max(self._last, 0)) + 1)
        else:
            self._reached = max(self._reached, done)
            known = total is not None and math.isfinite(total)
            self._total = total if known else self._total
        self._pending = Report(done, self._total, message, phase)
        if self._timer is None and self._sending is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._next), self._fire)

    async def close(self, *, flush: bool) -> None:
        """End it: with `flush` the newest unsent report still goes, without it none does."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not flush:
            self._pending = None
        if self._sending is not None:
            await self._sending
        await self._drain()

    def _fire(self) -> None:
        self._timer = None
        self._sending = asyncio.get_running_loop().create_task(self._step())

    async def _step(self) -> None:
        await self._drain()
        self._sending = None
        if self._pending is not None and not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._next, self._fire)

    async def _drain(self) -> None:
        report, self._pending = self._pending, None
        if report is None:
            return
        self._next = asyncio.get_running_loop().time() + INTERVAL
        # A tool may say 10 of 10 twice, or begin again in a next phase; the wire wants a number
        # that rises.
        number = report.number
        if number <= self._last:
            number = math.floor(self._last) + 1
        self._last = number
        total = None if report.total is None else _whole(max(report.total, number))
        try:
            await self._send(Report(_whole(number), total, report.message, report.phase))
        except Exception:
            log.exception("progress.lost message=%r", report.message)


def _whole(number: float) -> float:
    """The number without a fraction that is none."""
    return int(number) if number == math.floor(number) else number

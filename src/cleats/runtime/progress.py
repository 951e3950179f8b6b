"""How far a call is, told often enough and never too often.

Laws: the number rises strictly; at most four reports a second leave; what arrives in between is
coalesced, the newest wins; the last report before the answer is not lost; nothing leaves after the
answer or after a cancel.
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
            done, total = max(math.floor(self._last), 0) + 1.0, None
        self._pending = Report(done, total, message, phase)
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
        # A tool may say 10 of 10 twice; the wire wants the number to rise, so it rises by a hair.
        number = report.number
        if number <= self._last:
            number = math.nextafter(self._last, math.inf)
        self._last = number
        try:
            await self._send(Report(number, report.total, report.message, report.phase))
        except Exception:
            log.exception("progress.lost message=%r", report.message)

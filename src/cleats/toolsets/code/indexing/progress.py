"""How far a build is."""

from collections.abc import Callable
from time import monotonic
from typing import TypeAlias

from msgspec import Struct


class Progress(Struct, frozen=True, omit_defaults=True):
    """One step of a build."""

    phase: str
    """`wait`, `look`, `read`, `git`, `lint`, `risk`, `search`, `publish`."""
    message: str
    done: int = 0
    total: int = 0


Report: TypeAlias = Callable[[Progress], None]


INTERVAL = 0.1
"""Seconds between two reports of one phase; whoever shows them thins them out further."""


class Counter:
    """Reports of a phase that goes file by file, with its pace."""

    def __init__(self, report: Report, phase: str, what: str, total: int) -> None:
        self._report, self._phase, self._what, self._total = report, phase, what, total
        self._began: tuple[float, int] | None = None
        self._next = 0.0

    def at(self, done: int) -> None:
        """So many are done."""
        now = monotonic()
        self._began = self._began or (now, done)  # libraries were loaded before the first
        if now < self._next and done < self._total:
            return
        self._next = now + INTERVAL
        words = f"{done:,} of {self._total:,} {self._what}"
        pace = self._pace(done, now - self._began[0], done - self._began[1])
        self._report(Progress(self._phase, words + pace, done, self._total))

    def _pace(self, done: int, elapsed: float, since: int) -> str:
        if elapsed < 1 or not since or done == self._total:
            return ""
        rate = since / elapsed
        return f", {rate:,.0f} a second, {_left((self._total - done) / rate)} left"


def _left(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"

"""Rate limits that hold for all workers together: the state of each is in memory that they share."""

import fcntl
import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from cleats.transports.http.tokens import RateLimiter

_RECORD = struct.Struct("=dd")
"""The requests that are available, and the time for which that holds."""


class SharedLimits:
    """Memory for a number of limits, made before the workers are."""

    def __init__(self, folder: Path, count: int) -> None:
        self.memory = mmap.mmap(-1, max(1, count) * _RECORD.size)
        self.lock_file = (folder / "limits.lock").open("wb")
        """Record locks belong to a process: one that dies holds none."""

    def build_limiter(self, index: int, per_minute: float, burst: int | None) -> "SharedRateLimiter":
        """Return a limit that the workers will share."""
        return SharedRateLimiter(self, index, per_minute, burst)


class SharedRateLimiter(RateLimiter):
    """A rate limit of all workers together."""

    def __init__(
        self,
        limits: SharedLimits,
        index: int,
        per_minute: float,
        burst: int | None = None,
        clock: Callable[[], float] = monotonic,  # of the machine, so that all processes agree
    ) -> None:
        super().__init__(per_minute, burst, clock)
        self._limits, self._offset = limits, index * _RECORD.size
        self._store()

    def take(self) -> float:
        lock_file = self._limits.lock_file
        fcntl.lockf(lock_file, fcntl.LOCK_EX, 1, self._offset)
        try:
            self._available, self._updated_at = _RECORD.unpack_from(self._limits.memory, self._offset)
            return super().take()
        finally:
            self._store()
            fcntl.lockf(lock_file, fcntl.LOCK_UN, 1, self._offset)

    def _store(self) -> None:
        _RECORD.pack_into(self._limits.memory, self._offset, self._available, self._updated_at)

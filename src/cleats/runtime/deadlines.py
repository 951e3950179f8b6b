"""Many deadlines, one timer."""

import asyncio
from collections.abc import Callable
from math import inf


class Deadlines:
    """Calls back when a time is up.

    Almost every call ends long before, so a deadline touches the event loop only when it is the
    earliest of all.
    """

    def __init__(self) -> None:
        self._due: dict[object, tuple[float, Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._set_for = inf

    def add(self, key: object, seconds: float, late: Callable[[], None]) -> None:
        """Call `late` in so many seconds, unless the key is removed before."""
        loop = asyncio.get_running_loop()
        when = loop.time() + seconds
        self._due[key] = (when, late)
        if when < self._set_for:
            self._set(loop, when)

    def remove(self, key: object) -> None:
        self._due.pop(key, None)

    def _set(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._set_for = when
        self._timer = loop.call_at(when, self._fire)

    def _fire(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer, self._set_for = None, inf
        now = loop.time()
        for key, (when, late) in list(self._due.items()):
            if when <= now:
                del self._due[key]
                late()
        if self._due:
            self._set(loop, min(when for when, _ in self._due.values()))

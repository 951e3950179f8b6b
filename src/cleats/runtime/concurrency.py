"""Bounded concurrency with a bounded queue, first come, first served."""

import asyncio
from collections import deque
from collections.abc import Callable
from math import inf

from cleats.contract.errors import ErrorCode, ToolError


class CallSlots:
    """At most `concurrency` calls run, at most `queue` calls wait, the rest are refused.

    Acquiring a free slot never touches the event loop, which is why this is not a semaphore.
    """

    def __init__(self, *, concurrency: int, queue: int) -> None:
        self.concurrency = concurrency
        self.queue = queue
        self.running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def check_capacity(self) -> None:
        """Raise an error if there is neither a free slot nor room in the queue.

        Raises:
            ToolError: QUEUE_OVERLOADED with the queue's limit and size.
        """
        if self.running >= self.concurrency and len(self._waiting) >= self.queue:
            raise ToolError(
                ErrorCode.QUEUE_OVERLOADED,
                f"{self.running} calls are running and {len(self._waiting)} are waiting",
                hint="Retry later, or send fewer calls at once.",
                details={"queue": {"max": self.queue, "size": len(self._waiting)}},
            )

    def try_acquire(self) -> bool:
        """Acquire a free slot; return False if the caller has to wait."""
        if self.running >= self.concurrency:
            return False
        self.running += 1
        return True

    async def wait_for_slot(self) -> None:
        """Wait in line for a slot and acquire it."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.release()  # the slot was assigned at the moment this call was cancelled
            else:
                self._waiting.remove(turn)
            raise

    def release(self) -> None:
        """Release a slot; it goes to the call that has waited longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1


class Deadlines:
    """Calls back when a deadline has passed.

    Almost every call ends long before, so a deadline touches the event loop only when it is the earliest of all.
    """

    def __init__(self) -> None:
        self._deadlines: dict[object, tuple[float, Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = inf

    def add(self, key: object, seconds: float, on_expired: Callable[[], None]) -> None:
        """Call `on_expired` after this many seconds, unless the key is removed first."""
        loop = asyncio.get_running_loop()
        when = loop.time() + seconds
        self._deadlines[key] = (when, on_expired)
        if when < self._timer_due:
            self._set_timer(loop, when)

    def remove(self, key: object) -> None:
        self._deadlines.pop(key, None)

    def _set_timer(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = when
        self._timer = loop.call_at(when, self._call_expired)

    def _call_expired(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer, self._timer_due = None, inf
        now = loop.time()
        for key, (when, on_expired) in list(self._deadlines.items()):
            if when <= now:
                del self._deadlines[key]
                on_expired()
        if self._deadlines:
            self._set_timer(loop, min(when for when, _ in self._deadlines.values()))

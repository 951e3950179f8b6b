"""Bounded concurrency with a bounded queue, in which callers take turns."""

import asyncio
from collections import deque
from collections.abc import Callable
from math import inf

from cleats.contract.errors import ErrorCode, ToolError


class CallSlots:
    """At most `concurrency` calls run, at most `queue` calls wait, the rest are refused.

    Callers take turns, so that one with many calls does not keep others waiting: a slot goes to the next caller, and in
    a full queue the newest call of the caller with the most makes room for one with fewer. The calls of one caller are
    served in their order. Acquiring a free slot never touches the event loop, which is why this is not a semaphore.
    """

    def __init__(self, *, concurrency: int, queue: int) -> None:
        self.concurrency = concurrency
        self.queue = queue
        self.running = 0
        self.waiting = 0
        self._turns: dict[object, deque[asyncio.Future[None]]] = {}
        """The waiting calls by caller; the caller whose turn it is comes first."""

    def check_capacity(self, caller: object = None) -> None:
        """Raise an error if there is neither a free slot nor room in the queue for a call of this caller.

        Raises:
            ToolError: QUEUE_OVERLOADED with the queue's limit and size.
        """
        if self.running >= self.concurrency and self.waiting >= self.queue and not self._make_room(caller):
            raise self._build_overload_error()

    def _make_room(self, caller: object) -> bool:
        """Refuse a waiting call of a caller that has at least two more than this one; return whether there is one."""
        greediest = max(self._turns, key=lambda key: len(self._turns[key]), default=None)
        own_count = len(self._turns.get(caller, ()))
        if greediest is None or len(self._turns[greediest]) < own_count + 2:
            return False
        turn = self._turns[greediest][-1]
        self._forget(greediest, turn)
        if not turn.done():
            turn.set_exception(self._build_overload_error())
        return True

    def _build_overload_error(self) -> ToolError:
        return ToolError(
            ErrorCode.QUEUE_OVERLOADED,
            f"{self.running} calls are running and {self.waiting} are waiting",
            hint="Retry later, or send fewer calls at once.",
            details={"queue": {"max": self.queue, "size": self.waiting}},
        )

    def try_acquire(self) -> bool:
        """Acquire a free slot; return False if the caller has to wait."""
        if self.running >= self.concurrency:
            return False
        self.running += 1
        return True

    async def wait_for_slot(self, caller: object = None) -> None:
        """Wait in line for a slot and acquire it.

        Raises:
            ToolError: QUEUE_OVERLOADED, the call had to make room for one of another caller.
        """
        turn = asyncio.get_running_loop().create_future()
        self._turns.setdefault(caller, deque()).append(turn)
        self.waiting += 1
        try:
            await turn
        except ToolError:
            raise
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.release()  # the slot was assigned at the moment this call was cancelled
            else:
                self._forget(caller, turn)
            raise

    def _forget(self, caller: object, turn: "asyncio.Future[None]") -> None:
        turns = self._turns.get(caller)
        if turns is not None and turn in turns:
            turns.remove(turn)
            self.waiting -= 1
            if not turns:
                del self._turns[caller]

    def release(self) -> None:
        """Release a slot; it goes to the next caller's call that has waited longest."""
        while self._turns:
            caller, turns = next(iter(self._turns.items()))
            turn = turns.popleft()
            self.waiting -= 1
            del self._turns[caller]
            if turns:
                self._turns[caller] = turns  # behind the other callers
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

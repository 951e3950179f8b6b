"""Bounded concurrency with a bounded queue, first come first served."""

import asyncio
from collections import deque

from cleats.contract.errors import ErrorCode, ToolError


class Slots:
    """At most `concurrency` run, at most `queue` wait, the rest are refused.

    Taking a free slot never touches the event loop, which is why this is not a semaphore.
    """

    def __init__(self, *, concurrency: int, queue: int) -> None:
        self.concurrency = concurrency
        self.queue = queue
        self.running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def check(self) -> None:
        """Refuse when there is room neither to run nor to wait.

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

    def take(self) -> bool:
        """Take a free slot; False when one has to wait."""
        if self.running >= self.concurrency:
            return False
        self.running += 1
        return True

    async def wait(self) -> None:
        """Wait in line for a slot and take it."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.release()  # the slot was handed over in the moment we were withdrawn
            else:
                self._waiting.remove(turn)
            raise

    def release(self) -> None:
        """Give a slot back; the one who waited longest gets it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1

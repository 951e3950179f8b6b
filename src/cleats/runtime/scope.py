"""What a call runs in: it can be ended once, from outside, for one of two reasons.

This is a cancel scope with less in it than anyio's, because every call pays for it. Ending a
scope cancels its task, once; a handler's own shielded clean-up runs undisturbed after that.
"""

import asyncio
from types import TracebackType
from typing import Literal, TypeAlias

End: TypeAlias = Literal["withdrawn", "late"]


class Scope:
    """Enter it in the task that does the work, unless it has ended already."""

    __slots__ = ("_delivered", "_task", "ended")

    def __init__(self) -> None:
        self.ended: End | None = None
        self._task: asyncio.Task[object] | None = None
        self._delivered = False

    def end(self, reason: End) -> None:
        """Stop the work at its next await. The first reason counts; safe at any time."""
        if self.ended is None:
            self.ended = reason
            if self._task is not None:
                self._task.get_loop().call_soon(self._deliver)

    def __enter__(self) -> None:
        self._task = asyncio.current_task()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        task, self._task = self._task, None
        if not self._delivered or task is None:
            return False
        # Swallow our own cancel only: an outer one, of a whole connection, has to pass.
        return task.uncancel() == 0 and kind is asyncio.CancelledError

    def _deliver(self) -> None:
        # Deferred by one turn of the loop and checked here, so that work which ends in the same
        # turn is not followed by a cancel that nobody awaits.
        if self._task is not None:
            self._delivered = True
            self._task.cancel()

"""Whether the server should be sent requests: not while it stops, nor when it misses something."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import TypeAlias

from cleats.contract.errors import ErrorCode, ToolError

log = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds that one thing may take to answer."""

KEPT = 1.0
"""Seconds that an answer counts: those who ask must not become a load of their own."""

Check: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when something that is needed can be reached, and raises when not."""


class Readiness:
    """Asked by `/ready`. The log names what is missing; a caller only hears that something is."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self.stopping = False
        self._checks = dict(checks)
        self._asked = -KEPT
        self._missing: list[str] = []
        self._asking = asyncio.Lock()

    async def check(self) -> None:
        """Return when requests are welcome.

        Raises:
            ToolError: UNAVAILABLE.
        """
        if self.stopping:
            raise ToolError(ErrorCode.UNAVAILABLE, "The server is about to stop.")
        async with self._asking:
            if monotonic() - self._asked >= KEPT:
                found = await asyncio.gather(*map(self._fails, self._checks))
                self._missing = [
                    name for name, fails in zip(self._checks, found, strict=True) if fails
                ]
                self._asked = monotonic()
        if self._missing:
            raise ToolError(
                ErrorCode.UNAVAILABLE,
                "Something that the server needs cannot be reached.",
                hint="Its log says what.",
            )

    async def _fails(self, name: str) -> bool:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._checks[name]()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is not ready
            log.warning("ready.missing check=%s: %s: %s", name, type(error).__name__, error)
            return True
        return False

"""The end of a conversation: finish what is in flight, and leave nothing unsent."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from cleats.transports.stdio import Wire

log = logging.getLogger(__name__)

PEER_CHECK = 0.05
"""Seconds between two looks at whether a peer whose input ended still listens."""

LAST_WAIT = 5.0
"""Seconds that cancelled work may take to clean up; what ignores its cancel is left behind."""


async def finish(
    wire: Wire,
    working: Callable[[], set[asyncio.Task[Any]]],
    stop: Callable[[], None],
    *,
    within: float,
) -> None:
    """Wait for the work, as long as the peer listens; what does not end in time is stopped."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while (work := working()) and not wire.broken and loop.time() < end:
        await asyncio.wait(work, timeout=PEER_CHECK)
    if work:
        log.warning("drain.cut requests=%d after=%gs", len(work), within)
        stop()
        await asyncio.wait(work, timeout=LAST_WAIT)


async def flush(wire: Wire, *, within: float | None) -> None:
    """Wait until the peer has taken every answer, but not for ever."""
    try:
        async with asyncio.timeout(within):
            await wire.flushed()
    except TimeoutError:
        log.warning("drain.cut reason=unread after=%gs", within)

"""Sending records to a collector that may be away: in the background, in order, each once.

A run never waits for this. What cannot be sent now stays in the outbox, also when the process
ends, and whoever sends next begins where this one stopped. One process sends at a time; a message
that was sent and not yet crossed off when its sender was killed is sent again, and the `event_id`
in it makes that the same as once.
"""

import logging
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from cleats.contract.versions import TOOLING_VERSION
from cleats.toolsets.launch.telemetry.ledger import Ledger, Message

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

TIMEOUT: Final = 10.0
"""Seconds for one message."""

BATCH: Final = 50
"""Messages that are read from the outbox at once."""

LEAD: Final = 30.0
"""Seconds that one process stays the sender without saying so again."""

PAUSES: Final = (1.0, 2.0, 4.0, 15.0, 60.0)
"""Seconds to wait for a collector that is away, longer each time."""

IDLE: Final = 1.0
"""Seconds between two looks at an outbox that was empty."""


@dataclass(eq=False)
class Sender:
    """The way from the outbox to the collector."""

    ledger: Ledger
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By the names that messages have for them."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    _owner: str = field(default_factory=lambda: secrets.token_hex(8))
    _failures: int = 0

    async def run(self) -> None:
        """Send whatever comes, until cancelled."""
        while True:
            pause = IDLE if await self.flush() else PAUSES[min(self._failures, len(PAUSES)) - 1]
            await self.sleep(pause)

    async def flush(self) -> bool:
        """Send what waits; False when a collector is away. The others get theirs all the same."""
        try:
            collectors = await to_thread.run_sync(self._claimed)
            if not collectors:
                return True
            async with self._client() as client:
                there = [await self._flushed(client, each) for each in collectors]
        except (OSError, sqlite3.Error) as error:  # a full disk, say: the outbox is as it was
            log.warning("telemetry.outbox error=%s", type(error).__name__)
            self._failures += 1
            return False
        self._failures = 0 if all(there) else self._failures + 1
        return all(there)

    def _claimed(self) -> Sequence[str]:
        collectors = self.ledger.collectors()
        leads = collectors and self.ledger.claim(self._owner, time(), LEAD)
        return collectors if leads else ()

    async def _flushed(self, client: "httpx2.AsyncClient", collector: str) -> bool:
        while waiting := await to_thread.run_sync(self.ledger.waiting, collector, BATCH):
            for message in waiting:
                if not await self._sent(client, collector, message):
                    return False
                await to_thread.run_sync(self.ledger.sent, message)
        return True

    def _client(self) -> "httpx2.AsyncClient":
        import httpx2  # noqa: PLC0415 - only where there is a collector

        headers = {"content-type": "application/json", "user-agent": f"cleats/{TOOLING_VERSION}"}
        return httpx2.AsyncClient(
            headers=headers, timeout=TIMEOUT, trust_env=False, follow_redirects=False
        )

    async def _sent(self, client: "httpx2.AsyncClient", collector: str, message: Message) -> bool:
        """Whether a message need not be sent again: it arrived, or it never will."""
        import httpx2  # noqa: PLC0415 - as above

        try:
            with anyio.fail_after(TIMEOUT):
                reply = await client.request(
                    message.method,
                    collector.rstrip("/") + message.path,
                    content=message.body,
                    headers=self._authorization(message),
                )
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL):
            return False
        if reply.status_code >= 500 or reply.status_code == 429:
            return False
        if reply.status_code >= 400:
            log.warning("telemetry.refused path=%s status=%d", message.path, reply.status_code)
        return True

    def _authorization(self, message: Message) -> dict[str, str]:
        token = self.tokens.get(message.token)
        return {"authorization": f"Bearer {token}"} if token else {}

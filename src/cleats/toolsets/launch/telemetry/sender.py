"""Delivery of records to a collector that may be unavailable: in the background and in order.

A run never waits for this. A message that cannot be sent stays in the outbox, even when the process
ends, and the next sender continues with it. One process sends at a time; a message that was sent
but not yet removed when its sender was killed is sent again, and its `event_id` lets the collector
ignore the repetition.
"""

import logging
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Final

import anyio
from anyio import to_thread

from cleats.system.http_client import HttpClient, RequestFailedError
from cleats.toolsets.launch.telemetry.ledger import OutboxMessage, TelemetryLedger

log = logging.getLogger(__name__)

MESSAGE_TIMEOUT_SECONDS: Final = 10.0
"""Time limit for one message."""

MAX_REPLY_BYTES: Final = 1 << 16
"""Bytes of a reply that are read; only its status counts."""

MAX_BATCH_MESSAGES: Final = 50
"""Messages that are read from the outbox at once."""

SENDER_LEASE_SECONDS: Final = 30.0
"""Time that a process remains the sender without renewing its claim."""

RETRY_PAUSE_SECONDS: Final = (1.0, 2.0, 4.0, 15.0, 60.0)
"""Pauses before retrying an unavailable collector, longer each time."""

IDLE_PAUSE_SECONDS: Final = 1.0
"""Pause after an empty outbox."""


@dataclass(eq=False)
class TelemetrySender:
    """Sends messages from the outbox to their collectors."""

    ledger: TelemetryLedger
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secrets by the names that messages have for them."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    _owner: str = field(default_factory=lambda: secrets.token_hex(8))
    _failures: int = 0

    async def run(self) -> None:
        """Send all messages until cancelled."""
        while True:
            pause = (
                IDLE_PAUSE_SECONDS
                if await self.flush()
                else RETRY_PAUSE_SECONDS[min(self._failures, len(RETRY_PAUSE_SECONDS)) - 1]
            )
            await self.sleep(pause)

    async def flush(self) -> bool:
        """Send the waiting messages to all available collectors; return False if one is not."""
        try:
            collectors = await to_thread.run_sync(self._claim_collectors)
            if not collectors:
                return True
            async with HttpClient(timeout=MESSAGE_TIMEOUT_SECONDS, max_bytes=MAX_REPLY_BYTES) as client:
                flushed = [await self._flush_collector(client, collector) for collector in collectors]
        except (OSError, sqlite3.Error) as error:  # such as a full disk: the outbox is unchanged
            log.warning("telemetry.outbox error=%s", type(error).__name__)
            self._failures += 1
            return False
        self._failures = 0 if all(flushed) else self._failures + 1
        return all(flushed)

    def _claim_collectors(self) -> Sequence[str]:
        collectors = self.ledger.list_collectors()
        is_sender = collectors and self.ledger.claim_sender(self._owner, time(), SENDER_LEASE_SECONDS)
        return collectors if is_sender else ()

    async def _flush_collector(self, client: HttpClient, collector: str) -> bool:
        while waiting := await to_thread.run_sync(self.ledger.list_waiting, collector, MAX_BATCH_MESSAGES):
            for message in waiting:
                if not await self._send_message(client, collector, message):
                    return False
                await to_thread.run_sync(self.ledger.mark_sent, message)
        return True

    async def _send_message(self, client: HttpClient, collector: str, message: OutboxMessage) -> bool:
        """Send a message; return True if it arrived or was rejected for good."""
        url = collector.rstrip("/") + message.path
        try:
            reply = await client.send(message.method, url, message.body, self._make_auth_headers(message))
        except RequestFailedError:
            return False
        if reply.status >= 500 or reply.status == 429:
            return False
        if reply.status >= 400:
            log.warning("telemetry.refused path=%s status=%d", message.path, reply.status)
        return True

    def _make_auth_headers(self, message: OutboxMessage) -> dict[str, str]:
        token = self.tokens.get(message.token)
        return {"authorization": f"Bearer {token}"} if token else {}

"""The right to drive a run: waited for, kept alive, and noticed when it is gone.

A driver renews its lease while it works. If its process dies, the lease runs out and anybody may
take the run over; if the run is cancelled or taken over, the driver finds out within half a
second and stops its worker. Until then the epoch keeps it from writing.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from secrets import token_hex
from time import monotonic, time
from typing import TypeVar

import anyio
from anyio import to_thread

from cleats.toolsets.launch.store.port import Lease, LeaseLost, Run, RunStore

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long a lease lasts, and how often things are looked at. Seconds."""

    lease: float = 10.0
    renew: float = 2.0
    look: float = 0.4
    """Between two looks at whether the lease is still ours."""
    wait: float = 0.1
    """Between two tries to get a lease that somebody else has."""


@dataclass(eq=False, slots=True)
class Held:
    """A lease of ours. Its scope ends when it is lost."""

    lease: Lease
    lost: bool = False
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _scopes: list[anyio.CancelScope] = field(default_factory=list)

    def lose(self) -> None:
        """Stop what is done under the lease."""
        self.lost = True
        for scope in self._scopes:
            scope.cancel()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Do something that ends when the lease is lost.

        Raises:
            LeaseLost: it was.
        """
        if not self.lost:
            with anyio.CancelScope() as scope:
                self._scopes.append(scope)
                try:
                    yield
                finally:
                    self._scopes.remove(scope)
        if self.lost:
            raise LeaseLost(self.lease.run_id)


class Leases:
    """The leases of one process."""

    def __init__(self, store: RunStore, pace: Pace) -> None:
        self._store = store
        self._pace = pace
        self._owner = token_hex(8)
        self._taken = 0
        self._held: dict[str, Held] = {}

    @asynccontextmanager
    async def hold(
        self, run_id: str, look: Callable[[Run], None] = lambda _run: None
    ) -> AsyncIterator[Held]:
        """Wait for the lease of a run, and keep it while the block runs.

        `look` sees the run before every try, and may raise to give up.
        """
        lease = await self._wait(run_id, look)
        held = self._held[run_id] = Held(lease)
        beat = asyncio.create_task(self._beat(held))
        try:
            yield held
        finally:
            beat.cancel()
            with anyio.CancelScope(shield=True):
                with suppress(asyncio.CancelledError):
                    await beat
                await self._release(lease)
            if self._held.get(run_id) is held:
                del self._held[run_id]
            held.released.set()

    async def drop(self, run_id: str, patience: float) -> None:
        """Stop what this process does with a run, and wait until it has stopped."""
        if (held := self._held.get(run_id)) is not None:
            held.lose()
            with anyio.move_on_after(patience):
                await held.released.wait()

    async def _wait(self, run_id: str, look: Callable[[Run], None]) -> Lease:
        self._taken += 1
        owner = f"{self._owner}:{self._taken}"
        while True:
            run = await to_thread.run_sync(self._store.get, run_id)
            look(run)
            if not run.owner or run.expires <= time():
                lease = await to_thread.run_sync(
                    self._store.acquire, run_id, owner, self._pace.lease
                )
                if lease is not None:
                    return lease
            await anyio.sleep(self._pace.wait)

    async def _release(self, lease: Lease) -> None:
        try:
            await to_thread.run_sync(self._store.release, lease)
        except Exception:
            # What was done is done, and the lease runs out by itself.
            log.exception("lease.release run=%s", lease.run_id)

    async def _beat(self, held: Held) -> None:
        renewed = monotonic()
        while not held.lost:
            await asyncio.sleep(self._pace.look)
            try:
                if monotonic() - renewed >= self._pace.renew:
                    await to_thread.run_sync(self._store.renew, held.lease, self._pace.lease)
                    renewed = monotonic()
                elif not await to_thread.run_sync(self._store.held, held.lease):
                    held.lose()
            except LeaseLost:
                held.lose()
            except Exception:
                # The epoch guards every write; a look that failed may succeed the next time.
                log.exception("lease.look run=%s", held.lease.run_id)

"""Leases on runs: waiting for one, renewing it, and noticing its loss.

A driver renews its lease while it works. If its process dies, the lease expires and any process may
take the run over; if the run is cancelled or taken over, the driver finds out within half a second
and stops its worker. Until then the epoch keeps it from writing.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from secrets import token_hex
from time import monotonic

import anyio
from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.store.model import LeaseLost, Run, RunLease, StoreUnreachableError
from cleats.toolsets.launch.store.run_store import RunStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTiming:
    """The duration of a lease and the intervals of its checks, in seconds."""

    lease_seconds: float = 10.0
    renew_seconds: float = 2.0
    check_seconds: float = 0.4
    """Interval between two checks that the lease is still held."""
    retry_seconds: float = 0.1
    """Interval between two attempts to get a lease that another driver has."""


@dataclass(eq=False, slots=True)
class HeldLease:
    """A lease of this process. The block that works under it is cancelled when it is lost."""

    lease: RunLease
    is_lost: bool = False
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _scope: anyio.CancelScope | None = None

    def mark_lost(self) -> None:
        """Stop the work that is done under the lease."""
        self.is_lost = True
        if self._scope is not None:
            self._scope.cancel()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run a block that is cancelled when the lease is lost.

        Raises:
            LeaseLost: the lease was lost.
        """
        if not self.is_lost:
            with anyio.CancelScope() as self._scope:
                yield
        if self.is_lost:
            raise LeaseLost(self.lease.run_id)


class LeaseManager:
    """The leases of one process."""

    def __init__(self, store: RunStore, timing: LeaseTiming) -> None:
        self._store = store
        self._timing = timing
        self._owner = token_hex(8)
        self._acquire_count = 0
        self._held_leases: dict[str, HeldLease] = {}

    @asynccontextmanager
    async def hold(self, run_id: str, check_run: Callable[[Run], None] = lambda _run: None) -> AsyncIterator[HeldLease]:
        """Wait for the lease of a run, and renew it while the block runs.

        `check_run` sees the run before every attempt, and may raise to give up.
        """
        lease, asked_at = await self._wait_for_lease(run_id, check_run)
        end_lease = self._store.release
        held_lease = self._held_leases[run_id] = HeldLease(lease)
        heartbeat = asyncio.create_task(self._keep_alive(held_lease, asked_at))
        try:
            yield held_lease
        except StoreUnreachableError:
            end_lease = self._store.abandon  # the work is unfinished and nothing says so: a sweep has to find the run
            raise
        finally:
            heartbeat.cancel()
            with anyio.CancelScope(shield=True):
                with suppress(asyncio.CancelledError):
                    await heartbeat
                try:
                    await to_thread.run_sync(end_lease, lease)
                except Exception:
                    # The work is recorded, and the lease expires by itself.
                    log.exception("lease.release run=%s", run_id)
            if self._held_leases.get(run_id) is held_lease:
                del self._held_leases[run_id]
            held_lease.released.set()

    async def drop(self, run_id: str, max_wait: float) -> None:
        """Stop the work of this process on a run, and wait until it has stopped."""
        if (held_lease := self._held_leases.get(run_id)) is not None:
            held_lease.mark_lost()
            with anyio.move_on_after(max_wait):
                await held_lease.released.wait()

    async def _wait_for_lease(self, run_id: str, check_run: Callable[[Run], None]) -> tuple[RunLease, float]:
        """Return the lease, and the monotonic time from which it certainly lasts as long as it should."""
        self._acquire_count += 1
        owner = f"{self._owner}:{self._acquire_count}"
        while True:
            run = await to_thread.run_sync(self._store.get, run_id)
            check_run(run)
            if not run.owner or run.expires <= await to_thread.run_sync(self._store.read_clock):
                asked_at = monotonic()
                lease = await to_thread.run_sync(self._store.acquire, run_id, owner, self._timing.lease_seconds)
                if lease is not None:
                    return lease, asked_at
            await anyio.sleep(self._timing.retry_seconds)

    async def _keep_alive(self, held_lease: HeldLease, renewed_at: float) -> None:
        """Renew the lease until it is lost; it is also lost when the store does not answer for as long as it lasts.

        Another driver may have the run by then. A process that was suspended, whose store answers, asks first.
        """
        timing, lease = self._timing, held_lease.lease
        while not held_lease.is_lost:
            await asyncio.sleep(timing.check_seconds)
            asked_at = monotonic()
            try:
                with anyio.fail_after(max(timing.renew_seconds, renewed_at + timing.lease_seconds - asked_at)):
                    if asked_at - renewed_at >= timing.renew_seconds:
                        await to_thread.run_sync(self._store.renew, lease, timing.lease_seconds, abandon_on_cancel=True)
                        renewed_at = asked_at
                    elif not await to_thread.run_sync(self._store.is_held, lease, abandon_on_cancel=True):
                        held_lease.mark_lost()
            except LeaseLost:
                held_lease.mark_lost()
            except Exception:
                # The epoch guards every write; a check that failed may succeed the next time.
                log.exception("lease.look run=%s", lease.run_id)
                if monotonic() - renewed_at >= timing.lease_seconds:
                    held_lease.mark_lost()


MAX_CONCURRENT_RUNS = 4
"""Runs that are driven at the same time; the others wait. Each has a worker process that may keep a
core busy. A call that drives a run does not wait behind them."""


class BackgroundDriver:
    """The background drives of one server. They are stopped, not finished, at its end."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_RUNS)
        self._open = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept drives while the block runs; at its end stop them and wait for them."""
        self._open = True
        try:
            yield
        finally:
            self._open = False
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def start(self, run_id: str, drive: Callable[[], Awaitable[None]]) -> bool:
        """Drive a run unless it is driven already; return False if drives are not accepted."""
        if not self._open:
            return False
        if run_id not in self._tasks:
            task = asyncio.get_running_loop().create_task(self._drive_logged(run_id, drive))
            self._tasks[run_id] = task
            task.add_done_callback(lambda _: self._tasks.pop(run_id))
        return True

    async def _drive_logged(self, run_id: str, drive: Callable[[], Awaitable[None]]) -> None:
        try:
            async with self._slots:
                await drive()
        except ToolError as error:
            # The log of the run has the error, and its status shows the issue.
            log.info("drive.stop run=%s code=%s", run_id, error.code.name)
        except Exception:
            log.exception("drive.crash run=%s", run_id)

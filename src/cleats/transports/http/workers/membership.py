"""One worker as a member of its group: where its connections come from, and what it does for the others."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from cleats.runtime.recent_calls import RecentCalls
from cleats.runtime.server_status import ServerStatus
from cleats.transports.http.guard import ConsoleEntry
from cleats.transports.http.monitoring import HttpTraffic
from cleats.transports.http.service import CLEANUP_TIMEOUT_SECONDS
from cleats.transports.http.workers.connections import SupervisorChannel
from cleats.transports.http.workers.figures import FiguresExchange
from cleats.transports.http.workers.group import HttpWorker
from cleats.transports.http.workers.peers import WorkerPeers
from cleats.transports.http.workers.routing import (
    CONSOLE_SLOT,
    GUARD_TARGET,
    ConsoleRouter,
    SessionRouter,
    mcp_target,
)


class WorkerMembership:
    """The connections of one worker, and its exchange with the other ones."""

    def __init__(
        self, worker: HttpWorker, status: ServerStatus, traffic: HttpTraffic, recent_calls: RecentCalls
    ) -> None:
        self.channel = SupervisorChannel(worker.seat.channel)
        self.limiters = worker.limiters
        self._peers = WorkerPeers(worker.folder, worker.seat.slot, worker.count)
        self._figures = FiguresExchange(worker.folder, self._peers, status, traffic, recent_calls)
        self._targets: dict[str, ASGIApp] = {}

    @property
    def forwarded_count(self) -> int:
        """The requests of this worker's clients that other workers are answering."""
        return self._peers.forwarded_count

    def route_sessions(self, endpoint: ASGIApp, caller: str) -> ASGIApp:
        """Return the MCP endpoint of a caller that finds the sessions of every worker."""
        router = SessionRouter(endpoint, self._peers, caller)
        self._targets[mcp_target(caller)] = router
        return router

    @asynccontextmanager
    async def join(self, guard: ASGIApp, console: ConsoleEntry | None) -> AsyncIterator[ASGIApp]:
        """Yield the application that answers on this worker's connections; the others can reach it meanwhile."""
        self._figures.restore()
        targets: Mapping[str, ASGIApp] = {**self._targets, GUARD_TARGET: guard}
        await self._peers.serve(targets, self._figures.encode)
        saving = asyncio.create_task(self._figures.save_regularly())
        try:
            if console is None or self._peers.slot == CONSOLE_SLOT:
                yield guard
            else:
                yield ConsoleRouter(guard, console, self._peers)
        finally:
            saving.cancel()
            self._figures.encode()
            await self._peers.close(CLEANUP_TIMEOUT_SECONDS)

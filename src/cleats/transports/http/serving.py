"""The HTTP API put together and served until it is asked to stop."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from starlette.types import ASGIApp

from cleats.contract.tools import Toolset
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.shutdown import Shutdown
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings
from cleats.transports.http import lines, listening, web
from cleats.transports.http.api import Api
from cleats.transports.http.calls import Caller
from cleats.transports.http.guard import Guard
from cleats.transports.http.metrics import Traffic
from cleats.transports.http.policy import Policy
from cleats.transports.http.readiness import Check, Readiness
from cleats.transports.http.shares import Share
from cleats.transports.http.tokens import ANYONE
from cleats.transports.http.toolset_routes import Addresses, brought

log = logging.getLogger(__name__)

DRAIN_CHECK = 0.05
"""Seconds between two looks at whether the last calls have ended."""


@dataclass(frozen=True)
class Entrance:
    """What one caller finds behind the door."""

    share: Share
    dispatcher: Dispatcher
    mcp: ASGIApp


def checks(served: Sequence[Toolset]) -> Mapping[str, Check]:
    """What must be reachable for the server to be ready, by the toolset that needs it."""
    return {each.name: each.ready for each in served if each.ready is not None}


async def serve(
    settings: Settings,
    entrances: Sequence[Entrance],
    listener: socket.socket,
    *,
    vitals: Vitals,
    ready: Mapping[str, Check],
    hang_up: Callable[[], Awaitable[None]],
    shutdown: Shutdown,
) -> None:
    """Serve until the shutdown, then let calls finish for `drain` seconds and withdraw the rest.

    Before that the server goes on for `http_linger` seconds and says that it will stop. `hang_up`
    is called when no call is left that could be answered, and ends the MCP sessions. `ready` is
    what `/ready` asks.
    """
    readiness = Readiness(ready)
    callers = [Caller(entrance.dispatcher) for entrance in entrances]
    traffic = Traffic()

    async def stop() -> None:
        await shutdown.asked.wait()
        readiness.stopping = True
        if settings.http_linger:
            log.info("serve.linger seconds=%g", settings.http_linger)
            await asyncio.sleep(settings.http_linger)

    async def drained() -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + settings.drain
        # Calls of MCP sessions count as well, and nothing tells of their ends.
        while vitals.in_flight() and loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_CHECK)
        if left := len(vitals.in_flight()):
            log.warning("drain.cut requests=%d after=%gs", left, settings.drain)
            for caller in callers:
                caller.cancel()
        await hang_up()

    tokens = [each.share.token for each in entrances if each.share.token is not ANYONE]
    apps = {
        entrance.share.token.name: web.application(
            Api(
                registry=entrance.dispatcher.registry,
                vitals=vitals,
                traffic=traffic,
                caller=caller,
                fence=entrance.share.fence,
                body_limit=settings.http_body_limit,
                secured=bool(tokens),
                readiness=readiness,
            ),
            entrance.mcp,
            entrance.share.token.name,
        )
        for entrance, caller in zip(entrances, callers, strict=True)
    }
    policy = Policy(
        host=listener.getsockname()[0],
        tokens=tokens,
        origins=settings.http_origins,
        hosts=settings.http_hosts,
        open_probes=settings.http_probes == "open",
    )
    every = {each.name: each for entrance in entrances for each in entrance.share.toolsets}
    access = lines.writer(lines.outlet(settings.http_access_log, settings.http_log_bytes))
    guard = Guard(apps, policy, traffic, Addresses(brought(every.values())), access)
    await listening.serve(guard, listener, stop=stop(), drained=drained)

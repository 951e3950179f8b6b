"""The HTTP API put together and served until it is asked to stop."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence

from starlette.types import ASGIApp

from cleats.contract.tools import Toolset
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.shutdown import Shutdown
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings
from cleats.transports.http import listening, web
from cleats.transports.http.api import Api
from cleats.transports.http.calls import Caller
from cleats.transports.http.fence import Fence
from cleats.transports.http.metrics import Traffic
from cleats.transports.http.policy import Policy
from cleats.transports.http.redaction import Redaction

log = logging.getLogger(__name__)

DRAIN_CHECK = 0.05
"""Seconds between two looks at whether the last calls have ended."""


def shielded(settings: Settings, fence: Fence, served: Sequence[Toolset]) -> list[Toolset]:
    """The toolsets as callers from the network may use them, over routes and over MCP."""
    known = [fence.repo, settings.project_dir, *settings.http_roots, settings.cache_dir]
    redaction = Redaction(known)
    return [redaction.around(fence.around(toolset)) for toolset in served]


async def serve(
    settings: Settings,
    dispatcher: Dispatcher,
    listener: socket.socket,
    *,
    vitals: Vitals,
    fence: Fence,
    mcp: ASGIApp,
    hang_up: Callable[[], Awaitable[None]],
    shutdown: Shutdown,
) -> None:
    """Serve until the shutdown, then let calls finish for `drain` seconds and withdraw the rest.

    `hang_up` is called when no call is left that could be answered, and ends the MCP sessions.
    """
    caller = Caller(dispatcher)

    async def drained() -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + settings.drain
        # Calls of MCP sessions count as well, and nothing tells of their ends.
        while vitals.in_flight() and loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_CHECK)
        if left := len(vitals.in_flight()):
            log.warning("drain.cut requests=%d after=%gs", left, settings.drain)
            caller.cancel()
        await hang_up()

    api = Api(
        registry=dispatcher.registry,
        vitals=vitals,
        traffic=Traffic(),
        caller=caller,
        fence=fence,
        body_limit=settings.http_body_limit,
        secured=bool(settings.http_token),
    )
    policy = Policy(
        host=listener.getsockname()[0],
        token=settings.http_token,
        origins=settings.http_origins,
        hosts=settings.http_hosts,
    )
    application = web.application(api, policy, mcp)
    stop = shutdown.asked.wait()
    await listening.serve(application, listener, stop=stop, drained=drained)

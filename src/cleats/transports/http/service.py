"""The assembled HTTP API, served until it is asked to stop."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Toolset
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.server_status import ServerStatus
from cleats.runtime.shutdown import Shutdown
from cleats.settings import Settings
from cleats.transports.http import access_log, server
from cleats.transports.http.api import HttpApi
from cleats.transports.http.caller_access import CallerAccess
from cleats.transports.http.calls import CallRunner
from cleats.transports.http.guard import RequestGuard
from cleats.transports.http.monitoring import HttpTraffic, ReadinessCheck, ReadinessChecker
from cleats.transports.http.policy import AccessPolicy
from cleats.transports.http.requests import read_request_id
from cleats.transports.http.responses import ApiError, error_response, missing_route
from cleats.transports.http.routes import MCP_PATH
from cleats.transports.http.tokens import ANONYMOUS_TOKEN
from cleats.transports.http.toolset_routes import ToolsetRouteIndex, build_endpoint, collect_routes


def build_application(api: HttpApi, mcp: ASGIApp | None = None, caller: str = "") -> ASGIApp:
    """Build the application of one caller; `mcp` answers at `/mcp`."""
    routes: list[BaseRoute] = [Route(row.path, handler, methods=row.methods) for row, handler in api.list_endpoints()]
    routes += [
        Route(
            toolset_route.path,
            build_endpoint(toolset_route, limit=api.body_limit, caller=caller),
            methods=[toolset_route.method],
        )
        for toolset_route in collect_routes(api.registry.toolsets)
    ]
    routes.append(Route("/", _redirect_home, methods=["GET"]))
    if mcp is not None:
        routes.append(Route(MCP_PATH, mcp))
    app = Starlette(
        routes=routes,
        exception_handlers={
            ApiError: _handle_api_error,
            HTTPException: _handle_missing_route,
            Exception: _handle_crash,
        },
    )
    app.router.redirect_slashes = False
    return app


async def _redirect_home(_request: Request) -> Response:
    """Redirect from the root path to the documentation."""
    return RedirectResponse("/docs")


async def _handle_api_error(request: Request, api_error: Exception) -> Response:
    assert isinstance(api_error, ApiError)  # noqa: S101 - for the type checker
    return error_response(api_error, read_request_id(request))


async def _handle_missing_route(request: Request, _error: Exception) -> Response:
    """Answer an unknown route or method; to a caller they are the same."""
    return error_response(missing_route(request.method, request.url.path), read_request_id(request))


async def _handle_crash(request: Request, crash: Exception) -> Response:
    details = {"cause_class": type(crash).__name__}
    error = ToolError(ErrorCode.INTERNAL, "The request failed unexpectedly.", details=details)
    return error_response(ApiError(error), read_request_id(request))


log = logging.getLogger(__name__)

DRAIN_CHECK_SECONDS = 0.05
"""The interval between two checks whether the last calls have ended."""


@dataclass(frozen=True)
class CallerApp:
    """The access, the dispatcher and the MCP endpoint of one caller."""

    access: CallerAccess
    dispatcher: Dispatcher
    mcp: ASGIApp


def collect_ready_checks(toolsets: Sequence[Toolset]) -> Mapping[str, ReadinessCheck]:
    """Return the readiness checks of the toolsets, by toolset name."""
    return {toolset.name: toolset.ready for toolset in toolsets if toolset.ready is not None}


async def serve_api(
    settings: Settings,
    caller_apps: Sequence[CallerApp],
    listener: socket.socket,
    *,
    vitals: ServerStatus,
    ready_checks: Mapping[str, ReadinessCheck],
    close_sessions: Callable[[], Awaitable[None]],
    shutdown: Shutdown,
) -> None:
    """Serve until the shutdown, then let calls finish for `drain` seconds and cancel the rest.

    Before that, the server goes on for `http_linger` seconds and reports that it will stop.
    `close_sessions` is called when no call is left that could be answered, and ends the MCP
    sessions. `ready_checks` are what `/ready` runs.
    """
    readiness = ReadinessChecker(ready_checks)
    runners = [CallRunner(caller_app.dispatcher) for caller_app in caller_apps]
    traffic = HttpTraffic()

    async def wait_for_stop() -> None:
        await shutdown.requested.wait()
        readiness.stopping = True
        if settings.http.linger:
            log.info("serve.linger seconds=%g", settings.http.linger)
            await asyncio.sleep(settings.http.linger)

    async def drain_calls() -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + settings.drain
        # Calls of MCP sessions count as well, and nothing signals their end.
        while vitals.list_open_calls() and loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_CHECK_SECONDS)
        if open_calls := len(vitals.list_open_calls()):
            log.warning("drain.cut requests=%d after=%gs", open_calls, settings.drain)
            for caller in runners:
                caller.cancel_all()
        await close_sessions()

    tokens = [item.access.token for item in caller_apps if item.access.token is not ANONYMOUS_TOKEN]
    apps = {
        caller_app.access.token.name: build_application(
            HttpApi(
                registry=caller_app.dispatcher.registry,
                vitals=vitals,
                traffic=traffic,
                runner=runner,
                path_guard=caller_app.access.path_guard,
                body_limit=settings.http.body_limit,
                secured=bool(tokens),
                readiness=readiness,
            ),
            caller_app.mcp,
            caller_app.access.token.name,
        )
        for caller_app, runner in zip(caller_apps, runners, strict=True)
    }
    policy = AccessPolicy(
        host=listener.getsockname()[0],
        tokens=tokens,
        origins=settings.http.origins,
        hosts=settings.http.hosts,
        open_probes=settings.http.probes == "open",
    )
    toolsets_by_name = {item.name: item for caller_app in caller_apps for item in caller_app.access.toolsets}
    write_access = access_log.build_writer(access_log.open_outlet(settings.http.access_log, settings.http.log_bytes))
    guard = RequestGuard(
        apps, policy, traffic, ToolsetRouteIndex(collect_routes(toolsets_by_name.values())), write_access
    )
    await server.run_server(guard, listener, stop=wait_for_stop(), drain=drain_calls)

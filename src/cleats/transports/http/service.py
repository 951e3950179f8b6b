"""The assembled HTTP API, served by uvicorn (without its signal handling and draining) until it is asked to stop."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.server_status import ServerStatus
from cleats.runtime.shutdown import Shutdown
from cleats.settings import Settings
from cleats.transports.http import monitoring
from cleats.transports.http.api import CallRunner, HttpApi
from cleats.transports.http.caller_access import CallerAccess
from cleats.transports.http.guard import ConsoleEntry, RequestGuard
from cleats.transports.http.monitoring import HttpTraffic, ReadinessCheck, ReadinessChecker
from cleats.transports.http.requests import read_request_id
from cleats.transports.http.responses import ApiError, error_response, missing_route
from cleats.transports.http.routes import API_ROUTES, MCP_PATH, ToolsetRouteIndex, build_endpoint, collect_routes
from cleats.transports.http.tokens import ANONYMOUS_TOKEN, AccessPolicy, build_limiters

if TYPE_CHECKING:
    from cleats.transports.http.workers.membership import WorkerMembership

CLEANUP_TIMEOUT_SECONDS = 5.0
"""The time that cancelled calls may take to clean up; those that ignore it are abandoned."""


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is any free one.

    Raises:
        OSError: The host is unknown, or the address is in use or not local.
    """
    [family, _, _, _, address] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=2048)


def base_url(listener: socket.socket) -> str:
    """Return the URL for a client on this machine."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class ConnectionSource(Protocol):
    """Something other than a listening socket that connections come from."""

    async def receive_connections(
        self, adopt: Callable[[socket.socket], object], count_open: Callable[[], int]
    ) -> None:
        """Pass every connection to `adopt`; `count_open` returns how many are open."""


async def run_server(
    app: ASGIApp,
    listener: socket.socket | ConnectionSource,
    *,
    stop: Awaitable[object],
    drain: Callable[[], Awaitable[None]],
) -> None:
    """Serve until asked to stop, wait for `drain`, and close what is open `CLEANUP_TIMEOUT_SECONDS` later."""
    quiet: dict[str, Any] = {"log_config": None, "log_level": "warning", "access_log": False}
    bare: dict[str, Any] = {"ws": "none", "lifespan": "off", "proxy_headers": False, "server_header": False}
    server = _SignalFreeServer(uvicorn.Config(app, http=select_protocol(), **quiet, **bare))
    listeners = [listener] if isinstance(listener, socket.socket) else []
    serving = asyncio.ensure_future(server.serve(sockets=listeners))
    stopping = asyncio.ensure_future(stop)
    receiving = None
    if not isinstance(listener, socket.socket):
        receiving = asyncio.ensure_future(server.serve_connections(listener))
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if receiving is not None:
        receiving.cancel()
    server.should_exit = True
    await drain()
    try:
        async with asyncio.timeout(CLEANUP_TIMEOUT_SECONDS):
            await asyncio.shield(serving)
    except TimeoutError:
        for task in list(server.server_state.tasks):
            task.cancel()
        server.force_exit = True
        with suppress(asyncio.CancelledError):
            await serving


class _SignalFreeServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._adoptions: set[asyncio.Task[None]] = set()

    async def serve_connections(self, source: ConnectionSource) -> None:
        """Serve connections of a source from the moment the server has started."""
        while not self.started:  # noqa: ASYNC110 - uvicorn has no event for it, and starts within a few turns
            await asyncio.sleep(0)
        await source.receive_connections(self.adopt_connection, self.count_open)

    def adopt_connection(self, connection: socket.socket) -> None:
        """Serve a connection that another process accepted."""
        task = asyncio.get_running_loop().create_task(self._adopt(connection))
        self._adoptions.add(task)
        task.add_done_callback(self._adoptions.discard)

    async def _adopt(self, connection: socket.socket) -> None:
        def create_protocol() -> asyncio.Protocol:
            build: Any = self.config.http_protocol_class
            protocol: asyncio.Protocol = build(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return protocol

        with suppress(OSError):  # the client has gone already
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(create_protocol, connection)

    def count_open(self) -> int:
        """Return the number of open connections."""
        return len(self.server_state.connections) + len(self._adoptions)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # The runtime handles signals. uvicorn would raise the signal again at the end, and the process would end by the
        # signal instead of with exit code 0.
        yield


def select_protocol() -> Any:
    """Return the fastest HTTP protocol that is installed."""
    if find_spec("httptools") is None:
        return "h11"
    from cleats.transports.http.connection import HttpConnection  # noqa: PLC0415

    return HttpConnection


def build_application(api: HttpApi, mcp: ASGIApp | None = None, caller: str = "") -> ASGIApp:
    """Build the application of one caller; `mcp` answers at `/mcp`."""
    routes: list[BaseRoute] = [Route(row.path, getattr(api, row.endpoint), methods=row.methods) for row in API_ROUTES]
    for toolset_route in collect_routes(api.registry.toolsets):
        endpoint = build_endpoint(toolset_route, limit=api.body_limit, caller=caller)
        routes.append(Route(toolset_route.path, endpoint, methods=[toolset_route.method]))
    routes.append(Route("/", RedirectResponse("/docs"), methods=["GET"]))
    if mcp is not None:
        routes.append(Route(MCP_PATH, mcp))
    handlers = {ApiError: _handle_api_error, HTTPException: _handle_missing_route, Exception: _handle_crash}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app


async def _handle_api_error(request: Request, api_error: Exception) -> Response:
    assert isinstance(api_error, ApiError)  # noqa: S101 - for the type checker
    return error_response(api_error, read_request_id(request))


async def _handle_missing_route(request: Request, _error: Exception) -> Response:
    return error_response(missing_route(request.method, request.url.path), read_request_id(request))


async def _handle_crash(request: Request, crash: Exception) -> Response:
    details = {"cause_class": type(crash).__name__}
    error = ApiError(ToolError(ErrorCode.INTERNAL, "The request failed unexpectedly.", details=details))
    return error_response(error, read_request_id(request))


log = logging.getLogger(__name__)

DRAIN_CHECK_SECONDS = 0.05
"""The interval between two checks whether the last calls have ended."""


@dataclass(frozen=True)
class CallerApp:
    """The access, the dispatcher and the MCP endpoint of one caller."""

    access: CallerAccess
    dispatcher: Dispatcher
    mcp: ASGIApp


async def serve_api(
    settings: Settings,
    caller_apps: Sequence[CallerApp],
    listener: "socket.socket | WorkerMembership",
    close_sessions: Callable[[], Awaitable[None]],
    shutdown: Shutdown,
    *,
    host: str,
    vitals: ServerStatus,
    traffic: HttpTraffic,
    ready_checks: Mapping[str, ReadinessCheck],
    console: ConsoleEntry | None = None,
) -> None:
    """Serve until the shutdown, then let calls finish for `drain` seconds and cancel the rest.

    Before that, the server goes on for `http_linger` seconds and reports that it will stop; for a worker, its
    supervisor counts them. `close_sessions` is called when no call is left that could be answered, and ends the MCP
    sessions. `ready_checks` are what `/ready` runs.
    """
    readiness = ReadinessChecker(ready_checks)
    runners = [CallRunner(caller_app.dispatcher) for caller_app in caller_apps]
    worker = None if isinstance(listener, socket.socket) else listener

    async def wait_for_stop() -> None:
        await shutdown.requested.wait()
        readiness.stopping = True
        if worker is not None:
            await worker.channel.closed.wait()
        elif settings.http.linger:
            log.info("serve.linger seconds=%g", settings.http.linger)
            await asyncio.sleep(settings.http.linger)

    def has_forwarded_requests() -> bool:
        return worker is not None and worker.forwarded_count > 0

    async def drain_calls() -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + settings.drain
        # Calls of MCP sessions count as well, and those that another worker answers; nothing signals their end.
        while (vitals.list_open_calls() or has_forwarded_requests()) and loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_CHECK_SECONDS)
        if open_calls := len(vitals.list_open_calls()):
            log.warning("drain.cut requests=%d after=%gs", open_calls, settings.drain)
            vitals.cancel_open_calls()
        if console is not None:
            console.stop()
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
    http = settings.http
    open_probes = http.probes == "open"
    policy = AccessPolicy(host=host, tokens=tokens, origins=http.origins, hosts=http.hosts, open_probes=open_probes)
    toolsets_by_name = {item.name: item for caller_app in caller_apps for item in caller_app.access.toolsets}
    write_access = monitoring.build_writer(monitoring.open_outlet(settings.http.access_log, settings.http.log_bytes))
    toolset_routes = ToolsetRouteIndex(collect_routes(toolsets_by_name.values()))
    limiters = build_limiters(tokens) if worker is None else worker.limiters
    guard = RequestGuard(apps, policy, traffic, toolset_routes, write_access, limiters=limiters, console=console)
    if isinstance(listener, socket.socket):
        await run_server(guard, listener, stop=wait_for_stop(), drain=drain_calls)
        return
    async with listener.join(guard, console) as app:
        await run_server(app, listener.channel, stop=wait_for_stop(), drain=drain_calls)

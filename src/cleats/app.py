"""The composition root: creates a running server from settings. Nothing else creates components."""

import asyncio
import gc
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

from cleats.contract import snapshot as snapshots
from cleats.contract.payload import format_timestamp
from cleats.contract.registry import Registry
from cleats.contract.resources import ListName
from cleats.contract.tools import ListChangeCallback, Toolset
from cleats.runtime import capabilities, event_loop, shutdown, spans
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.server_status import ServerStatus
from cleats.runtime.telemetry import CallTelemetry
from cleats.settings import Settings

if TYPE_CHECKING:
    from cleats.contract.compat import ContractReport
    from cleats.toolsets.code.shared_engine import CodeEngine
    from cleats.transports.http.workers.group import HttpWorker
    from cleats.transports.http.workers.membership import WorkerMembership
    from cleats.transports.mcp.description import ChangeAnnouncer, ServerDescription
    from cleats.transports.mcp.server import McpServer
    from cleats.transports.stdio import StdioWire

log = logging.getLogger(__name__)

ServerT = TypeVar("ServerT")


def _load_builtin_toolset(
    name: str, settings: Settings, status: ServerStatus, open_code_engine: "Callable[[], CodeEngine]"
) -> Toolset:
    # Each is imported only when it is served.
    match name:
        case "code":
            from cleats.toolsets.code.tools import build_toolset as build_code_toolset  # noqa: PLC0415

            return build_code_toolset(settings, status, open_code_engine())
        case "explore":
            from cleats.toolsets.code.explore.tools import build_toolset as build_explore_toolset  # noqa: PLC0415

            return build_explore_toolset(open_code_engine())
        case "skills":
            from cleats.toolsets.skills.tools import toolset as build_toolset  # noqa: PLC0415
        case "assets":
            from cleats.toolsets.assets.tools import toolset as build_toolset  # noqa: PLC0415
        case _:
            from cleats.toolsets.launch.tools import build_toolset  # noqa: PLC0415
    return build_toolset(settings)


BUILTIN_TOOLSETS: "Mapping[str, Callable[[Settings, ServerStatus, Callable[[], CodeEngine]], Toolset]]" = {
    name: partial(_load_builtin_toolset, name) for name in ("code", "explore", "skills", "assets", "launch")
}
"""Every built-in toolset by name, loaded on request."""


def list_toolset_names() -> tuple[str, ...]:
    """Return every toolset that can be served: built-in ones, then those of other packages."""
    from cleats.toolsets.plugins import installed_toolsets  # noqa: PLC0415 - reads what is installed

    return (*BUILTIN_TOOLSETS, *(name for name in sorted(installed_toolsets()) if name not in BUILTIN_TOOLSETS))


def find_unknown_toolsets(names_to_check: Iterable[str]) -> list[str]:
    """Return the names that no toolset has; installed packages are read only if needed."""
    return [name for name in names_to_check if name not in BUILTIN_TOOLSETS and name not in list_toolset_names()]


def load_toolsets(settings: Settings, names: Iterable[str], status: ServerStatus) -> list[Toolset]:
    """Load the named toolsets; without names, all built-in ones and all plugins that work.

    Raises:
        SettingError: A named toolset of another package does not load, or one of its tools has the name of an earlier
            tool.
    """

    @cache
    def open_code_engine() -> "CodeEngine":
        from cleats.toolsets.code.shared_engine import CodeEngine  # noqa: PLC0415 - only when it is served

        return CodeEngine(settings)

    loaded: list[Toolset] = []
    for name in (requested_names := tuple(names)) or BUILTIN_TOOLSETS:
        if (load_builtin := BUILTIN_TOOLSETS.get(name)) is None:
            from cleats.toolsets.plugins import load_plugin_toolset  # noqa: PLC0415 - only when it is served

            loaded.append(load_plugin_toolset(name, settings, loaded))
        else:
            loaded.append(load_builtin(settings, status, open_code_engine))
    return loaded if requested_names else [*loaded, *load_servable_plugins(settings, loaded)]


def load_servable_plugins(settings: Settings, served_toolsets: Sequence[Toolset]) -> list[Toolset]:
    """Load the toolsets of other packages that can be served with these; warn about the rest."""
    from cleats.toolsets.plugins import load_plugin_toolsets  # noqa: PLC0415 - reads what is installed

    return load_plugin_toolsets(served_toolsets, settings, builtin_names=BUILTIN_TOOLSETS)


def build_registry(settings: Settings, names: Iterable[str] = ()) -> Registry:
    """Build a registry of the named toolsets for reading; nothing is started."""
    return Registry(load_toolsets(settings, names, ServerStatus()))


def build_contract_snapshot(
    settings: Settings, toolset: str | None = None, *, full_results: bool = False
) -> dict[str, Any]:
    """Build the snapshot of the whole contract, or of one toolset of another package, which always has full results.

    Raises:
        SettingError: That toolset does not load.
    """
    if toolset is None:
        return snapshots.build_snapshot(build_registry(settings, BUILTIN_TOOLSETS), full_results=full_results)
    return snapshots.build_toolset_snapshot(build_registry(settings, [toolset]))


@asynccontextmanager
async def open_dispatcher(
    settings: Settings,
    served_toolsets: Sequence[Toolset],
    status: ServerStatus,
    on_list_change: ListChangeCallback = lambda *_lists: None,
) -> AsyncIterator[Dispatcher]:
    """Open a dispatcher over running toolsets, which stop in reverse order when the block ends."""
    dispatcher = Dispatcher(
        Registry(served_toolsets),
        concurrency=settings.concurrency,
        queue=settings.queue,
        timeouts=settings.timeouts,
        telemetry=CallTelemetry(spans.get_tracer(settings), log_calls=settings.log_level in {"debug", "info"}),
        status=status,
    )
    async with AsyncExitStack() as stack:
        for toolset in served_toolsets:
            if toolset.running is not None:
                await stack.enter_async_context(toolset.running(on_list_change))
        yield dispatcher


@asynccontextmanager
async def open_mcp_servers(
    settings: Settings,
    served_toolsets: Sequence[Toolset],
    status: ServerStatus,
    views: Sequence[Callable[[Dispatcher], Dispatcher]] = (lambda dispatcher: dispatcher,),
) -> AsyncIterator[list["McpServer"]]:
    """Open an MCP server for every view of the running toolsets; changes are announced on all."""
    from cleats.transports.mcp.server import McpServer  # noqa: PLC0415 - imports the SDK

    servers: list[McpServer] = []
    async with open_dispatcher(settings, served_toolsets, status, _build_announcer(servers)) as dispatcher:
        for view in views:
            visible = view(dispatcher)
            description = _describe_server(settings, visible.registry)
            servers.append(McpServer(visible, description, validation=settings.validation_errors))
        yield servers


def _build_announcer(announcers: Sequence["ChangeAnnouncer"]) -> ListChangeCallback:
    """Return the callback for changed lists; they are the tools' if the toolset does not say."""

    def announce_changes(*lists: ListName) -> None:
        for announcer in announcers:
            announcer.announce_changes(lists or ("tools",))

    return announce_changes


def _describe_server(settings: Settings, registry: Registry) -> "ServerDescription":
    from cleats.transports.mcp.description import ServerDescription  # noqa: PLC0415 - only when it is served

    return ServerDescription(registry, capabilities.detect_capabilities(capabilities.find_lint_root(settings)))


run_server = event_loop.run_server


@contextmanager
def _log_serving(wire: str, served_toolsets: Sequence[Toolset], stop: shutdown.Shutdown) -> Iterator[None]:
    log.info("serve.ready wire=%s toolsets=%s", wire, ",".join(toolset.name for toolset in served_toolsets))
    yield
    log.info("serve.end reason=%s", stop.reason)


@asynccontextmanager
async def _open_stdio(
    opening: AbstractAsyncContextManager[ServerT], descriptors: tuple[int, int]
) -> AsyncIterator[tuple[ServerT, "StdioWire", shutdown.Shutdown]]:
    from cleats.transports.stdio import open_stdio_wire  # noqa: PLC0415 - only when it is served

    with shutdown.watch_signals() as stop:
        async with opening as server, open_stdio_wire(*descriptors) as wire:
            event_loop.freeze_startup_objects()
            yield server, wire, stop


async def serve_stdio(
    settings: Settings,
    served_toolsets: Sequence[Toolset],
    status: ServerStatus,
    descriptors: tuple[int, int],
    extend: Callable[["McpServer"], None] | None = None,
) -> None:
    """Serve MCP on two descriptors until the client disconnects or a signal arrives."""
    from cleats.transports.lifecycle import flush_wire  # noqa: PLC0415 - only when it is served
    from cleats.transports.mcp.handshake import Handshake  # noqa: PLC0415

    limit, drain, protocol = settings.frame_limit, settings.drain, settings.protocol
    announcers: list[ChangeAnnouncer] = []
    opening = open_dispatcher(settings, served_toolsets, status, _build_announcer(announcers))
    async with _open_stdio(opening, descriptors) as (dispatcher, wire, stop):
        description = _describe_server(settings, dispatcher.registry)
        handshake = Handshake(wire, description, limit=limit, protocol=protocol)
        announcers.append(handshake)
        with _log_serving("mcp", served_toolsets, stop):
            # An extended server would answer otherwise than its description.
            if extend is None and not await handshake.run(stop):
                await flush_wire(wire, timeout_seconds=drain)
                return
            gc.disable()  # until `freeze_startup_objects`
            sdk_server = await asyncio.to_thread(import_module, "cleats.transports.mcp.server")
            server: McpServer = sdk_server.McpServer(dispatcher, description, validation=settings.validation_errors)
            announcers.append(server)
            if extend is not None:
                extend(server)
            event_loop.freeze_startup_objects()
            await sdk_server.serve_client(server, wire, handshake, shutdown=stop, drain=drain, protocol=protocol)


async def serve_rpc(
    settings: Settings, served_toolsets: Sequence[Toolset], status: ServerStatus, descriptors: tuple[int, int]
) -> None:
    """Serve the rpc wire on two descriptors until the client disconnects or a signal arrives."""
    from cleats.transports import lifecycle, rpc  # noqa: PLC0415 - only when it is served

    opening = open_dispatcher(settings, served_toolsets, status)
    async with _open_stdio(opening, descriptors) as (dispatcher, wire, stop):
        facts = {
            "timestamp": format_timestamp(time()),
            "toolsets": ",".join(toolset.name for toolset in served_toolsets),
        }
        if any(toolset.name == "assets" for toolset in served_toolsets):
            from cleats.toolsets.assets.sources import locate_sources  # noqa: PLC0415 - loaded already

            sources = locate_sources(settings)
            facts["schemas_dir"] = sources.schemas.display_path if sources.schemas else "-"
            facts["examples_dir"] = sources.examples.display_path if sources.examples else "-"
        with lifecycle.announce_ready(settings.ready_file, facts):
            limit, drain = settings.rpc_frame_limit, settings.drain
            await rpc.RpcConnection(dispatcher, wire, limit=limit, drain=drain, shutdown=stop).run()


async def serve_legacy(
    settings: Settings, served_toolsets: Sequence[Toolset], status: ServerStatus, descriptors: tuple[int, int]
) -> None:
    """Serve the legacy wire on two descriptors until the client disconnects or a signal arrives."""
    from cleats.transports.legacy import LegacyConnection  # noqa: PLC0415 - only when it is served

    opening = open_dispatcher(settings, served_toolsets, status)
    async with _open_stdio(opening, descriptors) as (dispatcher, wire, stop):
        with _log_serving("legacy", served_toolsets, stop):
            block = capabilities.detect_capabilities(capabilities.find_lint_root(settings))
            limit, drain = settings.frame_limit, settings.drain
            await LegacyConnection(dispatcher, wire, capabilities=block, limit=limit, drain=drain, shutdown=stop).run()


async def serve_http(
    settings: Settings,
    served_toolsets: Sequence[Toolset],
    status: ServerStatus,
    listener: "socket.socket | HttpWorker",
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve the HTTP API, and MCP over it, until a signal arrives, on a listening socket or as one of its workers."""
    from cleats.console.entry import build_console, prepare_first_view  # noqa: PLC0415 - only when it is served
    from cleats.runtime.recent_calls import RecentCalls  # noqa: PLC0415
    from cleats.toolsets.code.composition import open_indexes  # noqa: PLC0415
    from cleats.toolsets.code.query.arguments import SEARCH_ARGUMENTS  # noqa: PLC0415
    from cleats.transports.http import caller_access, service  # noqa: PLC0415
    from cleats.transports.http.monitoring import HttpTraffic  # noqa: PLC0415
    from cleats.transports.mcp.http import open_endpoint  # noqa: PLC0415

    indexes = open_indexes(settings)

    def find_root(folder: Path | None) -> Path:
        return indexes.find_repository(None if folder is None else str(folder)).root

    recent_calls, traffic = RecentCalls(), HttpTraffic()
    membership = tokens = None
    source: socket.socket | WorkerMembership
    if isinstance(listener, socket.socket):
        source, (host, port) = listener, listener.getsockname()[:2]
    else:
        from cleats.transports.http.workers import membership as workers  # noqa: PLC0415 - not on Windows

        source = membership = workers.WorkerMembership(listener, status, traffic, recent_calls)
        tokens = listener.tokens
        host, port = listener.address
    accesses = caller_access.build_accesses(
        settings, served_toolsets, find_root=find_root, recent_calls=recent_calls, tokens=tokens
    )
    views = [access.limit_dispatcher for access in accesses]
    with shutdown.watch_signals() if membership is None else nullcontext(membership.channel.shutdown) as stop:
        async with (
            open_mcp_servers(settings, served_toolsets, status, views) as servers,
            AsyncExitStack() as sessions,
        ):
            endpoints = [await sessions.enter_async_context(open_endpoint(server, settings)) for server in servers]

            async def close_sessions() -> None:
                for server in servers:
                    server.close_streams()
                for endpoint in endpoints:
                    await endpoint.wait_until_answered()
                await sessions.aclose()

            caller_apps = [
                service.CallerApp(
                    access,
                    server.tools.dispatcher,
                    endpoint if membership is None else membership.route_sessions(endpoint, access.token.name),
                )
                for access, server, endpoint in zip(accesses, servers, endpoints, strict=True)
            ]
            console = build_console(
                accesses,
                [caller_app.dispatcher for caller_app in caller_apps],
                port=port,
                status=status,
                recent_calls=recent_calls,
                body_limit=settings.http.body_limit,
                search_flags={argument.name: argument.flag for argument in SEARCH_ARGUMENTS if argument.flag},
                compare_contracts=_compare_contracts,
            )
            event_loop.freeze_startup_objects()
            with _log_serving("http", served_toolsets, stop):
                on_ready()
                asyncio.get_running_loop().run_in_executor(None, prepare_first_view)
                checks = {toolset.name: toolset.ready for toolset in served_toolsets if toolset.ready is not None}
                ends = (close_sessions, stop)
                await service.serve_api(
                    settings,
                    caller_apps,
                    source,
                    *ends,
                    host=host,
                    vitals=status,
                    traffic=traffic,
                    ready_checks=checks,
                    console=console,
                )


def _compare_contracts(old: Mapping[str, Any], new: Mapping[str, Any]) -> "ContractReport":
    from cleats.contract.compat.policy import DEFAULT_POLICY  # noqa: PLC0415 - only when somebody compares
    from cleats.system.contract_comparison import compare_bounded  # noqa: PLC0415

    return compare_bounded(old, new, DEFAULT_POLICY)


async def run_worker(settings: Settings, concurrency: int, index: bool) -> None:
    """Work for a fleet until a signal arrives: drive runs (unless `concurrency` is 0), refresh a shared index."""
    with shutdown.watch_signals() as stop:
        tasks = []
        if drives_runs := bool(settings.database_url and concurrency):
            from cleats.toolsets.launch.setup import build_worker  # noqa: PLC0415 - only here

            tasks.append(asyncio.create_task(build_worker(settings, concurrency).run()))
        if index:
            from cleats.toolsets.code.composition import open_indexes  # noqa: PLC0415 - only here
            from cleats.toolsets.code.sharing.shared_index import publish_changes  # noqa: PLC0415 - only here

            tasks.append(asyncio.create_task(publish_changes(open_indexes(settings), settings.code.index_poll)))
        stop_task = asyncio.create_task(stop.requested.wait())
        event_loop.freeze_startup_objects()
        log.info("work.ready runs=%s index=%s", drives_runs, index)
        try:
            await asyncio.wait({stop_task, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (stop_task, *tasks):
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result
        log.info("work.end reason=%s", stop.reason)

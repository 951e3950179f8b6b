"""The composition root: creates a running server from settings. Nothing else creates components."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from importlib.util import find_spec
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

from cleats.contract import snapshot as snapshots
from cleats.contract.payload import format_timestamp
from cleats.contract.registry import Registry
from cleats.contract.resources import ListName
from cleats.contract.tools import ListChangeCallback, Toolset
from cleats.runtime import capabilities, shutdown, spans
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.server_status import ServerStatus
from cleats.runtime.telemetry import CallTelemetry
from cleats.settings import Settings

if TYPE_CHECKING:
    import socket

    from cleats.transports.mcp.server import McpServer
    from cleats.transports.stdio import StdioWire

log = logging.getLogger(__name__)

ServerT = TypeVar("ServerT")


def _load_code_toolset(settings: Settings, status: ServerStatus) -> Toolset:
    from cleats.toolsets.code.tools import build_toolset  # noqa: PLC0415 - only when it is served

    return build_toolset(settings, status)


def _load_assets_toolset(settings: Settings, _status: ServerStatus) -> Toolset:
    from cleats.toolsets.assets.tools import toolset  # noqa: PLC0415 - only when it is served

    return toolset(settings)


def _load_skills_toolset(settings: Settings, _status: ServerStatus) -> Toolset:
    from cleats.toolsets.skills.tools import toolset  # noqa: PLC0415 - only when it is served

    return toolset(settings)


def _load_launch_toolset(settings: Settings, _status: ServerStatus) -> Toolset:
    from cleats.toolsets.launch.tools import build_toolset  # noqa: PLC0415 - only when it is served

    return build_toolset(settings)


BUILTIN_TOOLSETS: Mapping[str, Callable[[Settings, ServerStatus], Toolset]] = {
    "code": _load_code_toolset,
    "skills": _load_skills_toolset,
    "assets": _load_assets_toolset,
    "launch": _load_launch_toolset,
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
        SettingError: A named toolset of another package does not load, or one of its tools has the
            name of an earlier tool.
    """
    loaded: list[Toolset] = []
    for name in (requested_names := tuple(names)) or BUILTIN_TOOLSETS:
        load_builtin = BUILTIN_TOOLSETS.get(name)
        loaded.append(load_builtin(settings, status) if load_builtin else _load_plugin(name, settings, loaded))
    return loaded if requested_names else [*loaded, *load_servable_plugins(settings, loaded)]


def load_servable_plugins(settings: Settings, served_toolsets: Sequence[Toolset]) -> list[Toolset]:
    """Load the toolsets of other packages that can be served with these; warn about the rest."""
    from cleats.toolsets.plugins import load_plugin_toolsets  # noqa: PLC0415 - reads what is installed

    return load_plugin_toolsets(served_toolsets, settings, builtin_names=BUILTIN_TOOLSETS)


def _load_plugin(name: str, settings: Settings, served_toolsets: Sequence[Toolset]) -> Toolset:
    from cleats.toolsets.plugins import load_plugin_toolset  # noqa: PLC0415 - only when it is served

    return load_plugin_toolset(name, settings, served_toolsets)


def build_registry(settings: Settings, names: Iterable[str] = ()) -> Registry:
    """Build a registry of the named toolsets for reading; nothing is started."""
    return Registry(load_toolsets(settings, names, ServerStatus()))


def build_contract_snapshot(settings: Settings, toolset: str | None = None) -> dict[str, Any]:
    """Build the snapshot of the whole contract, or of one toolset of another package.

    Raises:
        SettingError: That toolset does not load.
    """
    if toolset is None:
        return snapshots.build_snapshot(build_registry(settings, BUILTIN_TOOLSETS))
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


def _format_instructions(served_toolsets: Sequence[Toolset]) -> str:
    """Return the instructions that a client gives its model about this server."""
    lines = [f"- {toolset.name}: {toolset.purpose}" for toolset in served_toolsets]
    return "\n".join(["Cleats serves these toolsets to coding agents:", *lines])


@asynccontextmanager
async def open_mcp_server(
    settings: Settings, served_toolsets: Sequence[Toolset], status: ServerStatus
) -> AsyncIterator["McpServer"]:
    """Open the MCP server over running toolsets, for any transport."""
    async with open_mcp_servers(settings, served_toolsets, status, [lambda dispatcher: dispatcher]) as [server]:
        yield server


@asynccontextmanager
async def open_mcp_servers(
    settings: Settings,
    served_toolsets: Sequence[Toolset],
    status: ServerStatus,
    views: Sequence[Callable[[Dispatcher], Dispatcher]],
) -> AsyncIterator[list["McpServer"]]:
    """Open an MCP server for every view of the running toolsets; changes are announced on all."""
    from cleats.transports.mcp.server import McpServer  # noqa: PLC0415 - imports the SDK

    servers: list[McpServer] = []
    announcements: set[asyncio.Task[None]] = set()

    def announce_changes(*lists: ListName) -> None:
        for server in servers:
            announcement = server.notify_changed(lists or ("tools",))
            task = asyncio.get_running_loop().create_task(announcement)
            announcements.add(task)
            task.add_done_callback(announcements.discard)

    async with open_dispatcher(settings, served_toolsets, status, announce_changes) as dispatcher:
        servers += [
            McpServer(
                visible,
                capabilities=capabilities.detect_capabilities(),
                instructions=_format_instructions(visible.registry.toolsets),
                validation=settings.validation_errors,
            )
            for visible in (view(dispatcher) for view in views)
        ]
        yield servers


def _freeze_startup_objects() -> None:
    """Exclude the objects created at start-up from garbage collection.

    Importing the SDK creates half a million objects that are never freed. Scanning them again and
    again takes a tenth of the start-up time, so a server imports with the collector off. Afterwards
    it may run less often than usual: a call leaves a hundred objects behind, and hardly ever a
    cycle.
    """
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def run_server(main: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
    """Run a server to its end on the fastest event loop that is installed."""
    import anyio  # noqa: PLC0415 - the rpc wire starts without it

    gc.disable()  # until `_settle_memory`
    anyio.run(main, *args, backend_options={"use_uvloop": find_spec("uvloop") is not None})


@contextmanager
def _log_serving(wire: str, served_toolsets: Sequence[Toolset], stop: shutdown.Shutdown) -> Iterator[None]:
    """Log that a server is ready, and why it ends."""
    log.info("serve.ready wire=%s toolsets=%s", wire, ",".join(toolset.name for toolset in served_toolsets))
    yield
    log.info("serve.end reason=%s", stop.reason)


@asynccontextmanager
async def _open_stdio(
    opening: AbstractAsyncContextManager[ServerT], descriptors: tuple[int, int]
) -> AsyncIterator[tuple[ServerT, "StdioWire", shutdown.Shutdown]]:
    """Open a server and its wire on two descriptors, and watch for signals, until the block ends."""
    from cleats.transports.stdio import open_stdio_wire  # noqa: PLC0415 - only when it is served

    with shutdown.watch_signals() as stop:
        async with opening as server, open_stdio_wire(*descriptors) as wire:
            _freeze_startup_objects()
            yield server, wire, stop


async def serve_stdio(
    settings: Settings,
    served_toolsets: Sequence[Toolset],
    status: ServerStatus,
    descriptors: tuple[int, int],
    extend: Callable[["McpServer"], None] = lambda _server: None,
) -> None:
    """Serve MCP on two descriptors until the client disconnects or a signal arrives."""
    from cleats.transports.mcp import connection as mcp_stdio  # noqa: PLC0415 - imports the SDK

    opening = open_mcp_server(settings, served_toolsets, status)
    async with _open_stdio(opening, descriptors) as (server, wire, stop):
        extend(server)
        with _log_serving("mcp", served_toolsets, stop):
            await mcp_stdio.serve_client(
                server,
                wire,
                shutdown=stop,
                limit=settings.frame_limit,
                drain=settings.drain,
                protocol=settings.protocol,
            )


async def serve_rpc(
    settings: Settings, served_toolsets: Sequence[Toolset], status: ServerStatus, descriptors: tuple[int, int]
) -> None:
    """Serve the rpc wire on two descriptors until the client disconnects or a signal arrives."""
    from cleats.transports import lifecycle, rpc  # noqa: PLC0415 - only when it is served

    opening = open_dispatcher(settings, served_toolsets, status)
    async with _open_stdio(opening, descriptors) as (dispatcher, wire, stop):
        facts = _collect_ready_facts(settings, served_toolsets)
        with lifecycle.announce_ready(settings.ready_file, format_timestamp(time()), facts):
            limit, drain = settings.rpc_frame_limit, settings.drain
            await rpc.serve_client(dispatcher, wire, limit=limit, drain=drain, shutdown=stop)


async def serve_legacy(
    settings: Settings, served_toolsets: Sequence[Toolset], status: ServerStatus, descriptors: tuple[int, int]
) -> None:
    """Serve the legacy wire on two descriptors until the client disconnects or a signal arrives."""
    from cleats.transports.legacy import wire as legacy  # noqa: PLC0415 - only when it is served

    opening = open_dispatcher(settings, served_toolsets, status)
    async with _open_stdio(opening, descriptors) as (dispatcher, wire, stop):
        with _log_serving("legacy", served_toolsets, stop):
            await legacy.serve_client(
                dispatcher,
                wire,
                capabilities=capabilities.detect_capabilities(),
                limit=settings.frame_limit,
                drain=settings.drain,
                shutdown=stop,
            )


async def serve_http(
    settings: Settings,
    served_toolsets: Sequence[Toolset],
    status: ServerStatus,
    listener: "socket.socket",
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve the HTTP API, and MCP over it, on a listening socket until a signal arrives."""
    from cleats.toolsets.code.composition import open_indexes  # noqa: PLC0415
    from cleats.transports.http import caller_access, service  # noqa: PLC0415 - only when it is served
    from cleats.transports.mcp.http import open_endpoint  # noqa: PLC0415

    indexes = open_indexes(settings)
    accesses = caller_access.build_accesses(
        settings,
        served_toolsets,
        find_root=lambda folder: indexes.find_repository(None if folder is None else str(folder)).root,
    )
    with shutdown.watch_signals() as stop:
        async with (
            open_mcp_servers(
                settings, served_toolsets, status, [access.limit_dispatcher for access in accesses]
            ) as servers,
            AsyncExitStack() as sessions,
        ):
            endpoints = [await sessions.enter_async_context(open_endpoint(server, settings)) for server in servers]

            async def close_sessions() -> None:
                for server in servers:
                    server.close_streams()
                await sessions.aclose()

            caller_apps = [
                service.CallerApp(access, server.tools.dispatcher, endpoint)
                for access, server, endpoint in zip(accesses, servers, endpoints, strict=True)
            ]
            _freeze_startup_objects()
            with _log_serving("http", served_toolsets, stop):
                on_ready()
                await service.serve_api(
                    settings,
                    caller_apps,
                    listener,
                    vitals=status,
                    ready_checks=service.collect_ready_checks(served_toolsets),
                    close_sessions=close_sessions,
                    shutdown=stop,
                )


async def run_worker(settings: Settings, concurrency: int, index: bool) -> None:
    """Work for a fleet until a signal arrives: drive runs, refresh a shared index, or both.

    With a concurrency of 0, no runs are driven.
    """
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
        _freeze_startup_objects()
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


def _collect_ready_facts(settings: Settings, served_toolsets: Sequence[Toolset]) -> dict[str, str]:
    names = [toolset.name for toolset in served_toolsets]
    facts = {"toolsets": ",".join(names)}
    if "assets" in names:
        from cleats.toolsets.assets.sources import locate_sources  # noqa: PLC0415 - loaded already

        sources = locate_sources(settings)
        facts["schemas_dir"] = sources.schemas.display_path if sources.schemas else "-"
        facts["examples_dir"] = sources.examples.display_path if sources.examples else "-"
    return facts

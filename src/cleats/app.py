"""The composition root: settings in, a running server out. Nothing else builds things."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from time import time
from typing import TYPE_CHECKING, Any

from cleats.contract import snapshot as snapshots
from cleats.contract.listing import ListName
from cleats.contract.payload import timestamp
from cleats.contract.registry import Registry
from cleats.contract.tools import Changed, Toolset
from cleats.runtime import capabilities, shutdown, spans
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.telemetry import Telemetry
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings

if TYPE_CHECKING:
    import socket

    from cleats.transports.mcp.server import McpServer

log = logging.getLogger(__name__)


def _code(settings: Settings, vitals: Vitals) -> Toolset:
    from cleats.toolsets.code.tools import toolset  # noqa: PLC0415 - only when it is served

    return toolset(settings, vitals)


def _assets(settings: Settings, _vitals: Vitals) -> Toolset:
    from cleats.toolsets.assets.tools import toolset  # noqa: PLC0415 - only when it is served

    return toolset(settings)


def _skills(settings: Settings, _vitals: Vitals) -> Toolset:
    from cleats.toolsets.skills.tools import toolset  # noqa: PLC0415 - only when it is served

    return toolset(settings)


def _launch(settings: Settings, _vitals: Vitals) -> Toolset:
    from cleats.toolsets.launch.tools import toolset  # noqa: PLC0415 - only when it is served

    return toolset(settings)


TOOLSETS: Mapping[str, Callable[[Settings, Vitals], Toolset]] = {
    "code": _code,
    "skills": _skills,
    "assets": _assets,
    "launch": _launch,
}
"""Every toolset of ours by name, made when it is asked for."""


def names() -> tuple[str, ...]:
    """Every toolset that can be served: ours, then those that other packages bring."""
    from cleats.toolsets.installed import offers  # noqa: PLC0415 - reads what is installed

    return (*TOOLSETS, *(name for name in sorted(offers()) if name not in TOOLSETS))


def unknown(asked: Iterable[str]) -> list[str]:
    """The names that no toolset has. What is installed is only looked at for a name not ours."""
    return [name for name in asked if name not in TOOLSETS and name not in names()]


def toolsets(settings: Settings, names: Iterable[str], vitals: Vitals) -> list[Toolset]:
    """The named toolsets, or when none is named all of ours and all others that work.

    Raises:
        SettingError: a named toolset of another package does not load, or a tool of it has the
            name of one before it.
    """
    served: list[Toolset] = []
    for name in (asked := tuple(names)) or TOOLSETS:
        ours = TOOLSETS.get(name)
        served.append(ours(settings, vitals) if ours else _brought(name, settings, served))
    return served if asked else [*served, *others(settings, served)]


def others(settings: Settings, served: Sequence[Toolset]) -> list[Toolset]:
    """The toolsets of other packages that can be served beside these; the rest is warned about."""
    from cleats.toolsets.installed import beside  # noqa: PLC0415 - reads what is installed

    return beside(served, settings, ours=TOOLSETS)


def _brought(name: str, settings: Settings, served: Sequence[Toolset]) -> Toolset:
    from cleats.toolsets.installed import brought  # noqa: PLC0415 - only when it is served

    return brought(name, settings, served)


def catalogue(settings: Settings, names: Iterable[str] = ()) -> Registry:
    """The tools of the named toolsets, for reading; nothing is started."""
    return Registry(toolsets(settings, names, Vitals()))


def contract_snapshot(settings: Settings, toolset: str | None = None) -> dict[str, Any]:
    """Everything this build promises, or all that one toolset of another package does.

    Raises:
        SettingError: that toolset does not load.
    """
    if toolset is None:
        return snapshots.snapshot(catalogue(settings, TOOLSETS))
    return snapshots.of_toolset(catalogue(settings, [toolset]))


@asynccontextmanager
async def dispatching(
    settings: Settings,
    served: Sequence[Toolset],
    vitals: Vitals,
    changed: Changed = lambda *_lists: None,
) -> AsyncIterator[Dispatcher]:
    """A dispatcher over running toolsets, which stop in reverse order when the block ends."""
    dispatcher = Dispatcher(
        Registry(served),
        concurrency=settings.concurrency,
        queue=settings.queue,
        timeouts=settings.timeouts,
        telemetry=Telemetry(
            spans.tracer(settings),
            log_calls=settings.log_level in {"debug", "info"},
        ),
        vitals=vitals,
    )
    async with AsyncExitStack() as stack:
        for toolset in served:
            if toolset.running is not None:
                await stack.enter_async_context(toolset.running(changed))
        yield dispatcher


def _instructions(served: Sequence[Toolset]) -> str:
    """What a client tells its model about this server."""
    lines = [f"- {toolset.name}: {toolset.purpose}" for toolset in served]
    return "\n".join(["Cleats serves these toolsets to coding agents:", *lines])


@asynccontextmanager
async def mcp_server(
    settings: Settings, served: Sequence[Toolset], vitals: Vitals
) -> AsyncIterator["McpServer"]:
    """The MCP server over running toolsets, whatever transport carries it."""
    async with mcp_servers(settings, served, vitals, [lambda whole: whole]) as [server]:
        yield server


@asynccontextmanager
async def mcp_servers(
    settings: Settings,
    served: Sequence[Toolset],
    vitals: Vitals,
    views: Sequence[Callable[[Dispatcher], Dispatcher]],
) -> AsyncIterator[list["McpServer"]]:
    """An MCP server for every view of the running toolsets; a change is told to all of them."""
    from cleats.transports.mcp.server import McpServer  # noqa: PLC0415 - imports the SDK

    servers: list[McpServer] = []
    announcing: set[asyncio.Task[None]] = set()

    def changed(*lists: ListName) -> None:
        for server in servers:
            told = server.changed(lists or ("tools",))
            task = asyncio.get_running_loop().create_task(told)
            announcing.add(task)
            task.add_done_callback(announcing.discard)

    async with dispatching(settings, served, vitals, changed) as dispatcher:
        servers += [
            McpServer(
                seen,
                capabilities=capabilities.found(),
                instructions=_instructions(seen.registry.toolsets),
                validation=settings.validation_errors,
            )
            for seen in (view(dispatcher) for view in views)
        ]
        yield servers


def _settle_memory() -> None:
    """Take what start-up made out of the collector's sight.

    Importing the SDK makes half a million objects that never die. Looking at them again and again
    is a tenth of the start-up time, so a server imports with the collector off. Afterwards it may
    look more rarely than usual: a call leaves a hundred objects behind, and hardly ever a cycle.
    """
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def run(main: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
    """Run a server to its end on the quickest event loop that is installed."""
    import anyio  # noqa: PLC0415 - the rpc wire starts without it

    gc.disable()  # until `_settle_memory`
    anyio.run(main, *args, backend_options={"use_uvloop": find_spec("uvloop") is not None})


async def serve_stdio(
    settings: Settings,
    served: Sequence[Toolset],
    vitals: Vitals,
    descriptors: tuple[int, int],
    extend: Callable[["McpServer"], None] = lambda _server: None,
) -> None:
    """Serve MCP on two descriptors until the client leaves or a signal comes."""
    from cleats.transports.mcp import stdio as mcp_stdio  # noqa: PLC0415 - imports the SDK
    from cleats.transports.stdio import stdio_wire  # noqa: PLC0415

    with shutdown.on_signals() as stop:
        async with (
            mcp_server(settings, served, vitals) as server,
            stdio_wire(*descriptors) as wire,
        ):
            extend(server)
            _settle_memory()
            log.info("serve.ready wire=mcp toolsets=%s", ",".join(t.name for t in served))
            await mcp_stdio.serve(
                server,
                wire,
                shutdown=stop,
                limit=settings.frame_limit,
                drain=settings.drain,
                protocol=settings.protocol,
            )
            log.info("serve.end reason=%s", stop.reason)


async def serve_rpc(
    settings: Settings, served: Sequence[Toolset], vitals: Vitals, descriptors: tuple[int, int]
) -> None:
    """Serve the rpc wire on two descriptors until the client leaves or a signal comes."""
    from cleats.transports import ready, rpc  # noqa: PLC0415 - only when it is served
    from cleats.transports.stdio import stdio_wire  # noqa: PLC0415

    with shutdown.on_signals() as stop:
        async with (
            dispatching(settings, served, vitals) as dispatcher,
            stdio_wire(*descriptors) as wire,
        ):
            _settle_memory()
            with ready.announced(
                settings.ready_file, timestamp(time()), _ready_facts(settings, served)
            ):
                await rpc.serve(
                    dispatcher,
                    wire,
                    limit=settings.rpc_frame_limit,
                    drain=settings.drain,
                    shutdown=stop,
                )


async def serve_legacy(
    settings: Settings, served: Sequence[Toolset], vitals: Vitals, descriptors: tuple[int, int]
) -> None:
    """Serve the legacy wire on two descriptors until the client leaves or a signal comes."""
    from cleats.transports.legacy import wire as legacy  # noqa: PLC0415 - only when it is served
    from cleats.transports.stdio import stdio_wire  # noqa: PLC0415

    with shutdown.on_signals() as stop:
        async with (
            dispatching(settings, served, vitals) as dispatcher,
            stdio_wire(*descriptors) as wire,
        ):
            _settle_memory()
            log.info("serve.ready wire=legacy toolsets=%s", ",".join(t.name for t in served))
            await legacy.serve(
                dispatcher,
                wire,
                capabilities=capabilities.found(),
                limit=settings.frame_limit,
                drain=settings.drain,
                shutdown=stop,
            )
            log.info("serve.end reason=%s", stop.reason)


async def serve_http(
    settings: Settings,
    served: Sequence[Toolset],
    vitals: Vitals,
    listener: "socket.socket",
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve the HTTP API, and MCP over it, on a listening socket until a signal comes."""
    from cleats.toolsets.code.indexing.access import Indexes  # noqa: PLC0415
    from cleats.transports.http import serving, shares  # noqa: PLC0415 - only when it is served
    from cleats.transports.mcp.http import streamable  # noqa: PLC0415

    indexes = Indexes(settings)
    given = shares.shares(
        settings,
        served,
        root=lambda folder: indexes.repository(None if folder is None else str(folder)).root,
    )
    with shutdown.on_signals() as stop:
        async with (
            mcp_servers(settings, served, vitals, [share.of for share in given]) as servers,
            AsyncExitStack() as sessions,
        ):
            endpoints = [
                await sessions.enter_async_context(streamable(server, settings))
                for server in servers
            ]

            async def hang_up() -> None:
                for server in servers:
                    server.stopping()
                await sessions.aclose()

            _settle_memory()
            log.info("serve.ready wire=http toolsets=%s", ",".join(t.name for t in served))
            ready()
            await serving.serve(
                settings,
                [
                    serving.Entrance(share, server.tools.dispatcher, endpoint)
                    for share, server, endpoint in zip(given, servers, endpoints, strict=True)
                ],
                listener,
                vitals=vitals,
                ready=serving.checks(served),
                hang_up=hang_up,
                shutdown=stop,
            )
            log.info("serve.end reason=%s", stop.reason)


async def work(settings: Settings, concurrency: int, index: bool) -> None:
    """Work for a fleet until a signal comes: drive runs, or keep a shared index, or both.

    With a concurrency of nothing no run is driven.
    """
    with shutdown.on_signals() as stop:
        tasks = []
        if drives := bool(settings.database_url and concurrency):
            from cleats.toolsets.launch.engine import worker  # noqa: PLC0415 - only here

            tasks.append(asyncio.create_task(worker(settings, concurrency).run()))
        if index:
            from cleats.toolsets.code.fleet.keeping import keep  # noqa: PLC0415 - only here

            tasks.append(asyncio.create_task(keep(settings)))
        asked = asyncio.create_task(stop.asked.wait())
        _settle_memory()
        log.info("work.ready runs=%s index=%s", drives, index)
        try:
            await asyncio.wait({asked, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (asked, *tasks):
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ended:
            if isinstance(end, Exception):
                raise end
        log.info("work.end reason=%s", stop.reason)


def _ready_facts(settings: Settings, served: Sequence[Toolset]) -> dict[str, str]:
    names = [toolset.name for toolset in served]
    facts = {"toolsets": ",".join(names)}
    if "assets" in names:
        from cleats.toolsets.assets.sources import locate  # noqa: PLC0415 - loaded already

        found = locate(settings)
        facts["schemas_dir"] = found.schemas.shown if found.schemas else "-"
        facts["examples_dir"] = found.examples.shown if found.examples else "-"
    return facts

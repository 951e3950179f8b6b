"""The official SDK's low-level server with our tools and our capability block, and one connection to it over a wire.

The first request selects the protocol era of a connection: `initialize` the handshake era (2025-11-25), any request
with the 2026-07-28 envelope the stateless one. The rules are the SDK's; `tools/call` and `tools/list` go straight to
our surface, every other method through the SDK's runner.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.runner import ServerRunner, aclose_shielded, serve_one
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp_types import INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from cleats.contract.resources import ListName
from cleats.contract.versions import PROTOCOL_VERSION, TOOLING_VERSION
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.shutdown import Shutdown
from cleats.transports import jsonrpc
from cleats.transports.mcp.description import CAPABILITY_BLOCK_NAME, SERVER_NAME, SERVER_TITLE, ServerDescription
from cleats.transports.mcp.dispatcher import InboundMessage, WireDispatcher, error_from_exception
from cleats.transports.mcp.handshake import Handshake, ProtocolMode, has_envelope
from cleats.transports.mcp.resources import OfferHandlers
from cleats.transports.mcp.tool_api import ToolSurface, ValidationMode
from cleats.transports.stdio import Wire

log = logging.getLogger(__name__)

_LIST_CHANGED_EVENTS: Mapping[ListName, Callable[[], ServerEvent]] = {
    "tools": ToolsListChanged,
    "resources": ResourcesListChanged,
    "prompts": PromptsListChanged,
}


class McpServer(Server[None]):
    """The server of one caller, shared by every connection of every transport."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        description: ServerDescription,
        *,
        validation: ValidationMode = "protocol",
    ) -> None:
        self.tools: ToolSurface
        super().__init__(
            SERVER_NAME,
            version=TOOLING_VERSION,
            title=SERVER_TITLE,
            instructions=description.instructions,
            on_list_tools=cast("Any", self._handle_tools),
            on_call_tool=cast("Any", self._handle_tools),
            get_tool_input_schema=lambda name: self.tools.find_input_schema(name),  # noqa: PLW0108 - they come next
        )
        self.tools = ToolSurface(dispatcher, description, validation=validation)
        self._capability_block = description.capability_block
        # A span per message is the dispatcher's job here, and it is cheaper at it.
        self.middleware = [self._handle_message]
        self._connections: set[Connection] = set()
        self._announcements: set[asyncio.Task[None]] = set()
        self.bus = InMemorySubscriptionBus()
        self.streams: ListenHandler | None = None
        if description.lists_change:
            self.streams = ListenHandler(self.bus)
            self.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, self.streams)
        self._offered_lists = OfferHandlers(dispatcher.registry.toolsets).register(self)

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,  # noqa: ARG002 - ours are fixed
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """Return the same block in `initialize`, over every transport, and in `server/discover`."""
        return super().get_capabilities(
            NotificationOptions(
                tools_changed=self.streams is not None,
                resources_changed="resources" in self._offered_lists,
                prompts_changed="prompts" in self._offered_lists,
            ),
            {CAPABILITY_BLOCK_NAME: self._capability_block, **(experimental_capabilities or {})},
            extensions,
            protocol_version=protocol_version,
        )

    def announce_changes(self, lists: Collection[ListName]) -> None:
        """Start to notify every connected client which lists changed."""
        self._announcements.add(task := asyncio.ensure_future(self.notify_changed(lists)))
        task.add_done_callback(self._announcements.discard)

    async def notify_changed(self, lists: Collection[ListName]) -> None:
        """Notify every connected client which lists changed, in the form of its protocol era."""
        if "tools" in lists:
            self.tools.invalidate_listings()
        for name in lists:
            for connection in list(self._connections):
                if connection.initialized.is_set():
                    await connection.notify(f"notifications/{name}/list_changed", None)
            await self.bus.publish(_LIST_CHANGED_EVENTS[name]())

    def close_streams(self) -> None:
        """End the open subscription streams, each with its final message."""
        if self.streams is not None:
            self.streams.close()

    async def _handle_message(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        try:
            # Before the handshake is done, the SDK's own gate refuses the request.
            is_ready = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or ctx.session.client_params is not None
            if ctx.method in {"tools/call", "tools/list"} and is_ready:
                return await self._handle_tools(ctx, None)
            if ctx.method == "notifications/initialized":
                self._add_connection(ctx.session)
            return await call_next(ctx)
        except Exception as crash:
            raise error_from_exception(crash, ctx.method) from crash

    def _add_connection(self, session: ServerSession) -> None:
        # The SDK has no public way from a session to its connection, and no other hook that every transport runs; the
        # dependency is pinned below the next minor version for this reason.
        connection = session._connection  # noqa: SLF001
        if connection not in self._connections:
            self._connections.add(connection)
            connection.exit_stack.callback(self._connections.discard, connection)

    async def _handle_tools(self, ctx: ServerRequestContext[Any, Any], _params: Any) -> HandlerResult:
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if ctx.method == "tools/list":
            return self.tools.list_tools(ctx.params, modern=is_modern)
        return await self.tools.call_tool(
            ctx.params, request_id=str(ctx.request_id), channel=SessionChannel(ctx), modern=is_modern, raw=False
        )


class SessionChannel:
    """A channel back to the client through a session of the SDK."""

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self.ctx = ctx

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        if method == "notifications/progress" and params is not None:
            await self.ctx.session.report_progress(params["progress"], params.get("total"), params.get("message"))


ROOTS_TIMEOUT_SECONDS = 5.0
"""The time in which a client has to name its roots; a client asks nobody for them."""

ROOTS_NOTIFICATIONS = frozenset({"notifications/initialized", "notifications/roots/list_changed"})
"""The notifications after which the roots are asked for."""


class ClientRoots:
    """The folders that a client works in, asked for where the server has no repository of its own.

    Only clients of the handshake era offer them. Calls wait for the answer for a moment, so that the first one already
    finds the repository.
    """

    def __init__(self, connection: Connection, listeners: Sequence[Callable[[Sequence[Path]], None]]) -> None:
        self._connection, self._listeners = connection, listeners
        self._query: asyncio.Task[None] | None = None

    def handle_notification(self, method: str) -> None:
        """Ask for the roots if this notification is a reason to, and somebody wants them."""
        capabilities = self._connection.client_capabilities
        if method in ROOTS_NOTIFICATIONS and self._listeners and capabilities is not None and capabilities.roots:
            self.close()
            self._query = asyncio.ensure_future(self._ask_client())

    @property
    def is_asking(self) -> bool:
        """Whether the client has yet to answer the latest question."""
        return self._query is not None and not self._query.done()

    async def wait_until_known(self) -> None:
        """Wait for the answer to the latest question, if there is one."""
        if self._query is not None:
            await asyncio.wait({self._query})

    def close(self) -> None:
        """Wait for no answer any more."""
        if self._query is not None:
            self._query.cancel()

    async def _ask_client(self) -> None:
        try:
            async with asyncio.timeout(ROOTS_TIMEOUT_SECONDS):
                result = await self._connection.send_request(types.ListRootsRequest())
        except (TimeoutError, MCPError, ValidationError) as error:
            log.warning("roots.unknown reason=%s", type(error).__name__)
            return
        folders = [_parse_file_uri(str(root.uri)) for root in result.roots]
        for listener in self._listeners:
            listener(folders)


def _parse_file_uri(uri: str) -> Path:
    path = unquote(urlsplit(uri).path)
    return Path(path[1:] if os.name == "nt" else path)  # file:///C:/x


MessageParams = Mapping[str, Any] | None


async def serve_client(
    server: McpServer,
    wire: Wire,
    handshake: Handshake,
    *,
    shutdown: Shutdown,
    drain: float,
    protocol: ProtocolMode = "pin",
) -> None:
    """Serve one client, after its handshake, until it leaves or the server is asked to stop."""

    def stop_waiting() -> None:
        server.close_streams()
        mcp_connection.roots.close()

    dispatcher = WireDispatcher(wire, handshake, drain=drain, shutdown=shutdown, on_stopping=stop_waiting)
    mcp_connection = McpConnection(server, dispatcher, protocol)
    try:
        await mcp_connection.replay(handshake.replayable)
        await server.notify_changed(handshake.changed_lists)
        await dispatcher.run(mcp_connection.on_request, mcp_connection.on_notify)
    finally:
        await aclose_shielded(mcp_connection.connection)


class McpConnection:
    """One client's connection, served by the rules of its protocol era."""

    def __init__(self, server: McpServer, dispatcher: WireDispatcher, protocol: ProtocolMode) -> None:
        self.connection = Connection.for_loop(dispatcher)
        self._server, self._dispatcher = server, dispatcher
        self._pins_version = protocol == "pin"
        self._open_envelope = partial(Connection.from_envelope, outbound=NotifyOnlyOutbound(dispatcher))
        self._runner = ServerRunner(server, self.connection, None)
        self._is_modern: bool | None = None
        toolsets = server.tools.dispatcher.registry.toolsets
        self.roots = ClientRoots(self.connection, [toolset.on_roots for toolset in toolsets if toolset.on_roots])

    async def replay(self, messages: Sequence[jsonrpc.Request | jsonrpc.Notification]) -> None:
        """Bring the session to the state after these messages, which have been answered before it existed."""
        for message in messages:
            if isinstance(message, jsonrpc.Request):
                inbound = InboundMessage(self._dispatcher, message.id, message.params)
                await self.on_request(inbound, message.method, message.params)
            else:
                inbound = InboundMessage(self._dispatcher, None, message.params)
                await self.on_notify(inbound, message.method, message.params)

    async def on_request(self, inbound: Any, method: str, params: MessageParams) -> dict[str, Any]:
        """Answer one request."""
        is_enveloped = method != "initialize" and has_envelope(params or {})
        if self._is_modern is None:
            self._is_modern = is_enveloped
        if self._is_modern:
            return await self._answer_stateless_era(inbound, method, params)
        if is_enveloped:
            raise MCPError(
                INVALID_REQUEST,
                "This connection began with a handshake; requests with the 2026-07-28 envelope are not accepted on it.",
            )
        return await self._answer_handshake_era(inbound, method, params)

    async def on_notify(self, inbound: Any, method: str, params: MessageParams) -> None:
        """Handle one notification."""
        if not self._is_modern:
            await self._runner.on_notify(inbound, method, params)
            self.roots.handle_notification(method)
            return
        connection = self._open_envelope(LATEST_MODERN_VERSION, None, None)
        await ServerRunner(self._server, connection, None).on_notify(inbound, method, params)

    async def _answer_handshake_era(
        self, inbound: InboundMessage, method: str, params: MessageParams
    ) -> dict[str, Any]:
        if self.connection.initialize_accepted:
            if method == "tools/call":
                return await self._call_tool(inbound, params, modern=False)
            if method == "tools/list":
                return self._server.tools.list_tools(params, modern=False)
        elif method == "initialize" and self._pins_version and params and "protocolVersion" in params:
            params = {**params, "protocolVersion": PROTOCOL_VERSION}
        return await self._runner.on_request(inbound, method, params)

    async def _answer_stateless_era(
        self, inbound: InboundMessage, method: str, params: MessageParams
    ) -> dict[str, Any]:
        if method == "initialize":
            raise MCPError(
                UNSUPPORTED_PROTOCOL_VERSION,
                "This connection serves 2026-07-28; the initialize handshake is not part of it.",
                {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": str((params or {}).get("protocolVersion"))},
            )
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        if method == "tools/call":
            return await self._call_tool(inbound, params, modern=True)
        if method == "tools/list":
            return self._server.tools.list_tools(params, modern=True)
        connection = self._open_envelope(route.protocol_version, route.client_info, route.client_capabilities)
        return await serve_one(self._server, inbound, method, params, connection=connection, lifespan_state=None)

    async def _call_tool(self, inbound: InboundMessage, params: MessageParams, *, modern: bool) -> dict[str, Any]:
        if self.roots.is_asking:
            await self.roots.wait_until_known()
        request_id, on_begin = str(inbound.request_id), inbound.begin_call
        return await self._server.tools.call_tool(
            params, request_id=request_id, channel=inbound, modern=modern, raw=True, on_begin=on_begin
        )

"""The official SDK's low-level server with our tools and our capability block."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from cleats.contract.resources import ListName
from cleats.contract.tools import Toolset
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime.dispatcher import Dispatcher
from cleats.transports.mcp.messages import error_from_exception
from cleats.transports.mcp.resources import PromptHandlers, ResourceHandlers
from cleats.transports.mcp.skills_extension import SkillsExtension
from cleats.transports.mcp.tool_api import ToolSurface, ValidationMode

SERVER_NAME = "cleats"
CAPABILITY_BLOCK_NAME = "pairofcleats"
"""The key of our block under `capabilities.experimental`."""


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
        *,
        capabilities: Mapping[str, Any],
        instructions: str,
        validation: ValidationMode = "protocol",
    ) -> None:
        self.tools: ToolSurface
        super().__init__(
            SERVER_NAME,
            version=TOOLING_VERSION,
            title="Cleats",
            instructions=instructions,
            on_list_tools=cast("Any", self._handle_tools),
            on_call_tool=cast("Any", self._handle_tools),
            get_tool_input_schema=self._find_input_schema,
        )
        self.tools = ToolSurface(dispatcher, server_info=self.server_info_stamp, validation=validation)
        self._capability_block = {
            "schemaVersion": SCHEMA_VERSION,
            "toolingVersion": TOOLING_VERSION,
            "transport": "sdk",
            "capabilities": dict(capabilities),
        }
        # A span per message is the dispatcher's job here, and it is cheaper at it.
        self.middleware = [self._handle_message]
        self._connections: set[Connection] = set()
        self.bus = InMemorySubscriptionBus()
        self.streams: ListenHandler | None = None
        if any(toolset.changes for toolset in dispatcher.registry.toolsets):
            self.streams = ListenHandler(self.bus)
            self.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, self.streams)
        self._offered_lists: set[ListName] = set()
        self._register_offers(dispatcher.registry.toolsets)

    def _register_offers(self, toolsets: Sequence[Toolset]) -> None:
        """Serve the resources, prompts and skills of toolsets; announce only what exists."""
        resources = [toolset.resources for toolset in toolsets if toolset.resources is not None]
        prompts = [toolset.prompts for toolset in toolsets if toolset.prompts is not None]
        skills = [toolset.skills for toolset in toolsets if toolset.skills is not None]
        if resources:
            ResourceHandlers(resources).register(self)
            self._offered_lists.add("resources")
        if prompts:
            PromptHandlers(prompts).register(self)
            self._offered_lists.add("prompts")
        if skills:
            SkillsExtension(skills, resources).register(self)

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

    async def notify_changed(self, lists: Collection[ListName]) -> None:
        """Notify every connected client which lists changed, in the form of its protocol era."""
        if "tools" in lists:
            self.tools.invalidate_listings()
        for name in lists:
            for connection in list(self._connections):
                if connection.initialized.is_set():
                    await connection.notify(f"notifications/{name}/list_changed", None)
            await self.bus.publish(_LIST_CHANGED_EVENTS[name]())

    def _find_input_schema(self, name: str) -> Mapping[str, Any] | None:
        return self.tools.find_input_schema(name)

    def close_streams(self) -> None:
        """End the open subscription streams, each with its final message."""
        if self.streams is not None:
            self.streams.close()

    async def _handle_message(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Handle a message that the SDK dispatches; errors leave with their code."""
        try:
            if ctx.method in {"tools/call", "tools/list"} and _is_ready(ctx):
                return await self._handle_tools(ctx, None)
            if ctx.method == "notifications/initialized":
                self._add_connection(ctx.session)
            return await call_next(ctx)
        except Exception as crash:
            raise error_from_exception(crash, ctx.method) from crash

    def _add_connection(self, session: ServerSession) -> None:
        """Register the client of a handshake connection for change notifications."""
        # The SDK has no public way from a session to its connection, and no other hook that every
        # transport runs; the dependency is pinned below the next minor version for this reason.
        connection = session._connection  # noqa: SLF001
        if connection not in self._connections:
            self._connections.add(connection)
            connection.exit_stack.callback(self._connections.discard, connection)

    async def _handle_tools(self, ctx: ServerRequestContext[Any, Any], _params: Any) -> HandlerResult:
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if ctx.method == "tools/list":
            return self.tools.list_tools(ctx.params, modern=is_modern)
        return await self.tools.call_tool(
            ctx.params,
            request_id=str(ctx.request_id),
            channel=SessionChannel(ctx),
            modern=is_modern,
            raw=False,
        )


def _is_ready(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the handshake is done; if not, the SDK's own gate refuses the request."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or ctx.session.client_params is not None


class SessionChannel:
    """A channel back to the client through a session of the SDK."""

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self.ctx = ctx

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        if method == "notifications/progress" and params is not None:
            await self.ctx.session.report_progress(params["progress"], params.get("total"), params.get("message"))

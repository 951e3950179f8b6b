"""The official SDK's low-level server, carrying our tools and our capability block."""

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

from cleats.contract.listing import ListName
from cleats.contract.tools import Toolset
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime.dispatcher import Dispatcher
from cleats.transports.mcp.prompts import PromptMethods
from cleats.transports.mcp.refusals import from_exception
from cleats.transports.mcp.resources import ResourceMethods
from cleats.transports.mcp.skills_extension import SkillsExtension
from cleats.transports.mcp.surface import ToolSurface, Validation

NAME = "cleats"
BLOCK = "pairofcleats"
"""Our block under `capabilities.experimental`."""


_EVENTS: Mapping[ListName, Callable[[], ServerEvent]] = {
    "tools": ToolsListChanged,
    "resources": ResourcesListChanged,
    "prompts": PromptsListChanged,
}


class McpServer(Server[None]):
    """One for the whole process; every connection of every transport shares it."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        capabilities: Mapping[str, Any],
        instructions: str,
        validation: Validation = "protocol",
    ) -> None:
        self.tools: ToolSurface
        super().__init__(
            NAME,
            version=TOOLING_VERSION,
            title="Cleats",
            instructions=instructions,
            on_list_tools=cast("Any", self._handle),
            on_call_tool=cast("Any", self._handle),
            get_tool_input_schema=self._input_schema,
        )
        self.tools = ToolSurface(
            dispatcher, server_info=self.server_info_stamp, validation=validation
        )
        self._block = {
            "schemaVersion": SCHEMA_VERSION,
            "toolingVersion": TOOLING_VERSION,
            "transport": "sdk",
            "capabilities": dict(capabilities),
        }
        # A span per message is the dispatcher's job here, and it is cheaper at it.
        self.middleware = [self._middleware]
        self._connections: set[Connection] = set()
        self.bus = InMemorySubscriptionBus()
        self.streams: ListenHandler | None = None
        if any(toolset.changes for toolset in dispatcher.registry.toolsets):
            self.streams = ListenHandler(self.bus)
            self.add_request_handler(
                "subscriptions/listen", types.SubscriptionsListenRequestParams, self.streams
            )
        self._offers: set[ListName] = set()
        self._add_offers(dispatcher.registry.toolsets)

    def _add_offers(self, toolsets: Sequence[Toolset]) -> None:
        """Serve what toolsets offer besides tools; what none offers is not announced."""
        resources = [each.resources for each in toolsets if each.resources is not None]
        prompts = [each.prompts for each in toolsets if each.prompts is not None]
        skills = [each.skills for each in toolsets if each.skills is not None]
        if resources:
            ResourceMethods(resources).add_to(self)
            self._offers.add("resources")
        if prompts:
            PromptMethods(prompts).add_to(self)
            self._offers.add("prompts")
        if skills:
            SkillsExtension(skills, resources).add_to(self)

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,  # noqa: ARG002 - ours are fixed
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """The same block in `initialize`, over every transport, and in `server/discover`."""
        return super().get_capabilities(
            NotificationOptions(
                tools_changed=self.streams is not None,
                resources_changed="resources" in self._offers,
                prompts_changed="prompts" in self._offers,
            ),
            {BLOCK: self._block, **(experimental_capabilities or {})},
            extensions,
            protocol_version=protocol_version,
        )

    async def changed(self, lists: Collection[ListName]) -> None:
        """Tell every connected client which lists changed, each in the way of its era."""
        if "tools" in lists:
            self.tools.changed()
        for name in lists:
            for connection in list(self._connections):
                if connection.initialized.is_set():
                    await connection.notify(f"notifications/{name}/list_changed", None)
            await self.bus.publish(_EVENTS[name]())

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        return self.tools.input_schema(name)

    def stopping(self) -> None:
        """End the open subscription streams, each with its last word."""
        if self.streams is not None:
            self.streams.close()

    async def _middleware(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Around every message that takes the SDK's road: errors leave with their code."""
        try:
            if ctx.method in {"tools/call", "tools/list"} and _ready(ctx):
                return await self._handle(ctx, None)
            if ctx.method == "notifications/initialized":
                self._join(ctx.session)
            return await call_next(ctx)
        except Exception as crash:
            raise from_exception(crash, ctx.method) from crash

    def _join(self, session: ServerSession) -> None:
        """From now on the client behind a handshake connection hears of changes."""
        # The SDK has no public way from a session to its connection, and no other hook that every
        # transport runs; the pin below the next minor version keeps this true.
        connection = session._connection  # noqa: SLF001
        if connection not in self._connections:
            self._connections.add(connection)
            connection.exit_stack.callback(self._connections.discard, connection)

    async def _handle(self, ctx: ServerRequestContext[Any, Any], _params: Any) -> HandlerResult:
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if ctx.method == "tools/list":
            return self.tools.list(ctx.params, modern=modern)
        return await self.tools.call(
            ctx.params,
            request_id=str(ctx.request_id),
            channel=SessionChannel(ctx),
            modern=modern,
            raw=False,
        )


def _ready(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the handshake is done; if not, the SDK's own gate refuses the request."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or ctx.session.client_params is not None


class SessionChannel:
    """The way back through a session of the SDK."""

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self.ctx = ctx

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        if method == "notifications/progress" and params is not None:
            await self.ctx.session.report_progress(
                params["progress"], params.get("total"), params.get("message")
            )

"""One MCP connection over a wire, in the protocol era that its first request selects.

`initialize` selects the handshake era (2025-11-25), any request with the 2026-07-28 envelope the
stateless one. The rules are the SDK's; `tools/call` and `tools/list` go straight to our surface,
every other method through the SDK's runner.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.runner import ServerRunner, aclose_shielded, serve_one
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp_types import INVALID_REQUEST, PROTOCOL_VERSION_META_KEY, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from cleats.contract.versions import PROTOCOL_VERSION
from cleats.runtime.shutdown import Shutdown
from cleats.transports.mcp.dispatcher import InboundMessage, WireDispatcher
from cleats.transports.mcp.server import McpServer
from cleats.transports.stdio import Wire

ProtocolMode = Literal["pin", "negotiate"]
"""Answer every handshake with our one version (`pin`), or with the client's if we know it."""

MessageParams = Mapping[str, Any] | None


async def serve_client(
    server: McpServer,
    wire: Wire,
    *,
    shutdown: Shutdown,
    limit: int,
    drain: float,
    protocol: ProtocolMode = "pin",
) -> None:
    """Serve one client until it leaves or the server is asked to stop."""
    dispatcher = WireDispatcher(wire, limit=limit, drain=drain, shutdown=shutdown, on_stopping=server.close_streams)
    mcp_connection = McpConnection(server, dispatcher, protocol)
    try:
        await dispatcher.run(mcp_connection.on_request, mcp_connection.on_notify)
    finally:
        await aclose_shielded(mcp_connection.connection)


class McpConnection:
    """One client's connection, served by the rules of its protocol era."""

    def __init__(self, server: McpServer, dispatcher: WireDispatcher, protocol: ProtocolMode) -> None:
        self.connection = Connection.for_loop(dispatcher)
        self._server = server
        self._pins_version = protocol == "pin"
        self._outbound = NotifyOnlyOutbound(dispatcher)
        self._runner = ServerRunner(server, self.connection, None)
        self._is_modern: bool | None = None

    async def on_request(self, inbound: Any, method: str, params: MessageParams) -> dict[str, Any]:
        """Answer one request."""
        has_envelope = method != "initialize" and _has_envelope(params)
        if self._is_modern is None:
            self._is_modern = has_envelope
        if self._is_modern:
            return await self._answer_stateless_era(inbound, method, params)
        if has_envelope:
            raise MCPError(
                INVALID_REQUEST,
                "This connection began with a handshake; requests with the 2026-07-28 envelope are not accepted on it.",
            )
        return await self._answer_handshake_era(inbound, method, params)

    async def on_notify(self, inbound: Any, method: str, params: MessageParams) -> None:
        """Handle one notification."""
        if not self._is_modern:
            await self._runner.on_notify(inbound, method, params)
            return
        connection = self._connection_factory(LATEST_MODERN_VERSION, None, None)
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
                {
                    "supported": list(MODERN_PROTOCOL_VERSIONS),
                    "requested": str((params or {}).get("protocolVersion")),
                },
            )
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        if method == "tools/call":
            return await self._call_tool(inbound, params, modern=True)
        if method == "tools/list":
            return self._server.tools.list_tools(params, modern=True)
        connection = self._connection_factory(route.protocol_version, route.client_info, route.client_capabilities)
        return await serve_one(self._server, inbound, method, params, connection=connection, lifespan_state=None)

    async def _call_tool(self, inbound: InboundMessage, params: MessageParams, *, modern: bool) -> dict[str, Any]:
        return await self._server.tools.call_tool(
            params,
            request_id=str(inbound.request_id),
            channel=inbound,
            modern=modern,
            raw=True,
            on_begin=inbound.begin_call,
        )

    @property
    def _connection_factory(self) -> Any:
        return partial(Connection.from_envelope, outbound=self._outbound)


def _has_envelope(params: MessageParams) -> bool:
    meta = params.get("_meta") if params else None
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta

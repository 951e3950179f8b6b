"""One MCP connection over a wire, in the era that its first request opens.

`initialize` opens the handshake era (2025-11-25), any request with the 2026-07-28 envelope the
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
from cleats.transports.mcp.inbound import Inbound
from cleats.transports.mcp.server import McpServer
from cleats.transports.mcp.wire import WireDispatcher
from cleats.transports.stdio import Wire

Protocol = Literal["pin", "negotiate"]
"""Answer every handshake with our one version, or with the client's when we know it."""

Params = Mapping[str, Any] | None


async def serve(
    server: McpServer,
    wire: Wire,
    *,
    shutdown: Shutdown,
    limit: int,
    drain: float,
    protocol: Protocol = "pin",
) -> None:
    """Serve one client until it leaves or the server is asked to stop."""
    dispatcher = WireDispatcher(
        wire, limit=limit, drain=drain, shutdown=shutdown, stopping=server.stopping
    )
    conversation = Conversation(server, dispatcher, protocol)
    try:
        await dispatcher.run(conversation.on_request, conversation.on_notify)
    finally:
        await aclose_shielded(conversation.connection)


class Conversation:
    """What one client says, and what that means in its era."""

    def __init__(self, server: McpServer, dispatcher: WireDispatcher, protocol: Protocol) -> None:
        self.connection = Connection.for_loop(dispatcher)
        self._server = server
        self._pin = protocol == "pin"
        self._outbound = NotifyOnlyOutbound(dispatcher)
        self._runner = ServerRunner(server, self.connection, None)
        self._modern: bool | None = None

    async def on_request(self, inbound: Any, method: str, params: Params) -> dict[str, Any]:
        """Answer one request."""
        enveloped = method != "initialize" and _has_envelope(params)
        if self._modern is None:
            self._modern = enveloped
        if self._modern:
            return await self._stateless(inbound, method, params)
        if enveloped:
            raise MCPError(
                INVALID_REQUEST,
                "This connection began with a handshake; "
                "requests with the 2026-07-28 envelope are not accepted on it.",
            )
        return await self._handshake(inbound, method, params)

    async def on_notify(self, inbound: Any, method: str, params: Params) -> None:
        """Hear one notification."""
        if not self._modern:
            await self._runner.on_notify(inbound, method, params)
            return
        connection = self._envelope_of(LATEST_MODERN_VERSION, None, None)
        await ServerRunner(self._server, connection, None).on_notify(inbound, method, params)

    async def _handshake(self, inbound: Inbound, method: str, params: Params) -> dict[str, Any]:
        if self.connection.initialize_accepted:
            if method == "tools/call":
                return await self._call(inbound, params, modern=False)
            if method == "tools/list":
                return self._server.tools.list(params, modern=False)
        elif method == "initialize" and self._pin and params and "protocolVersion" in params:
            params = {**params, "protocolVersion": PROTOCOL_VERSION}
        return await self._runner.on_request(inbound, method, params)

    async def _stateless(self, inbound: Inbound, method: str, params: Params) -> dict[str, Any]:
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
            return await self._call(inbound, params, modern=True)
        if method == "tools/list":
            return self._server.tools.list(params, modern=True)
        connection = self._envelope_of(
            route.protocol_version, route.client_info, route.client_capabilities
        )
        return await serve_one(
            self._server, inbound, method, params, connection=connection, lifespan_state=None
        )

    async def _call(self, inbound: Inbound, params: Params, *, modern: bool) -> dict[str, Any]:
        return await self._server.tools.call(
            params,
            request_id=str(inbound.request_id),
            channel=inbound,
            modern=modern,
            raw=True,
            begun=inbound.begun,
        )

    @property
    def _envelope_of(self) -> Any:
        return partial(Connection.from_envelope, outbound=self._outbound)


def _has_envelope(params: Params) -> bool:
    meta = params.get("_meta") if params else None
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta

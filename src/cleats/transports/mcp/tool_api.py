"""Our tools over MCP: `tools/list` from a cache, `tools/call` through the dispatcher.

One instance serves every connection of both protocol eras, over stdio and over HTTP; the differences are arguments of
two methods.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec
from mcp_types import methods as mcp_methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from cleats.contract.arguments import make_type_error
from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Outcome, Rejected
from cleats.contract.payload import AnswerMeta
from cleats.contract.tools import Tool
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import ProgressReport, ProgressReporter
from cleats.transports.jsonrpc import encode_answer, render_encodable
from cleats.transports.mcp.description import SERVER_STAMP, ServerDescription
from cleats.transports.mcp.dispatcher import invalid_request_error, protocol_error

ValidationMode = Literal["protocol", "tool"]
"""Report bad arguments as a JSON-RPC error (`protocol`) or as a tool result (`tool`)."""


class NotificationChannel(Protocol):
    """A channel back to the client that sent a request."""

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification about the request, unless it has ended."""


class ToolSurface:
    """The methods `tools/list` and `tools/call`."""

    def __init__(
        self, dispatcher: Dispatcher, description: ServerDescription, *, validation: ValidationMode = "protocol"
    ) -> None:
        self.dispatcher = dispatcher
        self.description = description
        self._validation = validation
        self._listings: dict[bool, dict[str, Any]] = {}

    def invalidate_listings(self) -> None:
        """Discard the cached listings after a change of a tool."""
        self._listings = {}

    def list_tools(self, params: Mapping[str, Any] | None, *, modern: bool) -> dict[str, Any]:
        """Return every tool, in one page.

        Raises:
            MCPError: The request has a cursor; we never return one.
        """
        if params and params.get("cursor") is not None:
            raise invalid_request_error("Invalid cursor. The list has only one page.")
        if modern not in self._listings:
            self._listings[modern] = self._build_listing(modern=modern)
        return self._listings[modern]

    async def call_tool(
        self,
        params: Mapping[str, Any] | None,
        *,
        request_id: str,
        channel: NotificationChannel,
        modern: bool,
        raw: bool,
        on_begin: Callable[[ToolCall], None] | None = None,
    ) -> dict[str, Any]:
        """Run one call and return its answer as a `CallToolResult`.

        `raw` leaves the structured part encoded, for a surface that writes the bytes itself.

        Raises:
            MCPError: The call never ran.
        """
        call = _parse_call(params, request_id, channel)
        if on_begin is not None:
            on_begin(call)
        outcome = await self.dispatcher.dispatch(call)
        if isinstance(outcome, Rejected):
            is_tool_result = self._validation == "tool" and outcome.error.code is ErrorCode.INVALID_REQUEST
            if not is_tool_result:
                raise protocol_error(outcome.error)
        tool = self.dispatcher.registry.find(call.tool)
        result = render_encodable(_render_result, outcome, tool, call.meta, raw, tool=tool.name)
        if modern:
            result["resultType"] = "complete"
            result["_meta"] = SERVER_STAMP
        return result

    def find_input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return a tool's input schema for the SDK's header checks, or None for an unknown tool."""
        tool = self.dispatcher.registry.get(name)
        return tool.input if tool else None

    def _build_listing(self, *, modern: bool) -> dict[str, Any]:
        result = self.description.build_tool_list(modern=modern)
        version = LATEST_MODERN_VERSION if modern else LATEST_HANDSHAKE_VERSION
        # The SDK's own rules for what may be on the wire at this version, applied once.
        listing: dict[str, Any] = mcp_methods.serialize_server_result("tools/list", version, result)
        return listing


def _parse_call(params: Mapping[str, Any] | None, request_id: str, channel: NotificationChannel) -> ToolCall:
    params = params or {}
    name, arguments, meta = params.get("name"), params.get("arguments"), params.get("_meta")
    if not isinstance(name, str):
        raise protocol_error(make_type_error("name", "string"))
    if arguments is not None and not isinstance(arguments, dict):
        raise protocol_error(make_type_error("arguments", "object"))
    if meta is not None and not isinstance(meta, dict):
        raise protocol_error(make_type_error("_meta", "object"))
    call = ToolCall(tool=name, arguments=arguments or {}, id=request_id, surface="mcp")
    call.meta.request_id = request_id
    if meta:
        token = meta.get("progressToken")
        if isinstance(token, str | int) and not isinstance(token, bool):
            call.reporter = ProgressReporter(_build_reporter(name, token, channel))
        if isinstance(parent := meta.get("traceparent"), str):
            call.traceparent = parent
    return call


def _build_reporter(
    tool: str, token: str | int, channel: NotificationChannel
) -> Callable[[ProgressReport], Awaitable[None]]:
    async def send_progress(report: ProgressReport) -> None:
        params: dict[str, Any] = {"progressToken": token, "progress": report.number}
        if report.total is not None:
            params["total"] = report.total
        params["message"] = f"[{tool}][phase={report.phase}] {report.message}"
        await channel.notify("notifications/progress", params)

    return send_progress


def _render_result(outcome: Outcome, tool: Tool, meta: AnswerMeta, raw: bool) -> dict[str, Any]:
    answer = tool.payload.render_outcome(outcome, meta)
    encoded = None if answer.body is None else encode_answer(answer.body)
    text = {"type": "text", "text": (encoded or b"").decode()}
    result: dict[str, Any] = {
        "isError": not answer.ok,
        "content": [text] if answer.content is None else list(answer.content),
    }
    if encoded is not None:
        result["structuredContent"] = msgspec.Raw(encoded) if raw else msgspec.json.decode(encoded)
    return result

"""Our tools as MCP sees them: `tools/list` from a cache, `tools/call` through the dispatcher.

One instance serves every connection of both protocol eras, over stdio and over HTTP alike; what
differs between them is in the arguments of two methods.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec
from mcp_types import SERVER_INFO_META_KEY
from mcp_types import methods as mcp_methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Failed, Outcome, Rejected
from cleats.contract.payload import Meta
from cleats.contract.tools import Tool
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime.call import Call
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.progress import Progress, Report
from cleats.transports.mcp.refusals import protocol_error, refusal, violation

log = logging.getLogger(__name__)

VENDOR = "pairofcleats/"
"""The namespace of our keys in the `_meta` of a tool definition."""

Validation = Literal["protocol", "tool"]
"""Whether bad arguments are a JSON-RPC error or a tool result that says so."""


class Channel(Protocol):
    """The way back to the client that sent a request."""

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification about the request, unless it is over."""


_encode = msgspec.json.Encoder(enc_hook=str).encode


class ToolSurface:
    """`tools/list` and `tools/call`."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        server_info: Mapping[str, Any],
        validation: Validation = "protocol",
    ) -> None:
        self.dispatcher = dispatcher
        self._validation = validation
        self._stamp = {SERVER_INFO_META_KEY: dict(server_info)}
        self._listed: dict[bool, dict[str, Any]] = {}

    def changed(self) -> None:
        """Some tool reads differently now; the next listing is made anew."""
        self._listed = {}

    def list(self, params: Mapping[str, Any] | None, *, modern: bool) -> dict[str, Any]:
        """Every tool, in one page.

        Raises:
            MCPError: a cursor was sent; we never gave one out.
        """
        if params and params.get("cursor") is not None:
            raise refusal("There is no such page: the list is whole.")
        listed = self._listed.get(modern)
        if listed is None:
            listed = self._listed[modern] = self._list(modern=modern)
        return listed

    async def call(
        self,
        params: Mapping[str, Any] | None,
        *,
        request_id: str,
        channel: Channel,
        modern: bool,
        raw: bool,
        begun: Callable[[Call], None] | None = None,
    ) -> dict[str, Any]:
        """Run one call and put its answer into a `CallToolResult`.

        `raw` leaves the structured part encoded, for a surface that writes the bytes itself.

        Raises:
            MCPError: the call never ran.
        """
        call = _call_of(params, request_id, channel)
        if begun is not None:
            begun(call)
        outcome = await self.dispatcher.dispatch(call)
        if isinstance(outcome, Rejected) and not self._as_result(outcome):
            raise protocol_error(outcome.error)
        try:
            tool = self.dispatcher.registry.find(call.tool)
            result = _result(tool, outcome, call.meta, raw=raw)
        except (TypeError, ValueError, OverflowError, RecursionError):
            log.exception("answer.unspeakable tool=%s", call.tool)
            unspeakable = ToolError(ErrorCode.INTERNAL, "The tool's answer is not JSON.")
            result = _result(tool, Failed(unspeakable), call.meta, raw=raw)
        if modern:
            result["resultType"] = "complete"
            result["_meta"] = self._stamp
        return result

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """A tool's input schema, for the SDK's header checks; None when there is no such tool."""
        try:
            return self.dispatcher.registry.find(name).input
        except ToolError:
            return None

    def _as_result(self, outcome: Rejected) -> bool:
        return self._validation == "tool" and outcome.error.code is ErrorCode.INVALID_REQUEST

    def _list(self, *, modern: bool) -> dict[str, Any]:
        result: dict[str, Any] = {"tools": [definition(t) for t in self.dispatcher.registry]}
        if modern:
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        version = LATEST_MODERN_VERSION if modern else LATEST_HANDSHAKE_VERSION
        # The SDK's own rules for what may be on the wire at this version, applied once.
        listed: dict[str, Any] = mcp_methods.serialize_server_result("tools/list", version, result)
        if modern:
            listed["_meta"] = self._stamp
        return listed


def definition(tool: Tool) -> dict[str, Any]:
    """A tool as `tools/list` shows it."""
    shown: dict[str, Any] = {
        "name": tool.name,
        "description": tool.text,
        "inputSchema": dict(tool.input),
        "annotations": tool.hints.as_json(),
        "_meta": {
            VENDOR + "schemaVersion": tool.version,
            VENDOR + "contractVersion": SCHEMA_VERSION,
            VENDOR + "toolingVersion": TOOLING_VERSION,
        },
    }
    if tool.title:
        shown["title"] = tool.title
    if tool.listed_schema is not None:
        shown["outputSchema"] = dict(tool.listed_schema)
    return shown


def _call_of(params: Mapping[str, Any] | None, request_id: str, channel: Channel) -> Call:
    """The call inside `tools/call` params.

    Raises:
        MCPError: there is none.
    """
    params = params or {}
    name = params.get("name")
    arguments = params.get("arguments")
    meta = params.get("_meta")
    if not isinstance(name, str):
        raise violation("name", "string")
    if arguments is not None and not isinstance(arguments, dict):
        raise violation("arguments", "object")
    if meta is not None and not isinstance(meta, dict):
        raise violation("_meta", "object")
    reporter = traceparent = None
    if meta:
        token = meta.get("progressToken")
        if isinstance(token, str | int) and not isinstance(token, bool):
            reporter = Progress(_wording(name, token, channel))
        if isinstance(parent := meta.get("traceparent"), str):
            traceparent = parent
    return Call(
        tool=name,
        arguments=arguments or {},
        id=request_id,
        surface="mcp",
        reporter=reporter,
        traceparent=traceparent,
        meta=Meta(request_id=request_id),
    )


def _wording(tool: str, token: str | int, channel: Channel) -> Callable[[Report], Awaitable[None]]:
    async def send(report: Report) -> None:
        params: dict[str, Any] = {"progressToken": token, "progress": report.number}
        if report.total is not None:
            params["total"] = report.total
        params["message"] = f"[{tool}][phase={report.phase}] {report.message}"
        await channel.notify("notifications/progress", params)

    return send


def _result(tool: Tool, outcome: Outcome, meta: Meta, *, raw: bool) -> dict[str, Any]:
    answer = tool.payload.seal(outcome, meta)
    result: dict[str, Any] = {"isError": not answer.ok}
    encoded = None if answer.body is None else _encode(answer.body)
    if answer.content is not None:
        result["content"] = list(answer.content)
    else:
        text = "" if encoded is None else encoded.decode()
        result["content"] = [{"type": "text", "text": text}]
    if encoded is not None:
        result["structuredContent"] = msgspec.Raw(encoded) if raw else msgspec.json.decode(encoded)
    return result

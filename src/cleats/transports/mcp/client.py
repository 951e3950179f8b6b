"""The surface of any MCP server, read with the official client.

For `cleats contract`: the listing of a server becomes a snapshot, which can be stored and compared.
The server is untrusted, so everything is bounded: its time, the length of a line, the number of
pages. A server that is started here runs under `runtime.process` and does not outlive the call.
"""

import asyncio
import logging
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    ListPromptsRequest,
    ListResourcesRequest,
    ListResourceTemplatesRequest,
    ListToolsRequest,
    PaginatedRequestParams,
    jsonrpc_message_adapter,
)
from pydantic import BaseModel, ValidationError

from cleats.contract.snapshot import SNAPSHOT_FORMAT
from cleats.system.processes import process
from cleats.system.processes.tree import MAX_MESSAGE_BYTES
from cleats.transports.mcp.description import VENDOR_META_PREFIX

DEFAULT_TIMEOUT_SECONDS: Final = 30.0
"""The time limit for the whole exchange. Interpreted servers take seconds to start."""

MAX_LISTING_PAGES: Final = 1000
"""The maximum number of pages in one listing; a server whose pages never end is broken."""

EXIT_WAIT_SECONDS: Final = 2.0
"""The time for a server to exit by itself once its input has ended."""

MessageStreams = tuple[ObjectReceiveStream[SessionMessage | Exception], ObjectSendStream[SessionMessage]]
OpenTransport = Callable[[], AbstractAsyncContextManager[Any]]


class ServerFaultError(Exception):
    """Raised when a server cannot be read: it does not start, hangs, or is not an MCP server."""


@dataclass(slots=True)
class ServerDiagnostics:
    """Other observations about a started server, which explain a failure."""

    stray_output: str = ""
    exit_code: int | None = None
    http_status: int | None = None
    """The last status with which the server refused a request."""

    def __str__(self) -> str:
        if self.http_status is not None:
            return f" (HTTP {self.http_status}){STATUS_ADVICE.get(self.http_status, '')}"
        ended = "" if self.exit_code is None else f"; it ended with exit code {self.exit_code}"
        suffix = f"; it wrote something other than a JSON-RPC message to stdout: {self.stray_output!r}"
        return ended + (suffix if self.stray_output else "")


AUTHORIZATION_ADVICE: Final = (
    "; it requires authorization: send a header such as 'Authorization: Bearer TOKEN' "
    "(--header, or headers in cleats-contract.toml)"
)
ADDRESS_ADVICE: Final = (
    "; no MCP server with Streamable HTTP is at this address: check its path, which is often /mcp. "
    "The older HTTP+SSE transport, often at /sse, is not supported"
)
STATUS_ADVICE: Final = {401: AUTHORIZATION_ADVICE, 403: AUTHORIZATION_ADVICE, 404: ADDRESS_ADVICE, 405: ADDRESS_ADVICE}
"""What to do about an HTTP status."""

DOWNLOADING_COMMANDS: Final = frozenset({"npx", "bunx", "pnpx", "uvx", "pipx", "docker"})
"""Commands that fetch a server before they start it."""


async def read_surface(
    *,
    command: str | None = None,
    url: str | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,  # noqa: ASYNC109 - the caller gets an error that explains itself
    grace: float = process.GRACE_SECONDS,
) -> dict[str, Any]:
    """Read everything a server lists into a snapshot.

    Give a `command` to start (it shares our stderr, and `env` is its whole environment) or the `url` of a running
    server. Takes `timeout` seconds at most, and `grace` more to terminate a command that does not exit.

    Raises:
        ServerFaultError: The server cannot be read; the message gives the reason.
    """
    diagnostics = ServerDiagnostics()
    if command is not None:
        argv = _split_command(command)
        server_name, connect = command, lambda: _start_server(argv, env, diagnostics, grace)
    else:
        argv, server_name, connect = [], url or "", lambda: _open_remote(url or "", headers, diagnostics)
    try:
        with _silence_logger("mcp"), anyio.fail_after(timeout):
            return await _read_snapshot(connect)
    except TimeoutError:
        advice = _advise_on_timeout(argv)
        raise ServerFaultError(f"{server_name} did not answer within {timeout:g} s{diagnostics}{advice}") from None
    except Exception as error:  # noqa: BLE001 - an untrusted server can make the SDK raise anything
        raise ServerFaultError(f"{server_name}: {_describe_error(error)}{diagnostics}") from None


def _split_command(command: str) -> list[str]:
    try:
        words = shlex.split(command, posix=sys.platform != "win32")
    except ValueError as error:  # an unterminated quotation
        raise ServerFaultError(f"{command}: {error}") from None
    if not words:
        raise ServerFaultError("the command is empty")
    return words


async def _read_snapshot(connect: OpenTransport) -> dict[str, Any]:
    """Read a snapshot, with the handshake first: some servers exit if anything else comes first."""
    try:
        return await _take_snapshot(connect, "legacy")
    except Exception as error:
        codes = {cause.code for cause in _iter_causes(error) if isinstance(cause, MCPError)}
        if codes.isdisjoint({UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND}):
            raise
    return await _take_snapshot(connect, "auto")


async def _take_snapshot(connect: OpenTransport, mode: Literal["legacy", "auto"]) -> dict[str, Any]:
    async with Client(connect(), mode=mode, cache=None) as client:
        capabilities = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
        snapshot: dict[str, Any] = {
            "snapshot": SNAPSHOT_FORMAT,
            "protocolVersion": client.protocol_version,
            "capabilities": capabilities,
            "tools": {},
        }
        if client.server_info is not None:
            server_info = client.server_info.model_dump(by_alias=True, exclude_none=True)
            snapshot["server"] = {
                name: server_info[name] for name in ("name", "version", "title") if name in server_info
            }
        if client.instructions:
            snapshot["instructions"] = client.instructions
        async for tool in _list_entries(client, ListToolsRequest, "tools"):
            _add_entry(snapshot["tools"], "tools", tool["name"], _describe_tool(tool))
            if isinstance(version := tool.get("_meta", {}).get(VENDOR_META_PREFIX + "contractVersion"), str):
                snapshot["schemaVersion"] = version
        for key, _, name_field, request in [listing for listing in OTHER_LISTINGS if listing[1] in capabilities]:
            entries: dict[str, Any] = {}
            try:
                async for entry in _list_entries(client, request, key):
                    name = entry.pop(name_field)
                    if isinstance(entry.get("arguments"), list):
                        entry["arguments"] = {argument.pop("name"): argument for argument in entry["arguments"]}
                    _add_entry(entries, key, name, entry)
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:  # it has resources, say, and no templates of them
                    raise
            snapshot[key] = entries
    return snapshot


class RawResult(BaseModel, extra="allow"):
    """A result as the server wrote it."""


OTHER_LISTINGS: Final = (
    ("prompts", "prompts", "name", ListPromptsRequest),
    ("resources", "resources", "uri", ListResourcesRequest),
    ("resourceTemplates", "resources", "uriTemplate", ListResourceTemplatesRequest),
)
"""The key of each other list, the capability of servers that have it, the field of its names, and its request."""


def _add_entry(entries: dict[str, Any], key: str, name: str, entry: dict[str, Any]) -> None:
    if name in entries:
        raise ServerFaultError(f"it lists two {key} called {name!r}")
    entries[name] = entry


async def _list_entries(client: Client, request: Any, key: str) -> AsyncIterator[dict[str, Any]]:
    """Yield the entries of a list as the server wrote them, with keys that the SDK does not know."""
    cursor: str | None = None
    for _ in range(MAX_LISTING_PAGES):
        params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
        result = await client.session.send_request(request(params=params), RawResult)
        page = result.model_extra or {}
        for entry in page.get(key, []):
            yield entry
        cursor = page.get("nextCursor")
        if cursor is None:
            return
    raise ServerFaultError(f"its list of {key} has more than {MAX_LISTING_PAGES} pages")


def _describe_tool(tool: dict[str, Any]) -> dict[str, Any]:
    meta = tool.get("_meta", {})
    entry = {key: value for key, value in tool.items() if key not in {"name", "_meta"} and value is not None}
    entry.setdefault("description", "")
    if isinstance(version := meta.get(VENDOR_META_PREFIX + "schemaVersion"), int):
        entry["schemaVersion"] = version
    if other_meta := {key: value for key, value in meta.items() if not key.startswith(VENDOR_META_PREFIX)}:
        entry["_meta"] = other_meta
    return entry


# Transports to a server


@asynccontextmanager
async def _open_remote(
    url: str, headers: Mapping[str, str] | None, diagnostics: ServerDiagnostics
) -> AsyncIterator[Any]:
    async def note_status(response: Any) -> None:
        # Only requests with a message count: a server may refuse the stream of notifications.
        if response.request.method == "POST":
            diagnostics.http_status = response.status_code if response.is_error else None

    async with create_mcp_http_client(headers=dict(headers or {})) as http:
        http.event_hooks["response"].append(note_status)
        async with streamable_http_client(url, http_client=http) as streams:
            yield streams


@asynccontextmanager
async def _start_server(
    argv: list[str], env: Mapping[str, str] | None, diagnostics: ServerDiagnostics, grace: float
) -> AsyncIterator[MessageStreams]:
    """Start a command and open a transport for the SDK to it."""
    received, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbox, sending = anyio.create_memory_object_stream[SessionMessage](0)

    async def read_until_exit() -> None:
        with received:  # its end is how the session learns that the server is gone
            await _read_messages(child.stdout, received, diagnostics)
            diagnostics.exit_code = await child.wait()

    with received, inbox, outbox, sending:
        async with (
            process.start_command(argv, env=env, grace=grace) as child,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(read_until_exit)
            tasks.start_soon(_write_messages, child.stdin, sending)
            yield inbox, outbox
            with anyio.move_on_after(EXIT_WAIT_SECONDS):
                child.stdin.close()
                await child.wait()
            tasks.cancel_scope.cancel()


async def _read_messages(
    stdout: asyncio.StreamReader, received: ObjectSendStream[SessionMessage | Exception], diagnostics: ServerDiagnostics
) -> None:
    with suppress(asyncio.IncompleteReadError):
        while True:
            try:
                line = await stdout.readuntil()
            except asyncio.LimitOverrunError:
                raise anyio.DelimiterNotFound(MAX_MESSAGE_BYTES) from None
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:  # a banner, a stray print: harmless unless nothing else comes
                diagnostics.stray_output = diagnostics.stray_output or line[:80].decode(errors="replace").strip()
                continue
            await received.send(SessionMessage(message))


async def _write_messages(stdin: asyncio.StreamWriter, sending: ObjectReceiveStream[SessionMessage]) -> None:
    with suppress(OSError, anyio.ClosedResourceError):
        async for item in sending:
            if stdin.is_closing():
                return
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")
            await stdin.drain()


# Error descriptions


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors inside the groups that task groups wrap around them."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _iter_causes(inner)
    else:
        yield error


def _advise_on_timeout(argv: list[str]) -> str:
    if not argv or Path(argv[0]).stem not in DOWNLOADING_COMMANDS:
        return ""
    return (
        f"; {argv[0]} may still be downloading it, or have no network: "
        "install the server beforehand, or raise the limit with --timeout"
    )


def _describe_error(error: BaseException) -> str:
    cause = next(_iter_causes(error))
    if isinstance(cause, process.StartError):
        return f"cannot be started: {cause.reason}; is it installed, and is its folder in PATH?"
    if isinstance(cause, MCPError):
        is_stranger = cause.code == METHOD_NOT_FOUND
        return f"it answered {cause.message!r}; is it an MCP server?" if is_stranger else cause.message
    if isinstance(cause, ValidationError):
        first, *further_errors = cause.errors(include_url=False)
        pointer = "".join(f"/{step}" for step in first["loc"])
        suffix = f" (and {len(further_errors)} more)" if further_errors else ""
        return f"its {cause.title} does not match the MCP specification: {pointer}: {first['msg']}{suffix}"
    return next(iter(str(cause).splitlines()), type(cause).__name__)


@contextmanager
def _silence_logger(name: str) -> Iterator[None]:
    """Suppress the SDK's tracebacks; we report errors ourselves."""
    logger = logging.getLogger(name)
    previous_level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(previous_level)

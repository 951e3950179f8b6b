"""The surface of any MCP server, read with the official client.

For `cleats contract`: the listing of a server becomes a snapshot, which can be stored and compared.
The server is untrusted, so everything is bounded: its time, the length of a line, the number of
pages. A server that is started here runs under `runtime.process` and does not outlive the call.
"""

import logging
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, ObjectReceiveStream, ObjectSendStream
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    Tool,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from cleats.contract.snapshot import SNAPSHOT_FORMAT
from cleats.system.processes import process
from cleats.transports.mcp.description import VENDOR_META_PREFIX

DEFAULT_TIMEOUT_SECONDS: Final = 30.0
"""The time limit for the whole exchange. Interpreted servers take seconds to start."""

MAX_LINE_BYTES: Final = 16 << 20
"""The maximum size of one message: a listing of hundreds of tools is one line."""

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

    def __str__(self) -> str:
        ended = "" if self.exit_code is None else f"; it ended with exit code {self.exit_code}"
        suffix = f"; it wrote to stdout what is no JSON-RPC message: {self.stray_output!r}"
        return ended + (suffix if self.stray_output else "")


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

    Give a `command` to start (it shares our stderr, and `env` is its whole environment) or the
    `url` of a running server. Takes `timeout` seconds at most, and `grace` more to terminate a
    command that does not exit.

    Raises:
        ServerFaultError: The server cannot be read; the message gives the reason.
    """
    diagnostics = ServerDiagnostics()
    if command is not None:
        argv = _split_command(command)
        server_name, connect = argv[0], lambda: _start_server(argv, env, diagnostics, grace)
    else:
        server_name, connect = url or "", lambda: _open_remote(url or "", headers)
    try:
        with _silence_logger("mcp"), anyio.fail_after(timeout):
            return await _read_snapshot(connect)
    except TimeoutError:
        raise ServerFaultError(f"{server_name} did not answer within {timeout:g} s{diagnostics}") from None
    except Exception as error:  # noqa: BLE001 - an untrusted server can make the SDK raise anything
        raise ServerFaultError(f"{server_name}: {_describe_error(error)}{diagnostics}") from None


def _split_command(command: str) -> list[str]:
    try:
        words = shlex.split(command, posix=sys.platform != "win32")
    except ValueError as error:  # an unterminated quotation
        raise ServerFaultError(f"{command}: {error}") from None
    if not words:
        raise ServerFaultError("there is no command to start")
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
    tools: dict[str, Any] = {}
    async with Client(connect(), mode=mode, cache=None) as client:
        snapshot: dict[str, Any] = {"snapshot": SNAPSHOT_FORMAT, "tools": tools}
        if client.server_info is not None:
            snapshot["server"] = {
                "name": client.server_info.name,
                "version": client.server_info.version,
            }
        if client.instructions:
            snapshot["instructions"] = client.instructions
        async for tool in _list_tools(client):
            if tool.name in tools:
                raise ServerFaultError(f"it lists two tools called {tool.name!r}")
            tools[tool.name] = _describe_tool(tool)
            if isinstance(version := (tool.meta or {}).get(VENDOR_META_PREFIX + "contractVersion"), str):
                snapshot["schemaVersion"] = version
    return snapshot


async def _list_tools(client: Client) -> AsyncIterator[Tool]:
    cursor = None
    for _ in range(MAX_LISTING_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            yield tool
        if page.next_cursor is None:
            return
        cursor = page.next_cursor
    raise ServerFaultError(f"its list of tools has more than {MAX_LISTING_PAGES} pages")


def _describe_tool(tool: Tool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "description": tool.description or "",
        "inputSchema": tool.input_schema,
    }
    if isinstance(version := (tool.meta or {}).get(VENDOR_META_PREFIX + "schemaVersion"), int):
        entry["schemaVersion"] = version
    if tool.title is not None:
        entry["title"] = tool.title
    if tool.output_schema is not None:
        entry["outputSchema"] = tool.output_schema
    if tool.annotations is not None:
        entry["annotations"] = tool.annotations.model_dump(by_alias=True, exclude_none=True)
    return entry


# Transports to a server


@asynccontextmanager
async def _open_remote(url: str, headers: Mapping[str, str] | None) -> AsyncIterator[Any]:
    async with (
        create_mcp_http_client(headers=dict(headers or {})) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
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
                await child.stdin.aclose()
                await child.wait()
            tasks.cancel_scope.cancel()


async def _read_messages(
    stdout: ByteReceiveStream, received: ObjectSendStream[SessionMessage | Exception], diagnostics: ServerDiagnostics
) -> None:
    lines = BufferedByteReceiveStream(stdout)
    with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
        while True:
            line = await lines.receive_until(b"\n", MAX_LINE_BYTES)
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:  # a banner, a stray print: harmless unless nothing else comes
                diagnostics.stray_output = diagnostics.stray_output or line[:80].decode(errors="replace").strip()
                continue
            await received.send(SessionMessage(message))


async def _write_messages(stdin: ByteSendStream, sending: ObjectReceiveStream[SessionMessage]) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for item in sending:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stdin.send(text.encode() + b"\n")


# Error descriptions


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors inside the groups that task groups wrap around them."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _iter_causes(inner)
    else:
        yield error


def _describe_error(error: BaseException) -> str:
    cause = next(_iter_causes(error))
    if isinstance(cause, process.StartError):
        return f"cannot be started: {cause.reason}"
    if isinstance(cause, MCPError):
        return cause.message
    if isinstance(cause, ValidationError):
        return _describe_validation_error(cause)
    return next(iter(str(cause).splitlines()), type(cause).__name__)


def _describe_validation_error(error: ValidationError) -> str:
    """Describe where a response does not match MCP, for the server's author."""
    first, *further_errors = error.errors(include_url=False)
    pointer = "".join(f"/{step}" for step in first["loc"])
    suffix = f" (and {len(further_errors)} more)" if further_errors else ""
    return f"its {error.title} does not fit MCP: {pointer}: {first['msg']}{suffix}"


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

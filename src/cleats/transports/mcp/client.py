"""The surface of any MCP server, read with the official client.

For `cleats contract`: what a server lists becomes a snapshot, which can be kept and compared. The
server is a stranger, so everything is bounded: the time it has, the length of a line, the number
of pages. A server that is started here runs under `runtime.process` and does not outlive the call.
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

from cleats.contract.snapshot import FORMAT
from cleats.runtime import process

PATIENCE: Final = 30.0
"""Seconds for the whole conversation. Interpreted servers take seconds to start."""

LINE_LIMIT: Final = 16 << 20
"""Bytes of one message: a listing of hundreds of tools is one line."""

PAGES: Final = 1000
"""Pages of one listing; a server whose pages never end is broken."""

FAREWELL: Final = 2.0
"""Seconds for a server to leave by itself once its input has ended."""

Streams = tuple[ObjectReceiveStream[SessionMessage | Exception], ObjectSendStream[SessionMessage]]
Connect = Callable[[], AbstractAsyncContextManager[Any]]


class ServerFaultError(Exception):
    """Raised when a server cannot be read: it does not start, hangs, or speaks something else."""


@dataclass(slots=True)
class Heard:
    """What a started server did besides answering; it explains a failure."""

    noise: str = ""
    exit_code: int | None = None

    def __str__(self) -> str:
        ended = "" if self.exit_code is None else f"; it ended with exit code {self.exit_code}"
        noise = f"; it wrote to stdout what is no JSON-RPC message: {self.noise!r}"
        return ended + (noise if self.noise else "")


async def surface(
    *,
    command: str | None = None,
    url: str | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,  # noqa: ASYNC109 - the caller gets an error that explains itself
    grace: float = process.GRACE,
) -> dict[str, Any]:
    """Read everything a server lists into a snapshot.

    Give a `command` to start (its stderr is ours, `env` its whole environment) or the `url` of one
    that runs. Takes `timeout` seconds at most, and `grace` more to end a command that will not end.

    Raises:
        ServerFaultError: the server cannot be read; the message says why.
    """
    heard = Heard()
    if command is not None:
        argv = _words(command)
        who, connect = argv[0], lambda: _started(argv, env, heard, grace)
    else:
        who, connect = url or "", lambda: _remote(url or "", headers)
    try:
        with _hushed("mcp"), anyio.fail_after(timeout):
            return await _read(connect)
    except TimeoutError:
        raise ServerFaultError(f"{who} did not answer within {timeout:g} s{heard}") from None
    except Exception as error:  # noqa: BLE001 - whatever a stranger makes the SDK raise
        raise ServerFaultError(f"{who}: {_reason(error)}{heard}") from None


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command, posix=sys.platform != "win32")
    except ValueError as error:  # a quotation that does not end
        raise ServerFaultError(f"{command}: {error}") from None
    if not words:
        raise ServerFaultError("there is no command to start")
    return words


async def _read(connect: Connect) -> dict[str, Any]:
    """Shake hands first: some servers end when anything else comes first."""
    try:
        return await _listed(connect, "legacy")
    except Exception as error:
        codes = {cause.code for cause in _causes(error) if isinstance(cause, MCPError)}
        if codes.isdisjoint({UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND}):
            raise
    return await _listed(connect, "auto")


async def _listed(connect: Connect, mode: Literal["legacy", "auto"]) -> dict[str, Any]:
    tools: dict[str, Any] = {}
    async with Client(connect(), mode=mode, cache=None) as client:
        snapshot: dict[str, Any] = {"snapshot": FORMAT, "tools": tools}
        if client.server_info is not None:
            snapshot["server"] = {
                "name": client.server_info.name,
                "version": client.server_info.version,
            }
        if client.instructions:
            snapshot["instructions"] = client.instructions
        async for tool in _tools(client):
            if tool.name in tools:
                raise ServerFaultError(f"it lists two tools called {tool.name!r}")
            tools[tool.name] = _entry(tool)
    return snapshot


async def _tools(client: Client) -> AsyncIterator[Tool]:
    cursor = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            yield tool
        if page.next_cursor is None:
            return
        cursor = page.next_cursor
    raise ServerFaultError(f"its list of tools has more than {PAGES} pages")


def _entry(tool: Tool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "description": tool.description or "",
        "inputSchema": tool.input_schema,
    }
    if tool.title is not None:
        entry["title"] = tool.title
    if tool.output_schema is not None:
        entry["outputSchema"] = tool.output_schema
    if tool.annotations is not None:
        entry["annotations"] = tool.annotations.model_dump(by_alias=True, exclude_none=True)
    return entry


# The two ways to a server


@asynccontextmanager
async def _remote(url: str, headers: Mapping[str, str] | None) -> AsyncIterator[Any]:
    async with (
        create_mcp_http_client(headers=dict(headers or {})) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


@asynccontextmanager
async def _started(
    argv: list[str], env: Mapping[str, str] | None, heard: Heard, grace: float
) -> AsyncIterator[Streams]:
    """A transport for the SDK over a command of ours."""
    received, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbox, sending = anyio.create_memory_object_stream[SessionMessage](0)

    async def listen() -> None:
        with received:  # its end is how the session learns that the server is gone
            await _listen(child.stdout, received, heard)
            heard.exit_code = await child.wait()

    with received, inbox, outbox, sending:
        async with (
            process.start(argv, env=env, grace=grace) as child,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(listen)
            tasks.start_soon(_speak, child.stdin, sending)
            yield inbox, outbox
            with anyio.move_on_after(FAREWELL):
                await child.stdin.aclose()
                await child.wait()
            tasks.cancel_scope.cancel()


async def _listen(
    stdout: ByteReceiveStream, received: ObjectSendStream[SessionMessage | Exception], heard: Heard
) -> None:
    lines = BufferedByteReceiveStream(stdout)
    with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
        while True:
            line = await lines.receive_until(b"\n", LINE_LIMIT)
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:  # a banner, a stray print: harmless unless nothing else comes
                heard.noise = heard.noise or line[:80].decode(errors="replace").strip()
                continue
            await received.send(SessionMessage(message))


async def _speak(stdin: ByteSendStream, sending: ObjectReceiveStream[SessionMessage]) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for item in sending:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stdin.send(text.encode() + b"\n")


# What went wrong


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The errors inside the groups that task groups wrap around them."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    else:
        yield error


def _reason(error: BaseException) -> str:
    cause = next(_causes(error))
    if isinstance(cause, process.StartError):
        return f"cannot be started: {cause.reason}"
    if isinstance(cause, MCPError):
        return cause.message
    if isinstance(cause, ValidationError):
        return _wrong(cause)
    return next(iter(str(cause).splitlines()), type(cause).__name__)


def _wrong(error: ValidationError) -> str:
    """Where an answer is not what MCP has there; its author has to know the place."""
    first, *more = error.errors(include_url=False)
    where = "".join(f"/{step}" for step in first["loc"])
    others = f" (and {len(more)} more)" if more else ""
    return f"its {error.title} does not fit MCP: {where}: {first['msg']}{others}"


@contextmanager
def _hushed(name: str) -> Iterator[None]:
    """Keep the SDK's tracebacks off the screen; we tell the story ourselves."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)

"""The pipes between us and a command.

Our own, because an event loop's may not be pipes: uvloop gives a command sockets, and a script
that writes to /dev/stderr cannot open one.
"""

import asyncio
from collections.abc import Callable
from typing import IO, Literal, Self, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.lowlevel import checkpoint_if_cancelled

LINE_LIMIT = 64 * 1024
"""Bytes after which a line is passed on unfinished, lest one without an end fill the memory."""

Stream: TypeAlias = Literal["stdout", "stderr"]
OnOutput: TypeAlias = Callable[[Stream, bytes], None]


class Reader(ByteReceiveStream):
    """The end of a pipe from which we read."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.BaseTransport) -> None:
        self._reader = reader
        self._transport = transport

    @classmethod
    async def open(cls, pipe: IO[bytes]) -> Self:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        return cls(reader, transport)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if chunk := await self._reader.read(max_bytes):
            return chunk
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        self._transport.close()


class Writer(ByteSendStream):
    """The end of a pipe to which we write."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    @classmethod
    async def open(cls, pipe: IO[bytes]) -> Self:
        loop = asyncio.get_running_loop()
        unused = asyncio.StreamReader()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(unused), pipe
        )
        return cls(asyncio.StreamWriter(transport, protocol, unused, loop))

    async def send(self, item: bytes) -> None:
        if self._writer.is_closing():
            raise anyio.BrokenResourceError
        try:
            self._writer.write(item)
            await self._writer.drain()
        except OSError as error:
            raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """Send what has not been sent yet, and then the end of file."""
        self._writer.close()


class Output:
    """One stream of a command: hands on its lines, and keeps its end."""

    def __init__(self, name: Stream, limit: int, on_output: OnOutput | None) -> None:
        self.truncated = False
        self._name = name
        self._limit = limit
        self._on_output = on_output
        self._kept = bytearray()
        self._line = b""

    @property
    def kept(self) -> bytes:
        return bytes(self._kept)

    async def drain(self, stream: ByteReceiveStream) -> None:
        async for chunk in stream:
            self._keep(chunk)
            if self._on_output is not None:
                await self._hand_on(chunk, self._on_output)
        if self._on_output is not None and self._line:
            self._on_output(self._name, self._line)

    def _keep(self, chunk: bytes) -> None:
        self._kept += chunk
        if (excess := len(self._kept) - self._limit) > 0:
            self.truncated = True
            del self._kept[:excess]

    async def _hand_on(self, chunk: bytes, on_output: OnOutput) -> None:
        *lines, self._line = (self._line + chunk).split(b"\n")
        if len(self._line) > LINE_LIMIT:
            lines.append(self._line)
            self._line = b""
        for line in lines:
            # The line before may have been the reason to cancel us.
            await checkpoint_if_cancelled()
            on_output(self._name, line)

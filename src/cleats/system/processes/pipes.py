"""The pipes between us and a command.

We create them ourselves, because those of an event loop may not be pipes: uvloop gives a command
sockets, and a script that writes to /dev/stderr cannot open one.
"""

import asyncio
from collections.abc import Callable
from typing import IO, Literal, Self, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.lowlevel import checkpoint_if_cancelled

MAX_LINE_BYTES = 64 * 1024
"""The length after which a line is passed on unfinished, so that an endless line cannot fill the
memory."""

StreamName: TypeAlias = Literal["stdout", "stderr"]
OutputCallback: TypeAlias = Callable[[StreamName, bytes], None]


class PipeReader(ByteReceiveStream):
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


class PipeWriter(ByteSendStream):
    """The end of a pipe to which we write."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    @classmethod
    async def open(cls, pipe: IO[bytes]) -> Self:
        loop = asyncio.get_running_loop()
        unused = asyncio.StreamReader()
        transport, protocol = await loop.connect_write_pipe(lambda: asyncio.StreamReaderProtocol(unused), pipe)
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
        """Send everything that has not been sent yet, and then the end of file."""
        self._writer.close()


class OutputCollector:
    """Collects one stream of a command: passes on its lines, and keeps its end."""

    def __init__(self, name: StreamName, limit: int, on_output: OutputCallback | None) -> None:
        self.truncated = False
        self._name = name
        self._limit = limit
        self._on_output = on_output
        self._tail = bytearray()
        self._partial_line = b""

    @property
    def tail(self) -> bytes:
        return bytes(self._tail)

    async def drain(self, stream: ByteReceiveStream) -> None:
        async for chunk in stream:
            self._append_to_tail(chunk)
            if self._on_output is not None:
                await self._emit_lines(chunk, self._on_output)
        if self._on_output is not None and self._partial_line:
            self._on_output(self._name, self._partial_line)

    def _append_to_tail(self, chunk: bytes) -> None:
        self._tail += chunk
        if (excess := len(self._tail) - self._limit) > 0:
            self.truncated = True
            del self._tail[:excess]

    async def _emit_lines(self, chunk: bytes, on_output: OutputCallback) -> None:
        *lines, self._partial_line = (self._partial_line + chunk).split(b"\n")
        if len(self._partial_line) > MAX_LINE_BYTES:
            lines.append(self._partial_line)
            self._partial_line = b""
        for line in lines:
            # The callback for the previous line may have cancelled this call.
            await checkpoint_if_cancelled()
            on_output(self._name, line)

"""A client for load: one connection, one request at a time, and little work per request."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

ANSWER_TIMEOUT_SECONDS = 120.0
"""The time after which an answer counts as lost."""

READ_LIMIT_BYTES = 1 << 24


class LoadAnswer(NamedTuple):
    """One response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class LostAnswerError(Exception):
    """Raised when a request gets no answer: the connection ended, or the time is over."""


class LoadConnection:
    """A connection that is opened by its first request, and again after it ended."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        host, port = url.removeprefix("http://").rsplit(":", 1)
        self._address = host.strip("[]"), int(port)
        self._host, self._headers = f"{host}:{port}", dict(headers or {})
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(
        self, method: str, path: str, value: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request and return the streams, from which nothing is read."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address, limit=READ_LIMIT_BYTES)
        body = b"" if value is None else json.dumps(value).encode()
        fields = {"host": self._host, "content-type": "application/json", **self._headers, **(headers or {})}
        head = "".join(f"{name}: {text}\r\n" for name, text in fields.items())
        self._streams[1].write(f"{method} {path} HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        await self._streams[1].drain()
        return self._streams

    async def request(
        self, method: str, path: str, value: Any = None, headers: Mapping[str, str] | None = None
    ) -> LoadAnswer:
        """Send a request and return its answer.

        Raises:
            LostAnswerError: There was none.
        """
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
                reader, _ = await self.send(method, path, value, headers)
                return await self._read_answer(reader)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as error:
            self.close()
            raise LostAnswerError(f"{method} {path}: {type(error).__name__} {error}") from error

    async def _read_answer(self, reader: asyncio.StreamReader) -> LoadAnswer:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in head[1:-2])}
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            while size := int(await reader.readline(), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readexactly(2)
        elif length := int(headers.get("content-length", "0")):
            body = await reader.readexactly(length)
        if headers.get("connection") == "close":
            self.close()
        return LoadAnswer(int(head[0].split(" ")[1]), headers, body)

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

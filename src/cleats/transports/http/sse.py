"""Server-sent events: the words of a stream, and the stream as an ASGI response."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.types import Receive, Scope, Send

KEEP_ALIVE = 15.0
"""Seconds of silence after which a comment goes, so that no proxy takes the stream for dead."""

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would keep events until its buffer is full
]


def event(name: str, data: bytes) -> bytes:
    """One event. The data is compact JSON, which has no newline in it."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


Emit: TypeAlias = Callable[[str, bytes], Awaitable[None]]
"""Sends one event, and waits while the client does not read."""


class Stream:
    """A response whose events are made by `work` as it goes."""

    def __init__(self, work: Callable[[Emit, Receive], Awaitable[None]]) -> None:
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        loop = asyncio.get_running_loop()
        heard = loop.time()

        async def emit(name: str, data: bytes) -> None:
            nonlocal heard
            heard = loop.time()
            await send({"type": "http.response.body", "body": event(name, data), "more_body": True})

        async def keep_alive() -> None:
            while True:
                await asyncio.sleep(KEEP_ALIVE)
                if loop.time() - heard >= KEEP_ALIVE:
                    comment = b": still here\n\n"
                    await send({"type": "http.response.body", "body": comment, "more_body": True})

        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        beating = asyncio.ensure_future(keep_alive())
        try:
            await self._work(emit, receive)
        finally:
            beating.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

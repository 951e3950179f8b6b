"""Many requests on one connection, sent without waiting for the answers."""

import asyncio
from typing import Any

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from cleats.transports.http.connection import AHEAD
from cleats.transports.http.listening import protocol
from tests.peer import LIMIT

REQUEST = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


class Link(asyncio.Transport):
    """A connection whose client sends whenever the server reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.answers = 0

    def write(self, data: Any) -> None:
        self.answers += bytes(data).count(b"HTTP/1.1 200 ")

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """There is nothing to close."""

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await PlainTextResponse("hello")(scope, receive, send)


def connected(app: ASGIApp, link: Link) -> Any:
    """A server's end of a connection that was just made."""
    config = uvicorn.Config(app, http=protocol(), ws="none", lifespan="off", log_config=None)
    config.load()
    connection = protocol()(config, ServerState(), {})
    connection.connection_made(link)
    return connection


@pytest.mark.anyio
async def test_requests_that_nobody_answered_yet_are_not_read_without_end() -> None:
    chunk, sent, most, link = 1000, 0, 0, Link()
    connection = connected(app, link)

    async with asyncio.timeout(LIMIT):
        while link.answers < 5 * chunk:
            if link.reading and sent < 5 * chunk:
                connection.data_received(REQUEST * chunk)
                sent += chunk
            most = max(most, sent - link.answers)
            await asyncio.sleep(0)

    assert chunk <= most <= chunk + AHEAD + 2  # one that runs, one that was just answered
    assert link.reading
    connection.connection_lost(None)  # stops the clock that would close an idle connection


@pytest.mark.anyio
async def test_a_call_hears_that_its_client_has_gone_with_more_requests_behind_it() -> None:
    heard: list[str] = []
    gone = asyncio.Event()

    async def waits(_scope: Scope, receive: Receive, _send: Send) -> None:
        heard.append((await receive())["type"])
        heard.append((await receive())["type"])
        gone.set()

    connection = connected(waits, Link())
    connection.data_received(REQUEST * 3)
    await asyncio.sleep(0)
    connection.connection_lost(None)

    async with asyncio.timeout(LIMIT):
        await gone.wait()
    assert heard == ["http.request", "http.disconnect"]

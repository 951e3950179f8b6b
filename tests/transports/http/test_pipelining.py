"""Tests of many requests on one connection, sent without waiting for the answers."""

import asyncio
from typing import Any

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from cleats.transports.http.connection import MAX_PIPELINED_REQUESTS
from cleats.transports.http.service import select_protocol
from tests.support.mcp_client import WAIT_TIMEOUT_SECONDS

REQUEST_BYTES = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


class PipeliningTransport(asyncio.Transport):
    """A connection whose client sends whenever the server reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.answer_count = 0

    def write(self, data: Any) -> None:
        self.answer_count += bytes(data).count(b"HTTP/1.1 200 ")

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


async def answer_hello(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await PlainTextResponse("hello")(scope, receive, send)


def connect_server(app: ASGIApp, link: PipeliningTransport) -> Any:
    """Return the server's end of a new connection."""
    config = uvicorn.Config(app, http=select_protocol(), ws="none", lifespan="off", log_config=None)
    config.load()
    connection = select_protocol()(config, ServerState(), {})
    connection.connection_made(link)
    return connection


@pytest.mark.anyio
async def test_requests_that_nobody_answered_yet_are_not_read_without_end() -> None:
    chunk_requests, sent_requests, max_pending, link = 1000, 0, 0, PipeliningTransport()
    connection = connect_server(answer_hello, link)

    async with asyncio.timeout(WAIT_TIMEOUT_SECONDS):
        while link.answer_count < 5 * chunk_requests:
            if link.reading and sent_requests < 5 * chunk_requests:
                connection.data_received(REQUEST_BYTES * chunk_requests)
                sent_requests += chunk_requests
            max_pending = max(max_pending, sent_requests - link.answer_count)
            await asyncio.sleep(0)

    assert (
        chunk_requests <= max_pending <= chunk_requests + MAX_PIPELINED_REQUESTS + 2
    )  # one that runs, one that was just answered
    assert link.reading
    connection.connection_lost(None)  # stops the clock that would close an idle connection


@pytest.mark.anyio
async def test_a_call_hears_that_its_client_has_gone_with_more_requests_behind_it() -> None:
    message_types: list[str] = []
    disconnected = asyncio.Event()

    async def wait_for_disconnect(_scope: Scope, receive: Receive, _send: Send) -> None:
        message_types.append((await receive())["type"])
        message_types.append((await receive())["type"])
        disconnected.set()

    connection = connect_server(wait_for_disconnect, PipeliningTransport())
    connection.data_received(REQUEST_BYTES * 3)
    await asyncio.sleep(0)
    connection.connection_lost(None)

    async with asyncio.timeout(WAIT_TIMEOUT_SECONDS):
        await disconnected.wait()
    assert message_types == ["http.request", "http.disconnect"]

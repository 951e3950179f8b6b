"""One connection of the HTTP server: how far ahead it is read, and what is told to whom.

uvicorn's, with what it lacks for clients that send requests without waiting for the answers.
"""

import asyncio
from collections.abc import Sized
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Failed
from cleats.contract.payload import Meta
from cleats.transports.http import replies

AHEAD = 16
"""Requests that a connection may have sent before the answers to earlier ones. Not none, because
only who reads on notices that a client has gone."""


class _Flow(FlowControl):
    """Read no further while more than `AHEAD` requests of the connection wait.

    uvicorn reads on after every answer, and keeps what it reads: 30 MB of small requests that
    a client sent in one go were 1.5 GB here.
    """

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if len(self._waiting) <= AHEAD:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """A connection with a client; what is no HTTP is refused with our envelope."""

    running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport, self.pipeline)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.running = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # uvicorn tells only the request that was read last, which may still wait its turn.
        if self.running and not self.running.response_complete:
            self.running.disconnected = True
            self.running.message_event.set()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Space around a value is not part of it, and the parser leaves what follows it.
        super().on_header(name, value.rstrip(b" \t"))

    def send_400_response(self, msg: str) -> None:
        error = ToolError(ErrorCode.INVALID_REQUEST, msg)
        content = replies.body(Failed(error), Meta())
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(content), content)
        )
        self.transport.close()

"""One connection of the HTTP server: limited pipelining, and correct disconnect events.

Extends uvicorn's protocol for clients that send requests without waiting for the answers.
"""

import asyncio
from collections.abc import Sized
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Failed
from cleats.contract.payload import AnswerMeta
from cleats.transports.http import responses

MAX_PIPELINED_REQUESTS = 16
"""The number of requests that a connection may send before earlier ones are answered. Not zero, because only a reader
notices that a client has gone."""


class _PipelineFlowControl(FlowControl):
    """Flow control that stops reading while more than `MAX_PIPELINED_REQUESTS` requests wait.

    uvicorn resumes reading after every answer and keeps what it reads: 30 MB of small requests that a client sent at
    once took 1.5 GB here.
    """

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if len(self._waiting) <= MAX_PIPELINED_REQUESTS:
            super().resume_reading()


class HttpConnection(HttpToolsProtocol):
    """A connection with a client; invalid HTTP is refused with our envelope."""

    active_cycle: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _PipelineFlowControl(transport, self.pipeline)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.active_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # uvicorn notifies only the request that was read last, which may still be queued.
        if self.active_cycle and not self.active_cycle.response_complete:
            self.active_cycle.disconnected = True
            self.active_cycle.message_event.set()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Whitespace around a value is not part of it, and the parser leaves trailing whitespace.
        super().on_header(name, value.rstrip(b" \t"))

    def send_400_response(self, msg: str) -> None:
        error = ToolError(ErrorCode.INVALID_REQUEST, msg)
        content = responses.encode_outcome(Failed(error), AnswerMeta())
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(content), content)
        )
        self.transport.close()

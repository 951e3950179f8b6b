"""The socket and the HTTP server on it: uvicorn, which leaves signals and draining to us."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Generator, Sized
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Failed
from cleats.contract.payload import Meta
from cleats.transports.http import replies

LAST_WAIT = 5.0
"""Seconds that withdrawn calls may take to clean up; what ignores its cancel is left behind."""

AHEAD = 16
"""Requests that a connection may have sent before the answers to earlier ones. Not none, because
only who reads on notices that a client has gone."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free one.

    Raises:
        OSError: the name is unknown, or the address is taken or not ours.
    """
    [family, _, _, _, address] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(address[:2], family=family, backlog=2048)


def base_url(listener: socket.socket) -> str:
    """Where a client on this machine finds it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    app: ASGIApp,
    listener: socket.socket,
    *,
    stop: Awaitable[object],
    drained: Callable[[], Awaitable[None]],
) -> None:
    """Serve until asked to stop, take nothing new, wait until `drained` returns, and leave.

    A connection that is still open `LAST_WAIT` seconds after that is closed.
    """
    server = _Server(
        uvicorn.Config(
            app,
            http=protocol(),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
        )
    )
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    stopping = asyncio.ensure_future(stop)
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    server.should_exit = True
    await drained()
    try:
        async with asyncio.timeout(LAST_WAIT):
            await asyncio.shield(serving)
    except TimeoutError:
        for task in list(server.server_state.tasks):
            task.cancel()
        server.force_exit = True
        with suppress(asyncio.CancelledError):
            await serving


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # Ours are heard by the runtime. uvicorn would raise its own again at the end, and the
        # process would end by the signal instead of with exit code 0.
        yield


def protocol() -> Any:
    """The quickest HTTP parser that is installed, refusing what is no HTTP with our envelope."""
    if find_spec("httptools") is None:
        return "h11"
    from uvicorn.protocols.http.flow_control import FlowControl  # noqa: PLC0415
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # noqa: PLC0415

    class Flow(FlowControl):
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

    class Protocol(HttpToolsProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.flow = Flow(transport, self.pipeline)

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

    return Protocol

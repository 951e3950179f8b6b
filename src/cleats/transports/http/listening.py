"""The socket and the HTTP server on it: uvicorn, which leaves signals and draining to us."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import uvicorn
from starlette.types import ASGIApp

LAST_WAIT = 5.0
"""Seconds that withdrawn calls may take to clean up; what ignores its cancel is left behind."""


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
    """The quickest HTTP parser that is installed."""
    if find_spec("httptools") is None:
        return "h11"
    from cleats.transports.http.connection import Connection  # noqa: PLC0415

    return Connection

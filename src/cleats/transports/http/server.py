"""The listening socket and uvicorn on it, without its signal handling and draining."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import uvicorn
from starlette.types import ASGIApp

CLEANUP_TIMEOUT_SECONDS = 5.0
"""The time that cancelled calls may take to clean up; those that ignore it are abandoned."""


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is any free one.

    Raises:
        OSError: The host is unknown, or the address is in use or not local.
    """
    [family, _, _, _, address] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=2048)


def base_url(listener: socket.socket) -> str:
    """Return the URL for a client on this machine."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def run_server(
    app: ASGIApp,
    listener: socket.socket,
    *,
    stop: Awaitable[object],
    drain: Callable[[], Awaitable[None]],
) -> None:
    """Serve until asked to stop, accept nothing new, wait for `drain`, and return.

    A connection that is still open `CLEANUP_TIMEOUT_SECONDS` after that is closed.
    """
    server = _SignalFreeServer(
        uvicorn.Config(
            app,
            http=select_protocol(),
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
    await drain()
    try:
        async with asyncio.timeout(CLEANUP_TIMEOUT_SECONDS):
            await asyncio.shield(serving)
    except TimeoutError:
        for task in list(server.server_state.tasks):
            task.cancel()
        server.force_exit = True
        with suppress(asyncio.CancelledError):
            await serving


class _SignalFreeServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # The runtime handles signals. uvicorn would raise the signal again at the end, and the
        # process would end by the signal instead of with exit code 0.
        yield


def select_protocol() -> Any:
    """Return the fastest HTTP protocol that is installed."""
    if find_spec("httptools") is None:
        return "h11"
    from cleats.transports.http.connection import HttpConnection  # noqa: PLC0415

    return HttpConnection

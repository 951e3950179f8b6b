"""An ASGI application on a free port of this machine, for as long as its parent lives.

The first line on stdout is the address. The end of stdin is the order to stop, so a listener never
outlives the process that started it, however that one ended.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from cleats.transports.http.listening import protocol

PATH = "/mcp"

LINGER = 0
"""Seconds that open streams get when the order to stop has come: nobody reads them any more."""


async def listen(app: ASGIApp) -> None:
    """Serve until stdin ends or a signal comes."""
    config = uvicorn.Config(
        app, http=protocol(), log_level="warning", timeout_graceful_shutdown=LINGER
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        announce(listener)

        def stop() -> None:
            server.should_exit = True

        until_stdin_ends(stop)
        await server.serve(sockets=[listener])


def announce(listener: socket.socket) -> None:
    """Say where we listen."""
    host, port = listener.getsockname()
    sys.stdout.write(f"http://{host}:{port}{PATH}\n")
    sys.stdout.flush()


def until_stdin_ends(stop: Callable[[], None]) -> None:
    """Have `stop` called when nobody holds the other end of stdin any more."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        if not os.read(0, 1024):
            loop.remove_reader(0)
            stop()

    loop.add_reader(0, read)

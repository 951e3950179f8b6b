"""An ASGI application on a free port of this machine, for as long as its parent lives.

The first line on stdout is the address. The end of stdin stops the server, so a listener never
outlives the process that started it, however that process ended.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from cleats.transports.http.service import select_protocol

MCP_PATH = "/mcp"

SHUTDOWN_GRACE_SECONDS = 0
"""Seconds for open streams after the stop: nobody reads them any more."""


async def serve_app(app: ASGIApp) -> None:
    """Serve until stdin ends or a signal arrives."""
    config = uvicorn.Config(
        app, http=select_protocol(), log_level="warning", timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print_address(listener)

        def stop() -> None:
            server.should_exit = True

        call_when_stdin_ends(stop)
        await server.serve(sockets=[listener])


def print_address(listener: socket.socket) -> None:
    """Print the address of the listener."""
    host, port = listener.getsockname()
    sys.stdout.write(f"http://{host}:{port}{MCP_PATH}\n")
    sys.stdout.flush()


def call_when_stdin_ends(stop: Callable[[], None]) -> None:
    """Call `stop` when the other end of stdin is closed."""
    loop = asyncio.get_running_loop()

    def read_stdin() -> None:
        if not os.read(0, 1024):
            loop.remove_reader(0)
            stop()

    loop.add_reader(0, read_stdin)

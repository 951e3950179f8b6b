"""Opening a run in the console of a running `cleats http`."""

import socket
import webbrowser
from typing import Final

import click

from cleats.cli.serve import DEFAULT_PORT

CONNECT_TIMEOUT_SECONDS: Final = 1.0
"""The time that a server on this machine has to accept a connection."""


def format_console_url(run_id: str, port: int = DEFAULT_PORT) -> str:
    """Return the address of the page of a run in the console."""
    return f"http://127.0.0.1:{port}/console/runs/{run_id}"


def open_in_console(run_id: str, port: int = DEFAULT_PORT) -> None:
    """Open the page of a run in the browser, or say how to see it if no server listens on the port."""
    url = format_console_url(run_id, port)
    if not _is_listening(port):
        click.echo(f"No server listens on port {port}. Start `cleats http`, then open {url}", err=True)
    elif not webbrowser.open(url):
        click.echo(f"No browser could be started. Open {url}", err=True)


def _is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True

"""The folders that a client works in, asked for where the server has no repository of its own.

Only clients of the handshake era offer them. Calls wait for the answer for a moment, so that the first one already
finds the repository.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp.server.connection import Connection
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

log = logging.getLogger(__name__)

ROOTS_TIMEOUT_SECONDS = 5.0
"""The time in which a client has to name its roots; a client asks nobody for them."""

ROOTS_NOTIFICATIONS = frozenset({"notifications/initialized", "notifications/roots/list_changed"})
"""The notifications after which the roots are asked for."""


class ClientRoots:
    """The roots of one client, and those who want to know them."""

    def __init__(self, connection: Connection, listeners: Sequence[Callable[[Sequence[Path]], None]]) -> None:
        self._connection, self._listeners = connection, listeners
        self._query: asyncio.Task[None] | None = None

    def handle_notification(self, method: str) -> None:
        """Ask for the roots if this notification is a reason to, and somebody wants them."""
        capabilities = self._connection.client_capabilities
        if method in ROOTS_NOTIFICATIONS and self._listeners and capabilities is not None and capabilities.roots:
            self.close()
            self._query = asyncio.ensure_future(self._ask_client())

    async def wait_until_known(self) -> None:
        """Wait for the answer to the latest question, if there is one."""
        if self._query is not None and not self._query.done():
            await asyncio.wait({self._query})

    def close(self) -> None:
        """Wait for no answer any more."""
        if self._query is not None:
            self._query.cancel()

    async def _ask_client(self) -> None:
        try:
            async with asyncio.timeout(ROOTS_TIMEOUT_SECONDS):
                result = await self._connection.send_request(types.ListRootsRequest())
        except (TimeoutError, MCPError, ValidationError) as error:
            log.warning("roots.unknown reason=%s", type(error).__name__)
            return
        folders = [_parse_file_uri(str(root.uri)) for root in result.roots]
        for listener in self._listeners:
            listener(folders)


def _parse_file_uri(uri: str) -> Path:
    path = unquote(urlsplit(uri).path)
    return Path(path[1:] if os.name == "nt" else path)  # file:///C:/x

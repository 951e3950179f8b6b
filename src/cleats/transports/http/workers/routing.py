"""Which worker answers a request: the owner of its MCP session, or the one that has the console.

Everything else is answered by the worker that has the connection.
"""

from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cleats.contract.errors import ErrorCode, ToolError
from cleats.transports.http.guard import ConsoleEntry
from cleats.transports.http.responses import ApiError, error_response
from cleats.transports.http.workers.peers import UnreachableWorkerError, WorkerPeers

SESSION_HEADER: Final = b"mcp-session-id"

CONSOLE_SLOT: Final = 0
"""The worker that has the sessions, the background calls and the forms of the console."""

GUARD_TARGET: Final = "guard"
"""The target that answers a whole request, with all checks."""


def mcp_target(caller: str) -> str:
    """Return the target that answers MCP requests of one caller, without checks."""
    return f"mcp:{caller}"


class SessionRouter:
    """The MCP endpoint of one caller on every worker; the id of a session begins with the slot of its owner."""

    def __init__(self, endpoint: ASGIApp, peers: WorkerPeers, caller: str) -> None:
        self._endpoint, self._peers, self._target = endpoint, peers, mcp_target(caller)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session_id = next((value for name, value in scope["headers"] if name == SESSION_HEADER), None)
        if session_id is not None:
            slot, inner_id = self._split_id(session_id)
            if slot is not None and slot != self._peers.slot:
                try:
                    await self._peers.forward(slot, self._target, scope, receive, send)
                except UnreachableWorkerError:
                    pass  # it has crashed, and its sessions with it; ours answers that there is no such session
                else:
                    return
            scope = _replace_session_id(scope, inner_id)

        async def send_with_slot(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = _prefix_session_id(message, b"%d-" % self._peers.slot)
            await send(message)

        await self._endpoint(scope, receive, send_with_slot)

    def _split_id(self, session_id: bytes) -> tuple[int | None, bytes]:
        prefix, separator, inner_id = session_id.partition(b"-")
        if separator and len(prefix) <= len(str(self._peers.count)) and prefix.isdigit():
            slot = int(prefix)
            if slot < self._peers.count:
                return slot, inner_id
        return None, b"unknown"


def _replace_session_id(scope: Scope, session_id: bytes) -> Scope:
    headers = [(name, session_id if name == SESSION_HEADER else value) for name, value in scope["headers"]]
    return {**scope, "headers": headers}


def _prefix_session_id(message: Message, prefix: bytes) -> Any:
    headers = [
        (name, prefix + value if name.lower() == SESSION_HEADER else value) for name, value in message["headers"]
    ]
    return {**message, "headers": headers}


class ConsoleRouter:
    """The whole server on a worker without the console, whose requests it hands over before any check."""

    def __init__(self, guard: ASGIApp, console: ConsoleEntry, peers: WorkerPeers) -> None:
        self._guard, self._console, self._peers = guard, console, peers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._is_for_console(scope):
            await self._guard(scope, receive, send)
            return
        try:
            await self._peers.forward(CONSOLE_SLOT, GUARD_TARGET, scope, receive, send, waits=True)
        except UnreachableWorkerError:
            error = ToolError(ErrorCode.UNAVAILABLE, "The process that serves the console is being restarted.")
            await error_response(ApiError(error))(scope, receive, send)

    def _is_for_console(self, scope: Scope) -> bool:
        accept = b""
        if scope["path"] == "/":
            accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
        return self._console.owns_request(scope["path"], accept.decode("latin-1"))

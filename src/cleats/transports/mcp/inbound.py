"""One message being served, as the SDK's runner sees it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.transport_context import TransportContext

from cleats.runtime.call import Call

_TRANSPORT = TransportContext(kind="stdio", can_send_request=False)


class Outbound(ABC):
    """A channel that notifies but never asks: we send a client no requests."""

    @abstractmethod
    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification."""

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,  # noqa: ARG002 - the SDK's signature
        opts: CallOptions | None = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)


class Inbound(Outbound):
    """The SDK's `DispatchContext`, and what a cancel takes hold of."""

    transport = _TRANSPORT
    can_send_request = False
    message_metadata = None

    def __init__(
        self, channel: Outbound, request_id: Any, params: Mapping[str, Any] | None
    ) -> None:
        self.request_id = request_id
        self.task: asyncio.Task[None] | None = None
        self.running = False
        self.cancelled = False
        self.closed = False
        self._channel = channel
        self._params = params
        self._call: Call | None = None
        self._cancel_requested: anyio.Event | None = None

    @property
    def cancel_requested(self) -> anyio.Event:
        if self._cancel_requested is None:  # made on demand, because almost nobody looks
            self._cancel_requested = anyio.Event()
            if self.cancelled:
                self._cancel_requested.set()
        return self._cancel_requested

    def begun(self, call: Call) -> None:
        """A tool call runs for this request: cancelling one is cancelling the other."""
        self._call = call
        if self.cancelled:
            call.cancel()

    def cancel(self) -> None:
        """The client withdrew the request: stop the work and say nothing more about it."""
        self.cancelled = True
        if self._cancel_requested is not None:
            self._cancel_requested.set()
        self.stop()

    def stop(self) -> None:
        """Stop the work."""
        if self._call is not None:
            self._call.cancel()
        elif self.task is not None and self.running:
            # A task that has not started has nothing to stop, and cancelled now it never would.
            self.task.cancel()

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        if not self.closed and not self.cancelled:
            await self._channel.notify(method, params, opts)

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        token = progress_token_from_params(self._params)
        if token is not None:
            params = {"progressToken": token, "progress": progress}
            optional = {"total": total, "message": message}
            given = {key: value for key, value in optional.items() if value is not None}
            await self.notify("notifications/progress", {**params, **given})

"""Answers as HTTP responses. Every JSON body is the envelope; every status is from the table."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Done, Failed, Outcome
from cleats.contract.payload import ENVELOPE, Meta, error_of

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Refusal(Exception):  # noqa: N818 - it says what it is
    """A request that no tool gets to see. `status` where the table's is not the right one."""

    def __init__(
        self,
        error: ToolError,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.status = status or error.code.http
        self.headers = dict(headers or {})
        self.reads_on = True
        """Whether the connection can be used again: not when a body is left unread in it."""


def invalid(message: str, *, hint: str = "", status: int = 400, details: Any = None) -> Refusal:
    """A request that is wrong in itself."""
    error = ToolError(ErrorCode.INVALID_REQUEST, message, hint=hint, details=details)
    return Refusal(error, status=status)


def missing(method: str, path: str) -> Refusal:
    """A route that is not there, or not for this method."""
    error = ToolError(
        ErrorCode.NOT_FOUND,
        f"There is no {method} {path}.",
        hint="GET /docs lists the routes.",
    )
    return Refusal(error)


def sealed(outcome: Outcome, meta: Meta) -> tuple[bytes, ToolError | None]:
    """An outcome in its envelope, and its error; what cannot be said as JSON is an internal one."""
    try:
        return _encode(ENVELOPE.seal(outcome, meta).body), error_of(outcome)
    except (TypeError, ValueError, OverflowError, RecursionError):
        log.exception("answer.unspeakable")
        unspeakable = ToolError(ErrorCode.INTERNAL, "The tool's answer is not JSON.")
        return _encode(ENVELOPE.seal(Failed(unspeakable), meta).body), unspeakable


def body(outcome: Outcome, meta: Meta) -> bytes:
    """An outcome in its envelope."""
    return sealed(outcome, meta)[0]


def reply(outcome: Outcome, meta: Meta) -> Response:
    """An outcome as a response."""
    content, error = sealed(outcome, meta)
    if error is None:
        return Response(content, 200, None, "application/json")
    headers = {"retry-after": "1"} if error.code is ErrorCode.QUEUE_OVERLOADED else None
    return Response(content, error.code.http, headers, "application/json")


def done(result: Mapping[str, Any], request_id: str | None = None) -> Response:
    """A success that no tool was needed for."""
    return Response(body(Done(result), Meta(request_id=request_id)), 200, None, "application/json")


def refused(refusal: Refusal, request_id: str | None = None) -> Response:
    """A refusal as a response."""
    content = body(Failed(refusal.error), Meta(request_id=request_id))
    kind = Response if refusal.reads_on else Parting
    return kind(content, refusal.status, refusal.headers, "application/json")


LINGER = 1.0
"""Seconds that a client whose body we do not want may go on sending it."""


class Parting(Response):
    """A response after which the connection is closed, whatever the client is still sending.

    Closing at once would make the kernel answer the unread bytes with a reset, and a client that
    sends its whole body first would never see why. So the answer goes out whole, and what comes
    in is thrown away for a moment.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        headers = [*self.raw_headers, (b"connection", b"close")]
        start = {"type": "http.response.start", "status": self.status_code, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while (await receive()).get("more_body"):
                    pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})

"""HTTP responses. Every JSON body is the envelope; every status comes from the error table."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Done, Failed, Outcome
from cleats.contract.payload import ENVELOPE, AnswerMeta, get_outcome_error
from cleats.transports.jsonrpc import encode_answer, render_encodable


class ApiError(Exception):
    """A request refused before any tool runs. `status` overrides that of the error table."""

    def __init__(
        self, error: ToolError, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.status = status or error.code.http
        self.headers = dict(headers or {})
        self.keeps_connection = True
        """False if the connection cannot be reused, because an unread body is left in it."""


def invalid_request(message: str, *, status: int = 400, details: Any = None) -> ApiError:
    """Return the error for an invalid request."""
    return ApiError(ToolError(ErrorCode.INVALID_REQUEST, message, details=details), status=status)


def missing_route(method: str, path: str) -> ApiError:
    """Return the error for an unknown route or method."""
    return ApiError(
        ToolError(ErrorCode.NOT_FOUND, f"Unknown route: {method} {path}.", hint="GET /docs lists the routes.")
    )


def seal_outcome(outcome: Outcome, meta: AnswerMeta) -> tuple[bytes, ToolError | None]:
    """Return the envelope of an outcome and its error; a result that is not JSON is an error."""

    def seal(outcome: Outcome) -> tuple[bytes, ToolError | None]:
        return encode_answer(ENVELOPE.render_outcome(outcome, meta).body), get_outcome_error(outcome)

    return render_encodable(seal, outcome)


def encode_outcome(outcome: Outcome, meta: AnswerMeta) -> bytes:
    """Encode an outcome in its envelope."""
    return seal_outcome(outcome, meta)[0]


def outcome_response(outcome: Outcome, meta: AnswerMeta) -> Response:
    """Return an outcome as a response."""
    content, error = seal_outcome(outcome, meta)
    if error is None:
        return Response(content, 200, None, "application/json")
    headers = {"retry-after": "1"} if error.code is ErrorCode.QUEUE_OVERLOADED else None
    return Response(content, error.code.http, headers, "application/json")


def success_response(result: Mapping[str, Any], request_id: str | None = None) -> Response:
    """Return a success response that needed no tool."""
    return Response(encode_outcome(Done(result), AnswerMeta(request_id=request_id)), 200, None, "application/json")


def error_response(api_error: ApiError, request_id: str | None = None) -> Response:
    """Return a refused request as a response."""
    content = encode_outcome(Failed(api_error.error), AnswerMeta(request_id=request_id))
    response_type = Response if api_error.keeps_connection else ClosingResponse
    return response_type(content, api_error.status, api_error.headers, "application/json")


LINGER_SECONDS = 1.0
"""The time that a client may go on sending an unwanted body."""


class ClosingResponse(Response):
    """A response after which the connection is closed, whatever the client is still sending.

    Closing at once would make the kernel answer the unread bytes with a reset, and a client that sends its whole body
    first would never see the reason. So the answer is sent in full, and incoming bytes are discarded for a moment.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        headers = [*self.raw_headers, (b"connection", b"close")]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while (await receive()).get("more_body"):
                    pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})


KEEP_ALIVE_SECONDS = 15.0
"""The silence after which a comment is sent, so that no proxy considers the stream dead."""

STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would keep events until its buffer is full
]


def format_event(name: str, data: bytes) -> bytes:
    """Format one event. The data is compact JSON, which contains no newline."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


EmitEvent: TypeAlias = Callable[[str, bytes], Awaitable[None]]
"""A function that sends one event, and waits while the client does not read."""


class EventStream:
    """A response whose events are produced by a function as it runs."""

    def __init__(self, produce: Callable[[EmitEvent, Receive], Awaitable[None]]) -> None:
        self._produce = produce

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        loop = asyncio.get_running_loop()
        last_sent = loop.time()

        async def emit_event(name: str, data: bytes) -> None:
            nonlocal last_sent
            last_sent = loop.time()
            await send({"type": "http.response.body", "body": format_event(name, data), "more_body": True})

        async def send_keep_alives() -> None:
            while True:
                await asyncio.sleep(KEEP_ALIVE_SECONDS)
                if loop.time() - last_sent >= KEEP_ALIVE_SECONDS:
                    await send({"type": "http.response.body", "body": b": still here\n\n", "more_body": True})

        await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
        keep_alive_task = asyncio.ensure_future(send_keep_alives())
        try:
            await self._produce(emit_event, receive)
        finally:
            keep_alive_task.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

"""Answers as HTTP responses. Every JSON body is the envelope; every status is from the table."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

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


def body(outcome: Outcome, meta: Meta) -> bytes:
    """An outcome in its envelope; what cannot be said as JSON is an internal error."""
    try:
        return _encode(ENVELOPE.seal(outcome, meta).body)
    except (TypeError, ValueError, OverflowError, RecursionError):
        log.exception("answer.unspeakable")
        unspeakable = Failed(ToolError(ErrorCode.INTERNAL, "The tool's answer is not JSON."))
        return _encode(ENVELOPE.seal(unspeakable, meta).body)


def speakable(outcome: Outcome) -> Outcome:
    """The outcome, unless its result is no JSON."""
    if isinstance(outcome, Done):
        try:
            _encode(outcome.result)
        except (TypeError, ValueError, OverflowError, RecursionError):
            log.exception("answer.unspeakable")
            return Failed(ToolError(ErrorCode.INTERNAL, "The tool's answer is not JSON."))
    return outcome


def status_of(outcome: Outcome) -> int:
    error = error_of(outcome)
    return 200 if error is None else error.code.http


def reply(outcome: Outcome, meta: Meta) -> Response:
    """An outcome as a response."""
    headers = None
    if (error := error_of(outcome)) is not None and error.code is ErrorCode.QUEUE_OVERLOADED:
        headers = {"retry-after": "1"}
    content = body(outcome, meta)
    return Response(content, status_of(outcome), headers, "application/json")


def done(result: Mapping[str, Any], request_id: str | None = None) -> Response:
    """A success that no tool was needed for."""
    return Response(body(Done(result), Meta(request_id=request_id)), 200, None, "application/json")


def refused(refusal: Refusal, request_id: str | None = None) -> Response:
    """A refusal as a response."""
    content = body(Failed(refusal.error), Meta(request_id=request_id))
    return Response(content, refusal.status, refusal.headers, "application/json")

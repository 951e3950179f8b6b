"""JSON-RPC 2.0 messages: parse, build, and nothing about tools.

What is no JSON is a parse error; a batch, a bad id or a wrong version is an invalid request.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from cleats.transports.parsing import NotJson, decode

PARSE_ERROR = -32700
INVALID_REQUEST = -32600

Id: TypeAlias = str | int | float


@dataclass(slots=True)
class Request:
    """Something to be answered."""

    id: Id
    method: str
    params: dict[str, Any] | None


@dataclass(slots=True)
class Notification:
    """Something to be heard."""

    method: str
    params: dict[str, Any] | None


@dataclass(slots=True)
class Response:
    """The peer's answer to a request of ours."""

    id: Any


@dataclass(slots=True)
class Malformed:
    """Something to be refused, with what can be said about it."""

    code: int
    reason: str
    id: Id | None = None


Message: TypeAlias = Request | Notification | Response | Malformed

_encode = msgspec.json.Encoder().encode


class _Identified(msgspec.Struct):
    id: msgspec.Raw


_identify = msgspec.json.Decoder(_Identified).decode


def parse(body: bytes) -> Message:
    """One body to one message. Never raises."""
    try:
        raw = decode(body)
    except NotJson as error:
        return Malformed(PARSE_ERROR, f"Parse error: {error}")
    if type(raw) is not dict:
        what = "batches are not supported" if isinstance(raw, list) else "not an object"
        return Malformed(INVALID_REQUEST, f"Invalid request: {what}")
    method = raw.get("method")
    if method is None and ("result" in raw or "error" in raw):
        return Response(raw.get("id"))
    return _request(raw, method)


def _request(raw: dict[str, Any], method: object) -> Message:
    request_id = raw.get("id")
    known = request_id if is_id(request_id) else None
    if raw.get("jsonrpc") != "2.0":
        return Malformed(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"', known)
    if not isinstance(method, str):
        return Malformed(INVALID_REQUEST, 'Invalid request: "method" must be a string', known)
    params = raw.get("params")
    if params is not None and type(params) is not dict:
        return Malformed(INVALID_REQUEST, 'Invalid request: "params" must be an object', known)
    if "id" not in raw:
        return Notification(method, params)
    if known is None:
        return Malformed(INVALID_REQUEST, 'Invalid request: "id" must be a string or a number')
    return Request(known, method, params)


def is_id(value: object) -> bool:
    """Whether a value may be a request id; `true` is no number here."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def written_id(body: bytes) -> msgspec.Raw:
    """The id of a message as it is written there: a double cannot hold every number."""
    return _identify(body).id


def result(request_id: Id, value: Any) -> bytes:
    """A success answer as one compact body."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "result": value})


def error(request_id: Id | None, code: int, message: str, data: Any = None) -> bytes:
    """An error answer as one compact body."""
    body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return _encode({"jsonrpc": "2.0", "id": request_id, "error": body})


def notification(method: str, params: Any = None) -> bytes:
    """A notification as one compact body."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        body["params"] = params
    return _encode(body)

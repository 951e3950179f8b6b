"""JSON-RPC 2.0 messages: parsing and encoding, without knowledge of tools.

Invalid JSON is a parse error; a batch, a bad id or a wrong version is an invalid request.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from cleats.transports.json_text import InvalidJsonError, decode_json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600

RequestId: TypeAlias = str | int | float


@dataclass(slots=True)
class Request:
    """A message that expects an answer."""

    id: RequestId
    method: str
    params: dict[str, Any] | None


@dataclass(slots=True)
class Notification:
    """A message that expects no answer."""

    method: str
    params: dict[str, Any] | None


@dataclass(slots=True)
class Response:
    """The peer's answer to a request of ours."""

    id: Any


@dataclass(slots=True)
class MalformedMessage:
    """A message to be refused: the error code, the reason, and the id if it is usable."""

    code: int
    reason: str
    id: RequestId | None = None


RpcMessage: TypeAlias = Request | Notification | Response | MalformedMessage

_encode = msgspec.json.Encoder().encode


class _MessageWithId(msgspec.Struct):
    id: msgspec.Raw


_decode_id = msgspec.json.Decoder(_MessageWithId).decode


def parse_message(body: bytes) -> RpcMessage:
    """Parse one body into one message. Never raises."""
    try:
        raw = decode_json(body)
    except InvalidJsonError as error:
        return MalformedMessage(PARSE_ERROR, f"Parse error: {error}")
    if type(raw) is not dict:
        reason = "batches are not supported" if isinstance(raw, list) else "not an object"
        return MalformedMessage(INVALID_REQUEST, f"Invalid request: {reason}")
    method = raw.get("method")
    if method is None and ("result" in raw or "error" in raw):
        return Response(raw.get("id"))
    return _parse_request(raw, method)


def _parse_request(raw: dict[str, Any], method: object) -> RpcMessage:
    request_id = raw.get("id")
    valid_id = request_id if is_request_id(request_id) else None
    if raw.get("jsonrpc") != "2.0":
        return MalformedMessage(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"', valid_id)
    if not isinstance(method, str):
        return MalformedMessage(INVALID_REQUEST, 'Invalid request: "method" must be a string', valid_id)
    params = raw.get("params")
    if params is not None and type(params) is not dict:
        return MalformedMessage(INVALID_REQUEST, 'Invalid request: "params" must be an object', valid_id)
    if "id" not in raw:
        return Notification(method, params)
    if valid_id is None:
        return MalformedMessage(INVALID_REQUEST, 'Invalid request: "id" must be a string or a number')
    return Request(valid_id, method, params)


def is_request_id(value: object) -> bool:
    """Return whether a value may be a request id; booleans are not numbers here."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def read_raw_id(body: bytes) -> msgspec.Raw:
    """Return the id of a message exactly as written: a double cannot hold every number."""
    return _decode_id(body).id


def encode_result(request_id: RequestId, value: Any) -> bytes:
    """Encode a success response as one compact body."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "result": value})


def encode_error(request_id: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    """Encode an error response as one compact body."""
    error_body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error_body["data"] = data
    return _encode({"jsonrpc": "2.0", "id": request_id, "error": error_body})


def encode_notification(method: str, params: Any = None) -> bytes:
    """Encode a notification as one compact body."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return _encode(message)

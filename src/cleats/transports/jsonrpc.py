"""JSON-RPC 2.0 messages and the strict JSON below them, without knowledge of tools.

NaN, invalid UTF-8, lone surrogates, numbers out of range, excessive nesting and trailing garbage are parse errors on
every wire, with the same messages; a batch, a bad id or a wrong version is an invalid request.
"""

import codecs
import logging
import re
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Failed, Outcome

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_NESTING_LEVELS: Final = 200
"""The maximum nesting depth; the validator accepts 255, as does the MCP SDK."""

# An unterminated string matches too, so that every quote is visited only once, whatever the text.
_STRING_PATTERN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_LEVEL_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NON_BRACKET_BYTES: Final = bytes(set(range(256)) - set(b"[{]}"))


def is_too_deep(text: bytes) -> bool:
    """Return whether a JSON text is nested deeper than the limit."""
    if text.count(b"[") + text.count(b"{") <= MAX_NESTING_LEVELS:  # cheap, and true of nearly all
        return False
    steps = array("b", _STRING_PATTERN.sub(b"", text).translate(_LEVEL_STEPS, _NON_BRACKET_BYTES))
    return max(accumulate(steps), default=0) > MAX_NESTING_LEVELS


_decode = msgspec.json.Decoder().decode

_ESCAPE_PATTERN: Final = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|.)", re.DOTALL)
_SURROGATE_PAIR_PATTERN: Final = re.compile(rb"\\u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}")
_BYTE_OFFSET_PATTERN: Final = re.compile(r"\(byte (\d+)\)")


class InvalidJsonError(ValueError):
    """A text that is not acceptable JSON. The message is the reason."""


def decode_json(text: bytes) -> Any:
    """Decode a JSON text.

    Raises:
        InvalidJsonError: The text is not acceptable JSON.
    """
    if is_too_deep(text):
        raise InvalidJsonError("nested too deeply")
    try:
        return _decode(text)
    except ValueError as error:  # msgspec's errors and UnicodeDecodeError alike
        raise InvalidJsonError(_describe_error(text, error)) from None


def _describe_error(text: bytes, error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):  # of a part of the text
        try:
            text.decode()
        except UnicodeDecodeError as whole_error:
            return f"invalid UTF-8 (byte {whole_error.start})"
        return "invalid UTF-8"
    if text.startswith(codecs.BOM_UTF8):
        return "it starts with a byte order mark"
    message = str(error).removeprefix("JSON is malformed: ").partition(" - at ")[0]
    surrogate_offset = _find_lone_surrogate(text)
    offset_match = _BYTE_OFFSET_PATTERN.search(message)
    # For half a pair the library reports whatever it misses first, never at an earlier offset.
    if (
        surrogate_offset is not None
        and (offset_match is None or int(offset_match[1]) > surrogate_offset)
        and "range" not in message
    ):
        return f"lone surrogate {text[surrogate_offset : surrogate_offset + 6].decode()} (byte {surrogate_offset})"
    return message[:1].lower() + message[1:]


def _find_lone_surrogate(text: bytes) -> int | None:
    """Return the offset of the first unpaired surrogate escape; escapes occur only in strings."""
    offset = 0
    while (escape := _ESCAPE_PATTERN.search(text, offset)) is not None:
        offset = escape.end()
        if escape[1] is not None and 0xD800 <= int(escape[1], 16) <= 0xDFFF:
            pair = _SURROGATE_PAIR_PATTERN.match(text, escape.start())
            if pair is None:
                return escape.start()
            offset = pair.end()
    return None


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
    """The peer's answer to a request of ours: a result, or an error."""

    id: Any
    result: Any = None
    error: Any = None


@dataclass(slots=True)
class MalformedMessage:
    """A message to be refused: the error code, the reason, and the id if it is usable."""

    code: int
    reason: str
    id: RequestId | None = None


RpcMessage: TypeAlias = Request | Notification | Response | MalformedMessage

_encode = msgspec.json.Encoder().encode

encode_answer: Final = msgspec.json.Encoder(enc_hook=str).encode
"""Encode the answer of a tool, as every surface does."""


def render_encodable(render: Callable[..., T], outcome: Outcome, *arguments: Any, tool: str = "-") -> T:
    """Return the rendered outcome of a tool, or a rendered failure if its answer is not JSON."""
    try:
        return render(outcome, *arguments)
    except (TypeError, ValueError, OverflowError, RecursionError):
        log.exception("answer.unspeakable tool=%s", tool)
        failure = Failed(ToolError(ErrorCode.INTERNAL, "The tool's result is not valid JSON."))
        return render(failure, *arguments)


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
        return Response(raw.get("id"), raw.get("result"), raw.get("error"))
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
    """Return the id of a message exactly as written: a double cannot hold every number, and 0 may be `-0`."""
    return _decode_id(body).id


def encode_result(request_id: RequestId, value: Any) -> bytes:
    """Encode a success response as one compact body."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "result": value})


def encode_error(request_id: RequestId | msgspec.Raw | None, code: int, message: str, data: Mapping[str, Any]) -> bytes:
    """Encode an error response as one compact body; its data has at least the string `code`."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message, "data": data}})


def encode_refusal(message: MalformedMessage, request_id: msgspec.Raw | None = None) -> bytes:
    """Encode the error response to a malformed message, with its id or another spelling of it."""
    data = {"code": ErrorCode.INVALID_REQUEST.name}
    return encode_error(message.id if request_id is None else request_id, message.code, message.reason, data)


def encode_request(request_id: RequestId, method: str, params: Any = None) -> bytes:
    """Encode a request as one compact body."""
    return _encode(
        {"jsonrpc": "2.0", "id": request_id, "method": method, **({} if params is None else {"params": params})}
    )


def encode_notification(method: str, params: Any = None) -> bytes:
    """Encode a notification as one compact body."""
    return _encode({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

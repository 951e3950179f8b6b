"""Strict JSON decoding with error messages that name the fault and its position.

NaN, invalid UTF-8, lone surrogates, numbers out of range, excessive nesting and trailing garbage
are refused on every wire, with the same messages.
"""

import codecs
import re
from array import array
from itertools import accumulate
from typing import Any, Final

import msgspec

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
    if isinstance(error, UnicodeDecodeError):
        return _describe_utf8_error(text)
    if text.startswith(codecs.BOM_UTF8):
        return "it begins with a byte order mark"
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


def _describe_utf8_error(text: bytes) -> str:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return f"invalid UTF-8 (byte {error.start})"
    return "invalid UTF-8"


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

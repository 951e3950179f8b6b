"""JSON texts as values: strict where silence would hurt, and clear about what is wrong and where.

NaN, invalid UTF-8, lone surrogates, numbers that are out of range, absurd nesting and trailing
garbage are refused on every wire, in the same words.
"""

import codecs
import re
from typing import Any, Final

import msgspec

from cleats.transports.nesting import too_deep

_decode = msgspec.json.Decoder().decode

_ESCAPE: Final = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|.)", re.DOTALL)
_PAIR: Final = re.compile(rb"\\u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}")
_BYTE: Final = re.compile(r"\(byte (\d+)\)")


class NotJson(ValueError):  # noqa: N818 - a state of a text
    """A text that we do not take for JSON. What it says is the reason."""


def decode(text: bytes) -> Any:
    """The value that a text stands for.

    Raises:
        NotJson: it stands for none.
    """
    if too_deep(text):
        raise NotJson("nested too deeply")
    try:
        return _decode(text)
    except ValueError as error:  # msgspec's errors and UnicodeDecodeError alike
        raise NotJson(_reason(text, error)) from None


def _reason(text: bytes, error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return _not_utf8(text)
    if text.startswith(codecs.BOM_UTF8):
        return "it begins with a byte order mark"
    said = str(error).removeprefix("JSON is malformed: ").partition(" - at ")[0]
    at = _lone_surrogate(text)
    noticed = _BYTE.search(said)
    # The library says of half a pair whatever it misses first, and that is never before it.
    if at is not None and (noticed is None or int(noticed[1]) > at) and "range" not in said:
        return f"lone surrogate {text[at : at + 6].decode()} (byte {at})"
    return said[:1].lower() + said[1:]


def _not_utf8(text: bytes) -> str:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return f"invalid UTF-8 (byte {error.start})"
    return "invalid UTF-8"


def _lone_surrogate(text: bytes) -> int | None:
    """Where the first half of a pair stands that has no other half; escapes are all in strings."""
    at = 0
    while (escape := _ESCAPE.search(text, at)) is not None:
        at = escape.end()
        if escape[1] is not None and 0xD800 <= int(escape[1], 16) <= 0xDFFF:
            pair = _PAIR.match(text, escape.start())
            if pair is None:
                return escape.start()
            at = pair.end()
    return None

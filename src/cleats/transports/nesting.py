"""How deep JSON may be nested: one limit for every wire, known before anything walks the value.

Whatever lies behind a wire walks a value by recursion, and an answer puts it a few levels deeper
than it came. Each library gives up at a depth of its own, some by an exception that nobody
expects, so what comes in stays well below the first of them.
"""

import re
from array import array
from itertools import accumulate
from typing import Final

DEEPEST: Final = 200
"""Levels; the validator takes 255, as does the MCP SDK."""

# Also a string that never ends is one: every quote is looked at once, whatever the text is.
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_OTHERS: Final = bytes(set(range(256)) - set(b"[{]}"))


def too_deep(text: bytes) -> bool:
    """Whether a JSON text is nested deeper than we take."""
    if text.count(b"[") + text.count(b"{") <= DEEPEST:  # nearly all, and at no cost
        return False
    steps = array("b", _STRING.sub(b"", text).translate(_STEPS, _OTHERS))
    return max(accumulate(steps), default=0) > DEEPEST

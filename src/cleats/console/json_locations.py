"""The lines of a JSON text at which values begin, so that an error can be shown at its place."""

import re
from collections.abc import Collection, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Final

from cleats.contract.pointer import join_pointer

_TOKEN_PATTERN: Final = re.compile(r'[\s,:]*(?:([{\[\]}"])|([^\s,:{}\[\]"]+))')

_DECODER: Final = JSONDecoder()

MAX_LOCATION_CHARS: Final = 500_000
"""The length of a text that is searched; errors of a longer one are shown at its beginning."""


def locate_pointers(text: str, pointers: Collection[str]) -> dict[str, int]:
    """Return the line of each pointer, or that of the nearest value around it which is there."""
    if len(text) > MAX_LOCATION_CHARS or not pointers:
        return {}
    try:
        offsets = dict(_walk_values(text))
    except (JSONDecodeError, IndexError):
        return {}
    lines = {}
    for pointer in pointers:
        nearest = pointer
        while nearest and nearest not in offsets:
            nearest = nearest.rpartition("/")[0]
        lines[pointer] = text.count("\n", 0, offsets.get(nearest, 0)) + 1
    return lines


def _walk_values(text: str) -> Iterator[tuple[str, int]]:
    """Yield the pointer and the offset of every value; a property begins at its name."""
    path: list[str] = []
    containers: list[tuple[str, int]] = []
    position, property_offset = 0, -1
    while match := _TOKEN_PATTERN.match(text, position):
        start = match.start(1) if match[1] else match.start(2)
        token = match[1]
        position = match.end()
        if token in {"}", "]"}:
            containers.pop()
            if path:
                path.pop()
            continue
        if token == '"':
            value, position = _DECODER.raw_decode(text, start)
            if containers and containers[-1][0] == "{" and property_offset < 0:
                path.append(value)
                property_offset = start
                continue
        if containers and containers[-1][0] == "[":
            kind, index = containers[-1]
            containers[-1] = (kind, index + 1)
            path.append(str(index))
        yield join_pointer(path), property_offset if property_offset >= 0 else start
        property_offset = -1
        if token in {"{", "["}:
            containers.append((token, 0))
        elif path and containers:
            path.pop()

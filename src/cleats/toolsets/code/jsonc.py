"""JSON with comments and trailing commas, as people write configuration."""

import json
import re
from typing import Any

_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<comma>,)|(?P<other>.)',
    re.DOTALL,
)
_NO_VALUE = re.compile(r"(?>\s+|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*[\]}]", re.DOTALL)


def parse(text: str) -> Any:
    """The value of a text.

    Raises:
        ValueError: it is not JSON even so; the message says where.
    """
    return json.loads(plain(text), object_pairs_hook=_unique, parse_constant=_refuse)


def plain(text: str) -> str:
    """The same value as JSON alone. Every line and column stays where it is."""
    return "".join(_kept(match, text) for match in _TOKEN.finditer(text))


def _kept(match: re.Match[str], text: str) -> str:
    if match["comment"] is not None:
        return re.sub(r"[^\n]", " ", match["comment"])
    if match["comma"] is not None and _NO_VALUE.match(text, match.end()):
        return " "
    return match[0]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{twice[0]!r} is there twice")
    return dict(pairs)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")

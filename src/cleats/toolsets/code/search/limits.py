"""How many hits an answer has at most."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cleats.toolsets.code.search.arguments import TOP

FEW: Final = 3
"""Documents, and as many comments, beside code in an answer that was not asked for a number."""


class Limits(NamedTuple):
    """Hits of code, and of each other mode."""

    code: int
    beside: int


def limits(given: Mapping[str, Any]) -> Limits:
    """What the arguments of a search ask for."""
    if given.get("top") is None:
        return Limits(TOP, FEW if (given.get("mode") or "both") == "both" else TOP)
    top = max(1, int(given["top"]))
    return Limits(top, top)

"""Cursors over the lists of several toolsets, one after the other."""

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from mcp_types import PaginatedRequestParams

from cleats.contract.listing import Page
from cleats.transports.mcp.refusals import refusal

ItemT = TypeVar("ItemT")
Lister = Callable[[str, int], Awaitable[Page[ItemT]]]


def cursor_of(params: PaginatedRequestParams | None) -> str | None:
    """The page that is asked for; None for the first."""
    return None if params is None else params.cursor


async def paged(
    listers: Sequence[Lister[ItemT]], cursor: str | None, size: int
) -> tuple[list[ItemT], str | None]:
    """One page, and the cursor of the next.

    Raises:
        MCPError: the cursor is none of ours.
    """
    number, after = _position(cursor, len(listers))
    items: list[ItemT] = []
    while number < len(listers):
        part = await listers[number](after, size - len(items))
        items += part.items
        if part.after:
            return items, _cursor(number, part.after)
        number, after = number + 1, ""
        if len(items) >= size and number < len(listers):
            return items, _cursor(number, "")
    return items, None


def _cursor(number: int, after: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([number, after]).encode()).decode()


def _position(cursor: str | None, count: int) -> tuple[int, str]:
    if cursor is None:
        return 0, ""
    try:
        value: Any = json.loads(base64.b64decode(cursor, b"-_", validate=True))
    except (binascii.Error, ValueError):
        value = None
    match value:
        case [int(number), str(after)] if 0 <= number < count:
            return number, after
    raise refusal("There is no such page: use the cursor of the page before, or none.")

"""Long lists in pages: sorted by a key, each page beginning after the last key of the one before.

A page is found by key, not by number, so that a list may change between two pages and no item
that stays is skipped or shown twice.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

ItemT = TypeVar("ItemT")

ListName: TypeAlias = Literal["tools", "resources", "prompts"]
"""A list that a client may have read and wants to hear changes of."""


@dataclass(frozen=True, slots=True)
class Page(Generic[ItemT]):
    """Some items of a list, and the key that the next page begins after; empty at the end."""

    items: Sequence[ItemT]
    after: str = ""


def page(items: Sequence[ItemT], keys: Sequence[str], after: str, limit: int) -> Page[ItemT]:
    """The items whose keys, which are sorted, come after this one: at most `limit` of them."""
    start = bisect_right(keys, after) if after else 0
    end = start + limit
    return Page(items[start:end], keys[end - 1] if end < len(keys) else "")

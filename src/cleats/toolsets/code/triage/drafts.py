"""What an adapter makes of one thing in a document: a finding that has no name yet."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from cleats.toolsets.code.triage.records import Record

Items: TypeAlias = Callable[[Any], Iterator[Any]]
"""From a document to the things in it, each with all that is needed to understand it."""


class Draft(NamedTuple):
    """A finding, and the key by which its source would know it again; empty when it has none."""

    key: str
    record: Record


class Source(NamedTuple):
    """A kind of document."""

    about: str
    items: Items
    draft: Callable[[Any], Draft]


def key(*parts: str) -> str:
    """A key of parts; none when the first is missing."""
    return ":".join(parts) if parts[0] else ""

"""What a toolset offers to be read, whatever wire carries it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cleats.contract.listing import Page

FOLDER = "inode/directory"
"""The media type of a resource that has children."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something that can be read, as a list shows it."""

    uri: str
    name: str
    mime_type: str
    description: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A family of resources (RFC 6570)."""

    uri: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Contents:
    """The bytes of a resource."""

    uri: str
    mime_type: str
    data: bytes


class Resources(Protocol):
    """The resources of one toolset."""

    @property
    def templates(self) -> Sequence[Template]:
        """The families that are not listed one by one."""

    async def list(self, after: str, limit: int) -> Page[Resource]:
        """What is listed, sorted by URI."""

    async def read(self, uri: str) -> Contents | None:
        """What is behind a URI, listed or not; None when it is none of ours."""

    async def children(self, uri: str) -> Sequence[Resource] | None:
        """The direct children of a folder, sorted by URI; None when it is none of ours."""

"""Resources that a toolset offers for reading, on any wire."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

ItemT = TypeVar("ItemT")

ListName: TypeAlias = Literal["tools", "resources", "prompts"]
"""A list whose changes a client can be notified of."""


@dataclass(frozen=True, slots=True)
class ListPage(Generic[ItemT]):
    """Some items of a list, and the key after which the next page begins; empty at the end."""

    items: Sequence[ItemT]
    after: str = ""


def slice_page(items: Sequence[ItemT], keys: Sequence[str], after: str, limit: int) -> ListPage[ItemT]:
    """Return at most `limit` items whose keys, which are sorted, come after `after`."""
    start = bisect_right(keys, after) if after else 0
    end = start + limit
    return ListPage(items[start:end], keys[end - 1] if end < len(keys) else "")


DIRECTORY_MIME_TYPE = "inode/directory"
"""The media type of a resource that has children."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A readable resource as it appears in a list."""

    uri: str
    name: str
    mime_type: str
    description: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplate:
    """A family of resources, described by a URI template (RFC 6570)."""

    uri: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class ResourceContents:
    """The bytes of a resource."""

    uri: str
    mime_type: str
    data: bytes


class ResourceProvider(Protocol):
    """The resources of one toolset."""

    @property
    def templates(self) -> Sequence[ResourceTemplate]:
        """The families whose resources are not listed one by one."""

    async def list(self, after: str, limit: int) -> ListPage[Resource]:
        """Return one page of the listed resources, sorted by URI."""

    async def read(self, uri: str) -> ResourceContents | None:
        """Return the contents at a URI, listed or not, or None for an unknown URI."""

    async def list_children(self, uri: str) -> Sequence[Resource] | None:
        """Return the direct children of a folder, sorted by URI, or None for an unknown URI."""


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt that a person may fill in."""

    name: str
    description: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as it appears in a list."""

    name: str
    description: str
    arguments: Sequence[PromptArgument] = ()


class PromptProvider(Protocol):
    """The prompts of one toolset."""

    async def list(self, after: str, limit: int) -> ListPage[Prompt]:
        """Return one page of the prompts, sorted by name."""

    async def get(self, name: str, arguments: Mapping[str, str]) -> str | None:
        """Return the text of a prompt in the user's voice, or None if it does not exist."""


MAX_SKILL_FILES = 512
MAX_SKILL_BYTES = 16 << 20
"""The limits that every host of the extension must accept; a larger skill is not published there."""


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill, and the SHA-256 of its bytes in hexadecimal."""

    uri: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """One skill: the URI of its SKILL.md, its front matter as JSON, all of its files."""

    uri: str
    front_matter: Mapping[str, Any]
    files: Sequence[SkillFile]


class SkillProvider(Protocol):
    """The skills that one toolset publishes."""

    async def list(self, after: str, limit: int) -> ListPage[SkillEntry]:
        """Return one page of the listed skills, sorted by URI."""

    async def get(self, uri: str) -> SkillEntry | None:
        """Return one skill, listed or not, or None if it does not exist."""

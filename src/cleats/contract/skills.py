"""Skills as other hosts take them over: the front matter, and every file with its digest.

The values of the MCP skills extension (SEP-2640), free of its wire.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cleats.contract.listing import Page

MOST_FILES = 512
MOST_BYTES = 16 << 20
"""What every host of the extension must take; a larger skill is not published there."""


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


class SkillEntries(Protocol):
    """The skills that one toolset publishes."""

    async def list(self, after: str, limit: int) -> Page[SkillEntry]:
        """What is listed, sorted by URI."""

    async def get(self, uri: str) -> SkillEntry | None:
        """One skill, listed or not; None when there is none."""

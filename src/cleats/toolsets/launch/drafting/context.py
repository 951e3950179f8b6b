"""What a page knows while it is written: the material, its own place, and its neighbours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cleats.toolsets.launch.drafting.material import Material, Snippet

TIERS: Mapping[str, int] = {"minimal": 5, "standard": 8, "rich": 12}
"""How many items a list of a page has at most, by how much the launch says."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another page that this one can lead to."""

    title: str
    url: str
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a page is about when it is one of many of its kind: a task, or a module."""

    key: str
    title: str
    claim_ids: tuple[str, ...] = ()
    snippets: tuple[Snippet, ...] = ()
    symbols: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """All that the text of one page may draw on."""

    material: Material
    subject: Subject | None = None
    children: tuple[Neighbour, ...] = ()
    related: tuple[Neighbour, ...] = ()
    section: Mapping[str, Neighbour] = field(default_factory=dict)
    """The pages of the same section, by their slugs."""
    tier: str = "standard"
    max_lines: int = 500

    @property
    def items(self) -> int:
        """How long a list may be."""
        return TIERS[self.tier]

    @property
    def rows(self) -> int:
        """How many rows the tables of a page may have together, other text beside them."""
        return max(10, self.max_lines - 120)

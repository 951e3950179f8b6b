"""The inputs of a page, and the simple blocks rendered from them: statements and code."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cleats.toolsets.launch.drafting.material import LaunchMaterial, PageSnippet

MAX_ITEMS_BY_TIER: Mapping[str, int] = {"minimal": 5, "standard": 8, "rich": 12}
"""The most items in a list of a page, by launch tier."""


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """Another page that a page can link to."""

    title: str
    url: str
    purpose: str


@dataclass(frozen=True, slots=True)
class PageSubject:
    """The subject of a page that is one of many of its kind: a task, or a module."""

    key: str
    title: str
    claim_ids: tuple[str, ...] = ()
    snippets: tuple[PageSnippet, ...] = ()
    symbols: tuple[Mapping[str, Any], ...] = ()
    document_section: Mapping[str, Any] | None = None
    """The section of the repository's documents that describes the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    """All inputs for the text of one page."""

    material: LaunchMaterial
    subject: PageSubject | None = None
    children: tuple[LinkedPage, ...] = ()
    related: tuple[LinkedPage, ...] = ()
    section: Mapping[str, LinkedPage] = field(default_factory=dict)
    """The pages of the same section by slug."""
    tier: str = "standard"
    max_lines: int = 500

    @property
    def max_items(self) -> int:
        """The most items of a list."""
        return MAX_ITEMS_BY_TIER[self.tier]

    @property
    def max_topic_lines(self) -> int:
        """The most lines of a topic of the documents, which is one part of a page among others."""
        return self.max_lines // 4

    @property
    def max_rows(self) -> int:
        """The most rows of all tables of a page together, with room for other text."""
        return max(10, self.max_lines - 120)


MAX_CODE_LINES = 90
"""The longest example on a page; a longer one is a program to read in the repository."""


def render_claims(context: PageContext, claim_ids: Sequence[str]) -> str:
    """Render statements; several become a list, in which the product is called "it"."""
    material = context.material
    name = f"{material.product_name} "
    features = f"The features of {name}include "
    texts = {claim_id: str(material.claims[claim_id]["claim_text"]) for claim_id in claim_ids}
    if len(texts) < 2:
        return "\n".join(material.state_claim(claim_id) for claim_id in claim_ids)
    for claim_id, text in texts.items():
        if text.startswith(features):
            rest = text.removeprefix(features)
            texts[claim_id] = f"{rest[:1].upper()}{rest[1:]}"
        elif text.startswith(name):
            texts[claim_id] = f"It {text.removeprefix(name)}"
    return "\n".join(f"- {material.state_claim(claim_id, text)}" for claim_id, text in texts.items())


def strip_markup(title: str) -> str:
    """Remove Markdown markup from a title, for front matter and link texts."""
    return re.sub(r"[`*]", "", title)


def is_short(snippet: PageSnippet) -> bool:
    """Return True if the snippet is short enough for a page."""
    return snippet.code.count("\n") < MAX_CODE_LINES


def fence_code(language: str, code: str) -> str:
    """Fence code with more backticks than it contains."""
    fence_marks = "```"
    while fence_marks in code:
        fence_marks += "`"
    return f"{fence_marks}{language}\n{code}\n{fence_marks}"


Symbol = Mapping[str, Any]

"""The pages, and the blocks of code on them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]

SOURCES = ("README.md", "docs/*.md", "examples/*/README.md", "CHANGELOG.md")
DATA = frozenset({"examples/shop/README.md", "examples/launch/README.md"})
"""Not pages, but what the examples are about."""

_NOTE = re.compile(r"<!--\s*(not run|file|exit):\s*(.+?)\s*-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of code, and what the comments above it say about it."""

    line: int
    language: str
    text: str
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """One page, parsed once."""

    path: str
    """From the root of the repository, with slashes."""
    tokens: tuple[Token, ...]

    @property
    def title(self) -> str:
        """The text of the first heading."""
        for place, token in enumerate(self.tokens):
            if token.type == "heading_open":
                return plain(self.tokens[place + 1])
        return self.path

    def blocks(self) -> Iterator[Block]:
        """Every block of code in the order of the page."""
        notes: dict[str, str] = {}
        for token in self.tokens:
            if token.type == "html_block":
                notes |= dict(_NOTE.findall(token.content))
            elif token.type == "fence":
                line = (token.map or [0])[0] + 1
                yield Block(line, token.info.strip(), token.content, notes)
                notes = {}
            elif token.type == "code_block":
                yield Block((token.map or [0])[0] + 1, "", token.content, notes)
                notes = {}
            elif token.type not in {"inline", "paragraph_open", "paragraph_close"}:
                continue
            else:
                notes = {}


def plain(token: Token) -> str:
    """The words of an inline token, without their markup."""
    return "".join(each.content for each in token.children or () if each.type != "html_inline")


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


@cache
def parser() -> MarkdownIt:
    """GitHub's Markdown, as far as we use it."""
    return MarkdownIt("commonmark").enable("table").enable("strikethrough")


def read(path: Path) -> Page:
    """Parse one page."""
    tokens = parser().parse(path.read_text(encoding="utf-8"))
    return Page(path.relative_to(ROOT).as_posix(), tuple(tokens))


def every() -> list[Page]:
    """Every page there is."""
    found = sorted(path for pattern in SOURCES for path in ROOT.glob(pattern))
    return [page for path in found if (page := read(path)).path not in DATA]

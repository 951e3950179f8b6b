"""The pages, and the blocks of code on them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

REPOSITORY_ROOT = Path(__file__).parents[1]

PAGE_PATTERNS = ("README.md", "docs/*.md", "docs/rules/*.md", "examples/*/README.md", "CHANGELOG.md")
EXAMPLE_DATA_PAGES = frozenset({"examples/shop/README.md", "examples/launch/README.md"})
"""Files that are no pages but input of the examples."""

_NOTE_PATTERN = re.compile(r"<!--\s*(not run|file|exit):\s*(.+?)\s*-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block of code, with the notes in the comments above it."""

    line: int
    language: str
    text: str
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BookPage:
    """One page, parsed once."""

    path: str
    """The path from the root of the repository, with slashes."""
    tokens: tuple[Token, ...]
    text: str = ""
    """The Markdown of the page."""

    @property
    def title(self) -> str:
        """The text of the first heading."""
        for position, token in enumerate(self.tokens):
            if token.type == "heading_open":
                return extract_plain_text(self.tokens[position + 1])
        return self.path

    def iterate_blocks(self) -> Iterator[PageBlock]:
        """Yield every block of code in the order of the page."""
        notes: dict[str, str] = {}
        for token in self.tokens:
            if token.type == "html_block":
                notes |= dict(_NOTE_PATTERN.findall(token.content))
            elif token.type == "fence":
                line = (token.map or [0])[0] + 1
                yield PageBlock(line, token.info.strip(), token.content, notes)
                notes = {}
            elif token.type == "code_block":
                yield PageBlock((token.map or [0])[0] + 1, "", token.content, notes)
                notes = {}
            elif token.type not in {"inline", "paragraph_open", "paragraph_close"}:
                continue
            else:
                notes = {}


def extract_plain_text(token: Token) -> str:
    """Return the words of an inline token without their markup."""
    return "".join(child.content for child in token.children or () if child.type != "html_inline")


def make_slug(heading: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    cleaned = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return cleaned.replace(" ", "-")


@cache
def get_parser() -> MarkdownIt:
    """Return a parser for the part of GitHub's Markdown that is used here."""
    return MarkdownIt("commonmark", {"highlight": highlight_code}).enable("table").enable("strikethrough")


def highlight_code(text: str, language: str, _attributes: str) -> str:
    """Return a block of code as HTML with highlighting, or nothing for a language without a lexer."""
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return ""
    highlighted: str = highlight(text, lexer, HtmlFormatter(nowrap=True))
    return highlighted


def read_page(path: Path) -> BookPage:
    """Parse one page."""
    text = path.read_text(encoding="utf-8")
    return BookPage(path.relative_to(REPOSITORY_ROOT).as_posix(), tuple(get_parser().parse(text)), text)


def read_all_pages() -> list[BookPage]:
    """Read all pages."""
    paths = sorted(path for pattern in PAGE_PATTERNS for path in REPOSITORY_ROOT.glob(pattern))
    return [page for path in paths if (page := read_page(path)).path not in EXAMPLE_DATA_PAGES]

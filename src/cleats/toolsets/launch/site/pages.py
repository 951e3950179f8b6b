"""Parsing of the Markdown of site pages.

Reads what Hugo reads (CommonMark with tables, heading anchors in GitHub style) and reports the line
of every element. Independent of plans, gates and files.

Line numbers start at 1. Functions that take a body also take `first_line`, the line in the file at
which the body begins (`ParsedPage.body_line`), so that reported lines can be shown to a reader
unchanged.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

_HTML_TAG_PATTERN = re.compile(r"<(a|img)\b([^>]*)>", re.IGNORECASE | re.DOTALL)
_HTML_ATTRIBUTE_PATTERN = re.compile(r"""([a-zA-Z-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_DASH_PATTERN = re.compile(r"---?")
_EXPLICIT_ID_PATTERN = re.compile(r"\s*\{[^{}]*#([^\s{}]+)[^{}]*\}\s*$")


@dataclass(frozen=True, slots=True)
class PageHeading:
    level: int
    text: str
    anchor: str
    line: int


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link, or an image with its alternative text."""

    target: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class CodeBlock:
    language: str
    code: str
    line: int


def list_headings(body: str, first_line: int = 1) -> list[PageHeading]:
    """List the headings with the anchors that Hugo gives them."""
    page_headings: list[PageHeading] = []
    used_anchors: set[str] = set()
    tokens = _parse_tokens(body)
    for token, content in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = _extract_text(content)
        explicit_id = _EXPLICIT_ID_PATTERN.search(text)
        anchor = explicit_id.group(1) if explicit_id else _make_anchor(text, used_anchors)
        used_anchors.add(anchor)
        text = _EXPLICIT_ID_PATTERN.sub("", text).replace("\n", " ")
        page_headings.append(PageHeading(int(token.tag[1:]), text, anchor, _locate_token(token, first_line)))
    return page_headings


def list_links(body: str, first_line: int = 1) -> list[PageLink]:
    """List every link that a reader could follow, raw HTML included."""
    page_links: list[PageLink] = []
    for token, line in _iter_inline_tokens(body, first_line):
        open_link: tuple[str, int, list[str]] | None = None
        for child, child_line in _iter_child_tokens(token, line):
            if child.type == "link_open":
                open_link = (str(child.attrGet("href") or ""), child_line, [])
            elif child.type == "link_close" and open_link is not None:
                page_links.append(PageLink(open_link[0], "".join(open_link[2]), open_link[1]))
                open_link = None
            elif open_link is not None:
                open_link[2].append(child.content)
    page_links.extend(
        PageLink(attributes["href"], "", line)
        for name, attributes, line in _iter_html_tags(body, first_line)
        if name == "a" and "href" in attributes
    )
    return sorted(page_links, key=lambda link: link.line)


def list_images(body: str, first_line: int = 1) -> list[PageLink]:
    """List every image, raw HTML included."""
    page_images = [
        PageLink(str(child.attrGet("src") or ""), child.content, line)
        for token, start in _iter_inline_tokens(body, first_line)
        for child, line in _iter_child_tokens(token, start)
        if child.type == "image"
    ]
    page_images.extend(
        PageLink(attributes["src"], attributes.get("alt", ""), line)
        for name, attributes, line in _iter_html_tags(body, first_line)
        if name == "img" and "src" in attributes
    )
    return sorted(page_images, key=lambda image: image.line)


def list_code_blocks(body: str, first_line: int = 1) -> list[CodeBlock]:
    """List the fenced code blocks; the language is the first word after the fence, lower case."""
    return [
        CodeBlock((token.info.split() or [""])[0].lower(), token.content, _locate_token(token, first_line))
        for token in _parse_tokens(body)
        if token.type == "fence"
    ]


def find_code_lines(body: str) -> frozenset[int]:
    """Return the numbers of the body lines, from 1, that are code, including the fences."""
    return frozenset(
        number
        for token in _parse_tokens(body)
        if token.type in {"fence", "code_block"} and token.map is not None
        for number in range(token.map[0] + 1, token.map[1] + 1)
    )


def find_table_row_lines(body: str) -> frozenset[int]:
    """Return the numbers of the body lines, from 1, that are table rows below a table heading."""
    tables = [token.map for token in _parse_tokens(body) if token.type == "tbody_open" and token.map is not None]
    return frozenset(number for start, end in tables for number in range(start + 1, end + 1))


@cache
def _make_markdown_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


@lru_cache(maxsize=64)  # a page is queried many times in a row; nobody changes the tokens
def _parse_tokens(body: str) -> tuple[Token, ...]:
    return tuple(_make_markdown_parser().parse(body))


def _locate_token(token: Token, first_line: int) -> int:
    return first_line + (token.map[0] if token.map else 0)


def _iter_inline_tokens(body: str, first_line: int) -> Iterator[tuple[Token, int]]:
    for token in _parse_tokens(body):
        if token.type == "inline":
            yield token, _locate_token(token, first_line)


def _iter_child_tokens(token: Token, line: int) -> Iterator[tuple[Token, int]]:
    for child in token.children or ():
        yield child, line
        line += child.type in {"softbreak", "hardbreak"}


def _iter_html_tags(body: str, first_line: int) -> Iterator[tuple[str, dict[str, str], int]]:
    fragments = [
        (token.content, _locate_token(token, first_line)) for token in _parse_tokens(body) if token.type == "html_block"
    ]
    for token, start in _iter_inline_tokens(body, first_line):
        fragments.extend(
            (child.content, line) for child, line in _iter_child_tokens(token, start) if child.type == "html_inline"
        )
    for content, line in fragments:
        for tag in _HTML_TAG_PATTERN.finditer(content):
            attributes = {
                match.group(1).lower(): match.group(2) or match.group(3) or match.group(4) or ""
                for match in _HTML_ATTRIBUTE_PATTERN.finditer(tag.group(2))
            }
            yield tag.group(1).lower(), attributes, line + content.count("\n", 0, tag.start())


def _extract_text(token: Token) -> str:
    return "".join(
        "\n" if child.type == "softbreak" else child.content
        for child in token.children or ()
        if child.type in {"text", "code_inline", "image", "softbreak"}
    ).strip()


def _make_anchor(text: str, used_anchors: set[str]) -> str:
    # Goldmark reads the last line only, after replacing two or three hyphens by a dash.
    line = _DASH_PATTERN.sub("", text.rsplit("\n", 1)[-1])
    anchor_characters = (
        "-" if character in " -" else character.lower() if character == "_" or character.isalpha() else character
        for character in line.strip()
        if character in " -_" or character.isalpha() or character.isdecimal()
    )
    name = "".join(anchor_characters) or "heading"
    anchor = name
    count = 0
    while anchor in used_anchors:
        count += 1
        anchor = f"{name}-{count}"
    return anchor

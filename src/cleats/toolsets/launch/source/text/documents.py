"""Documents as a list of blocks: headings, paragraphs, list items and code, each with its lines.

Markdown is read by a parser; reStructuredText, which would need Sphinx, is read well enough by
`rst`. Text keeps only code markup: links become their text, images and HTML are dropped.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.text import blocks
from cleats.toolsets.launch.source.text.blocks import Block

_HTML_COMMENT_PATTERN: Final = re.compile(r"<!--.*?-->", re.DOTALL)


def read_blocks(tree: CheckoutTree, path: str) -> list[Block]:
    """Return the blocks of a document, in order; none for one that cannot be read."""
    text = tree.read_text(path)
    if text is None:
        return []
    if PurePosixPath(path).suffix.lower() == ".rst":
        return blocks.parse_rst(text, path)
    return _parse_markdown(text, path)


@dataclass(slots=True)
class _MarkdownPosition:
    """The position in a document: the headings above, and the lists and quotes around."""

    headings: list[tuple[int, str]]
    list_depth: int = 0
    quote_depth: int = 0
    item_block_count: int = 0

    @property
    def section(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.headings)


def _parse_markdown(text: str, path: str) -> list[Block]:
    front_matter = re.match(r"---\n.*?\n---\n", text, re.DOTALL)
    skipped_lines = front_matter[0].count("\n") if front_matter else 0
    body = text[front_matter.end() :] if front_matter else text
    position = _MarkdownPosition([])
    blocks: list[Block] = []
    tokens = _markdown_parser().parse(body)
    for number, token in enumerate(tokens):
        _track_containers(position, token)
        first = skipped_lines + (token.map[0] if token.map else 0) + 1
        last = skipped_lines + (token.map[1] if token.map else 0)
        if token.type == "inline" and (above := tokens[number - 1].type):
            block = _build_inline_block(token, above, position, (path, first, max(first, last)))
            if block.kind == "heading":
                _enter_heading(position, int(tokens[number - 1].tag[1:]), block.text)
            blocks.append(block)
        elif token.type in ("fence", "code_block") and (language := _parse_fence_info(token.info)) is not None:
            blocks.append(
                Block(
                    "code",
                    token.content,
                    path,
                    first,
                    max(first, last),
                    position.section,
                    language=language,
                    quoted=bool(position.quote_depth),
                    fenced=token.type == "fence",
                )
            )
    return blocks


def _parse_fence_info(info: str) -> str | None:
    """Return the language in the info string of a fence; None for a directive without code."""
    words = info.split()
    if not words or not words[0].startswith("{"):
        return words[0] if words else ""
    if words[0].strip("{}") in blocks.CODE_DIRECTIVES:
        return words[1] if len(words) > 1 else ""
    return None


def _track_containers(position: _MarkdownPosition, token: Token) -> None:
    if token.type in ("bullet_list_open", "ordered_list_open"):
        position.list_depth += 1
    elif token.type in ("bullet_list_close", "ordered_list_close"):
        position.list_depth -= 1
    elif token.type == "list_item_open":
        position.item_block_count = 0
    elif token.type == "blockquote_open":
        position.quote_depth += 1
    elif token.type == "blockquote_close":
        position.quote_depth -= 1


def _enter_heading(position: _MarkdownPosition, level: int, text: str) -> None:
    while position.headings and position.headings[-1][0] >= level:
        position.headings.pop()
    position.headings.append((level, text))


def _build_inline_block(token: Token, above: str, position: _MarkdownPosition, location: tuple[str, int, int]) -> Block:
    text, lead, only_link, html = _flatten_inline(token)
    kind = "paragraph"
    if above == "heading_open":
        kind = "heading"
    elif above in ("th_open", "td_open"):
        kind = "cell"
    elif position.list_depth:
        kind = "item" if position.item_block_count == 0 else "continuation"
        position.item_block_count += 1
    return Block(
        kind,
        text,
        *location,
        position.section,
        lead=lead,
        only_link=only_link,
        html=html,
        depth=position.list_depth,
        quoted=bool(position.quote_depth),
    )


def _flatten_inline(token: Token) -> tuple[str, str, bool, bool]:
    """Return the text, its leading strong words, and flags: it is only a link, it has HTML."""
    parts: list[str] = []
    lead: list[str] = []
    outside: list[str] = []
    links = strong = 0
    html = False
    for child in token.children or ():
        fragment = ""
        if child.type == "text":
            fragment = child.content
        elif child.type == "code_inline":
            fragment = f"`{child.content}`"
        elif child.type in ("softbreak", "hardbreak"):
            fragment = " "
        elif child.type == "html_inline":
            html = html or not _HTML_COMMENT_PATTERN.fullmatch(child.content)
        links += {"link_open": 1, "link_close": -1}.get(child.type, 0)
        strong += {"strong_open": 1, "strong_close": -1}.get(child.type, 0)
        if fragment and strong and not "".join(parts)[len("".join(lead)) :].strip():
            lead.append(fragment)
        if fragment and not links:
            outside.append(fragment)
        parts.append(fragment)
    text = " ".join("".join(parts).split())
    only_link = bool(text) and not re.sub(r"[\W_]+", "", "".join(outside))
    return text, " ".join("".join(lead).split()), only_link, html


@cache
def _markdown_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")

"""Documents as a list of blocks: headings, paragraphs, list items and code, each with its lines.

Markdown is read by its parser; what a parser of reStructuredText would need Sphinx for, `rst` reads
well enough. Text keeps only the marks of code: links are their text, images and HTML are gone.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from cleats.toolsets.launch.source import rst
from cleats.toolsets.launch.source.blocks import Block
from cleats.toolsets.launch.source.tree import Tree

_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


def blocks(tree: Tree, path: str) -> list[Block]:
    """The blocks of a document, in order; none for one that cannot be read."""
    text = tree.text(path)
    if text is None:
        return []
    if PurePosixPath(path).suffix.lower() == ".rst":
        return rst.blocks(text, path)
    return _markdown(text, path)


@dataclass(slots=True)
class _Place:
    """Where the reading is: below which headings, in which list."""

    headings: list[tuple[int, str]]
    lists: int = 0
    quotes: int = 0
    item: int = 0

    @property
    def section(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.headings)


def _markdown(text: str, path: str) -> list[Block]:
    front = re.match(r"---\n.*?\n---\n", text, re.DOTALL)
    skipped = front[0].count("\n") if front else 0
    body = text[front.end() :] if front else text
    place = _Place([])
    found: list[Block] = []
    tokens = _parser().parse(body)
    for number, token in enumerate(tokens):
        _move(place, token)
        first = skipped + (token.map[0] if token.map else 0) + 1
        last = skipped + (token.map[1] if token.map else 0)
        if token.type == "inline" and (above := tokens[number - 1].type):
            block = _inline_block(token, above, place, (path, first, max(first, last)))
            if block.kind == "heading":
                _enter(place, int(tokens[number - 1].tag[1:]), block.text)
            found.append(block)
        elif (
            token.type in ("fence", "code_block") and (spoken := _language(token.info)) is not None
        ):
            found.append(
                Block(
                    "code",
                    token.content,
                    path,
                    first,
                    max(first, last),
                    place.section,
                    language=spoken,
                    quoted=bool(place.quotes),
                    fenced=token.type == "fence",
                )
            )
    return found


def _language(info: str) -> str | None:
    """What the line of a fence says: a language, or a directive, of which few hold code."""
    words = info.split()
    if not words or not words[0].startswith("{"):
        return words[0] if words else ""
    if words[0].strip("{}") in rst.CODE:
        return words[1] if len(words) > 1 else ""
    return None


def _move(place: _Place, token: Token) -> None:
    if token.type in ("bullet_list_open", "ordered_list_open"):
        place.lists += 1
    elif token.type in ("bullet_list_close", "ordered_list_close"):
        place.lists -= 1
    elif token.type == "list_item_open":
        place.item = 0
    elif token.type == "blockquote_open":
        place.quotes += 1
    elif token.type == "blockquote_close":
        place.quotes -= 1


def _enter(place: _Place, level: int, text: str) -> None:
    while place.headings and place.headings[-1][0] >= level:
        place.headings.pop()
    place.headings.append((level, text))


def _inline_block(token: Token, above: str, place: _Place, where: tuple[str, int, int]) -> Block:
    text, lead, only_link, html = _inline(token)
    kind = "paragraph"
    if above == "heading_open":
        kind = "heading"
    elif above in ("th_open", "td_open"):
        kind = "cell"
    elif place.lists:
        kind = "item" if place.item == 0 else "continuation"
        place.item += 1
    return Block(
        kind,
        text,
        *where,
        place.section,
        lead=lead,
        only_link=only_link,
        html=html,
        depth=place.lists,
        quoted=bool(place.quotes),
    )


def _inline(token: Token) -> tuple[str, str, bool, bool]:
    """The text, the strong words at its beginning, whether it is only a link, or has HTML."""
    parts: list[str] = []
    lead: list[str] = []
    outside: list[str] = []
    links = strong = 0
    html = False
    for child in token.children or ():
        piece = ""
        if child.type == "text":
            piece = child.content
        elif child.type == "code_inline":
            piece = f"`{child.content}`"
        elif child.type in ("softbreak", "hardbreak"):
            piece = " "
        elif child.type == "html_inline":
            html = html or not _COMMENT.fullmatch(child.content)
        links += {"link_open": 1, "link_close": -1}.get(child.type, 0)
        strong += {"strong_open": 1, "strong_close": -1}.get(child.type, 0)
        if piece and strong and not "".join(parts)[len("".join(lead)) :].strip():
            lead.append(piece)
        if piece and not links:
            outside.append(piece)
        parts.append(piece)
    text = " ".join("".join(parts).split())
    only_link = bool(text) and not re.sub(r"[\W_]+", "", "".join(outside))
    return text, " ".join("".join(lead).split()), only_link, html


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")

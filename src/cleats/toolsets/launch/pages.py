"""A page of the site: its front matter, its Markdown, and what can be asked of it.

Reads what Hugo reads (YAML, TOML or JSON front matter, CommonMark with tables, heading anchors of
the GitHub kind) and says at which line each thing stands. Knows nothing of plans, gates or files.

Lines count from 1. A function that takes a body takes `first`, the line its first line has in the
file (`Page.body_line`), so that what it reports can be shown to a reader as it is.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

MARKER = re.compile(r"<!--\s*claim_id:\s*([A-Za-z0-9_.:-]+)\s*-->")
"""What ties a statement to its evidence; it stands at the end of the statement's line."""

_LEAD = re.compile(r"^\s*(?:>\s*)*(?:[-*+]\s+|\d+[.)]\s+)?")
_TAG = re.compile(r"<(a|img)\b([^>]*)>", re.IGNORECASE | re.DOTALL)
_ATTRIBUTE = re.compile(r"""([a-zA-Z-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_DASHES = re.compile(r"---?")
_OWN_ID = re.compile(r"\s*\{[^{}]*#([^\s{}]+)[^{}]*\}\s*$")


class FrontMatterError(ValueError):
    """Raised when the front matter cannot be read; `line` is where."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class Page:
    front: dict[str, Any]
    front_kind: str
    """`yaml`, `toml`, `json`, or empty for a page without front matter."""
    body: str
    body_line: int


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str
    anchor: str
    line: int


@dataclass(frozen=True, slots=True)
class Link:
    target: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Image:
    target: str
    alt: str
    line: int


@dataclass(frozen=True, slots=True)
class Fence:
    language: str
    code: str
    line: int


@dataclass(frozen=True, slots=True)
class Claim:
    claim_id: str
    line: int
    statement: str


def parse(text: str) -> Page:
    """Split a page into front matter and body.

    Raises:
        FrontMatterError: it does not end, does not parse, names a key twice, or is no mapping.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if text.startswith("{"):
        return _json_page(text)
    for mark, kind in (("---", "yaml"), ("+++", "toml")):
        if re.match(re.escape(mark) + r"[ \t]*\n", text):
            return _marked_page(text, mark, kind)
    return Page({}, "", text, 1)


def render(front: Mapping[str, Any], body: str) -> str:
    """Write a page with YAML front matter: keys in the order given, one line feed at the end."""
    return f"---\n{front_yaml(front)}---\n\n{body.strip(chr(10))}\n"


def front_yaml(front: Mapping[str, Any]) -> str:
    """Write front matter as YAML that Hugo reads back to the same values."""
    return yaml.dump(
        dict(front),
        Dumper=_Plain,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=10**6,  # a folded line is hard to review and to patch
    )


def headings(body: str, first: int = 1) -> list[Heading]:
    """List the headings with the anchors that Hugo gives them."""
    found: list[Heading] = []
    taken: set[str] = set()
    tokens = _tokens(body)
    for token, content in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = _plain(content)
        own = _OWN_ID.search(text)
        anchor = own.group(1) if own else _anchor(text, taken)
        taken.add(anchor)
        text = _OWN_ID.sub("", text).replace("\n", " ")
        found.append(Heading(int(token.tag[1:]), text, anchor, _line(token, first)))
    return found


def links(body: str, first: int = 1) -> list[Link]:
    """List every link that a reader could follow, raw HTML included."""
    found: list[Link] = []
    for token, line in _inline(body, first):
        open_at: tuple[str, int, list[str]] | None = None
        for child, child_line in _children(token, line):
            if child.type == "link_open":
                open_at = (str(child.attrGet("href") or ""), child_line, [])
            elif child.type == "link_close" and open_at is not None:
                found.append(Link(open_at[0], "".join(open_at[2]), open_at[1]))
                open_at = None
            elif open_at is not None:
                open_at[2].append(child.content)
    found.extend(
        Link(attributes["href"], "", line)
        for name, attributes, line in _html(body, first)
        if name == "a" and "href" in attributes
    )
    return sorted(found, key=lambda link: link.line)


def images(body: str, first: int = 1) -> list[Image]:
    """List every image, raw HTML included."""
    found = [
        Image(str(child.attrGet("src") or ""), child.content, line)
        for token, start in _inline(body, first)
        for child, line in _children(token, start)
        if child.type == "image"
    ]
    found.extend(
        Image(attributes["src"], attributes.get("alt", ""), line)
        for name, attributes, line in _html(body, first)
        if name == "img" and "src" in attributes
    )
    return sorted(found, key=lambda image: image.line)


def fences(body: str, first: int = 1) -> list[Fence]:
    """List the fenced code blocks; the language is the first word after the fence, lower case."""
    return [
        Fence((token.info.split() or [""])[0].lower(), token.content, _line(token, first))
        for token in _tokens(body)
        if token.type == "fence"
    ]


def claims(body: str, first: int = 1) -> list[Claim]:
    """List the claim markers outside code, each with the statement on its line."""
    code = code_lines(body)
    found: list[Claim] = []
    for number, line in enumerate(body.split("\n"), start=1):
        if number in code:
            continue
        ids = MARKER.findall(line)
        statement = _LEAD.sub("", MARKER.sub("", line)).strip() if ids else ""
        found.extend(Claim(claim_id, first + number - 1, statement) for claim_id in ids)
    return found


def code_lines(body: str) -> frozenset[int]:
    """Number the lines of the body, from 1, that are code, their fences included."""
    return frozenset(
        number
        for token in _tokens(body)
        if token.type in {"fence", "code_block"} and token.map is not None
        for number in range(token.map[0] + 1, token.map[1] + 1)
    )


def row_lines(body: str) -> frozenset[int]:
    """Number the lines of the body, from 1, that are rows of a table below its heading."""
    inside = False
    found = set()
    for token in _tokens(body):
        if token.type in {"tbody_open", "tbody_close"}:
            inside = token.type == "tbody_open"
        elif inside and token.type == "tr_open" and token.map is not None:
            found.add(token.map[0] + 1)
    return frozenset(found)


class _UniqueKeys(yaml.SafeLoader):
    """YAML as Hugo reads it: a key that stands twice is an error, not a choice."""


def _unique(loader: _UniqueKeys, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    seen: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | bool):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be a plain value", key_node.start_mark
            )
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} stands twice", key_node.start_mark
            )
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique)


class _Plain(yaml.SafeDumper):
    """YAML without anchors: two equal lists are two lists."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML gives it
        return True


def _marked_page(text: str, mark: str, kind: str) -> Page:
    end = re.compile(rf"^{re.escape(mark)}[ \t]*$", re.MULTILINE).search(text, len(mark) + 1)
    if end is None:
        raise FrontMatterError(f"the front matter has no closing {mark}")
    start = text.index("\n") + 1
    front = _values(text[start : end.start()], kind)
    body_at = min(end.end() + 1, len(text))
    return Page(front, kind, text[body_at:], text.count("\n", 0, body_at) + 1)


def _values(source: str, kind: str) -> dict[str, Any]:
    try:
        front = yaml.load(source, _UniqueKeys) if kind == "yaml" else tomllib.loads(source)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise FrontMatterError(error.problem or "the YAML does not parse", line) from error
    except (yaml.YAMLError, ValueError) as error:
        raise FrontMatterError(str(error).split("\n", 1)[0]) from error
    except (LookupError, AttributeError) as error:  # PyYAML, where a tag does not fit its value
        raise FrontMatterError("a value is not of the kind that its tag names") from error
    except RecursionError as error:
        raise FrontMatterError("the front matter is nested too deeply") from error
    if front is None:
        return {}
    if not isinstance(front, dict) or not all(isinstance(key, str) for key in front):
        raise FrontMatterError("the front matter is no mapping of names to values")
    return front


def _json_page(text: str) -> Page:
    try:
        front, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise FrontMatterError(str(error), getattr(error, "lineno", 1)) from error
    newline = text.find("\n", end)
    body_at = len(text) if newline < 0 else newline + 1
    return Page(dict(front), "json", text[body_at:], text.count("\n", 0, body_at) + 1)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


@lru_cache(maxsize=64)  # a page is asked many questions in a row; nobody changes the tokens
def _tokens(body: str) -> tuple[Token, ...]:
    return tuple(_parser().parse(body))


def _line(token: Token, first: int) -> int:
    return first + (token.map[0] if token.map else 0)


def _inline(body: str, first: int) -> Iterator[tuple[Token, int]]:
    for token in _tokens(body):
        if token.type == "inline":
            yield token, _line(token, first)


def _children(token: Token, line: int) -> Iterator[tuple[Token, int]]:
    for child in token.children or ():
        yield child, line
        line += child.type in {"softbreak", "hardbreak"}


def _html(body: str, first: int) -> Iterator[tuple[str, dict[str, str], int]]:
    pieces = [
        (token.content, _line(token, first))
        for token in _tokens(body)
        if token.type == "html_block"
    ]
    for token, start in _inline(body, first):
        pieces.extend(
            (child.content, line)
            for child, line in _children(token, start)
            if child.type == "html_inline"
        )
    for content, line in pieces:
        for tag in _TAG.finditer(content):
            attributes = {
                match.group(1).lower(): match.group(2) or match.group(3) or match.group(4) or ""
                for match in _ATTRIBUTE.finditer(tag.group(2))
            }
            yield tag.group(1).lower(), attributes, line + content.count("\n", 0, tag.start())


def _plain(token: Token) -> str:
    return "".join(
        "\n" if child.type == "softbreak" else child.content
        for child in token.children or ()
        if child.type in {"text", "code_inline", "image", "softbreak"}
    ).strip()


def _anchor(text: str, taken: set[str]) -> str:
    # Goldmark looks at the last line only, after it has made dashes of two and three hyphens.
    line = _DASHES.sub("", text.rsplit("\n", 1)[-1])
    kept = (
        "-" if sign in " -" else sign.lower() if sign == "_" or sign.isalpha() else sign
        for sign in line.strip()
        if sign in " -_" or sign.isalpha() or sign.isdecimal()
    )
    name = "".join(kept) or "heading"
    anchor = name
    count = 0
    while anchor in taken:
        count += 1
        anchor = f"{name}-{count}"
    return anchor

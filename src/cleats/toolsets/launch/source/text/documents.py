"""Documents as a list of blocks: headings, paragraphs, list items and code, each with its lines.

Markdown is read by a parser; reStructuredText, which would need Sphinx, is read well enough here.
Text keeps only code markup: links become their text, images and HTML are dropped. Code has a normal
form and an id; that of a session is its input.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.text.english import replace_emoticons

CELL_SEPARATOR: Final = " | "
"""Between the cells of a row."""

_NOTE_LABEL_PATTERN: Final = re.compile(r"\[!(note|tip|important|warning|caution)\]\s*", re.IGNORECASE)
_HTML_COMMENT_PATTERN: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_INTRA_DOC_LINK_PATTERN: Final = re.compile(r"\[(`[^`]+`)\](?![(\[])")
"""A link of Rust documentation to a name, which only its own tools resolve."""

_RULE_LINE_PATTERN: Final = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}\s*$")
_LIST_ITEM_PATTERN: Final = re.compile(r"(\s*)(?:[-*+•]|\d+[.)]|#\.)\s+(?=\S)")
_DIRECTIVE_PATTERN: Final = re.compile(r"\s*\.\. +([\w-]+)::\s*(.*)$")
CODE_DIRECTIVES: Final = frozenset({"code", "code-block", "code-cell", "sourcecode", "doctest", "testcode", "ipython"})
NOTE_KINDS: Final = frozenset({"note", "warning", "important", "caution", "tip", "hint", "danger", "attention"})
_ROLE_PATTERN: Final = re.compile(
    r":(?:[\w:.+-]+:|(?:class|meth|func|mod|attr|exc|data|obj))`"
    r"~?!?(?:\.(?=[A-Z]))?([^`<]+?)(?:\s*<[^>]*>)?`"
)
"""The colon after the name of a role is often forgotten; a dot before a class is a search marker of Sphinx."""
_NUMBERED_ROLE_PATTERN: Final = re.compile(r":(rfc|pep):`(\d+)[^`<]*`", re.IGNORECASE)
_DOCUMENT_ROLE_PATTERN: Final = re.compile(r":doc:`(?:[^`<>]*/)?([\w-]+)`")
_CLASS_SUBSTITUTION_PATTERN: Final = re.compile(r"(?<=[a-z] )\|([A-Z]\w*[a-z]\w*)\|(?!_)")
_LINK_PATTERN: Final = re.compile(r"`([^`<]+?)\s*<[^>]*>`__?")
_LITERAL_PATTERN: Final = re.compile(r"``(.+?)``")
_EMPHASIS_PATTERN: Final = re.compile(r"\*\*(.+?)\*\*|(?<![\w*])\*([^*\s][^*]*)\*")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document: heading, paragraph, item, continuation (of an item), row (of a table) or code."""

    kind: str
    text: str
    path: str
    line: int
    end: int
    section: tuple[str, ...] = ()
    """The headings above it, outermost first."""
    lead: str = ""
    """The strong words at its beginning, the kind of a marked note, or `header` for the first row of a table."""
    language: str = ""
    """The language that a code block declares."""
    only_link: bool = False
    html: bool = False
    quoted: bool = False
    depth: int = 0
    """The number of lists that it is nested in."""


def read_blocks(tree: CheckoutTree, path: str) -> list[Block]:
    """Return the blocks of a document, in order; none for one that cannot be read."""
    text = tree.read_text(path)
    if text is None:
        return []
    if PurePosixPath(path).suffix.lower() == ".rst":
        blocks = _RstParser(text.split("\n"), path).parse()
    else:
        blocks = _parse_markdown(text, path)
    return [
        replace(block, text=replace_emoticons(block.text)) if block.kind != "code" and ")" in block.text else block
        for block in blocks
    ]


def _parse_markdown(text: str, path: str) -> list[Block]:
    front_matter = re.match(r"---\n.*?\n---\n", text, re.DOTALL)
    skipped_lines = front_matter[0].count("\n") if front_matter else 0
    blocks: list[Block] = []
    headings: list[tuple[int, str]] = []  # the level and text of those above
    list_depth = quote_depth = item_block_count = 0
    row_location: tuple[str, int, int, tuple[str, ...]] = (path, 1, 1, ())
    cells: list[str] = []
    tokens = _markdown_parser().parse(text[front_matter.end() :] if front_matter else text)
    for number, token in enumerate(tokens):
        list_depth += token.nesting * token.type.startswith(("bullet_list_", "ordered_list_"))
        quote_depth += token.nesting * token.type.startswith("blockquote_")
        item_block_count = 0 if token.type == "list_item_open" else item_block_count
        start, end = token.map or (0, 0)
        section = tuple(heading for _, heading in headings)
        location = (path, skipped_lines + start + 1, skipped_lines + max(start + 1, end), section)
        if token.type == "tr_open":
            cells, row_location = [], location
        elif token.type == "tr_close":
            lead = "header" if tokens[number - 1].type == "th_close" else ""
            blocks.append(Block("row", CELL_SEPARATOR.join(cells), *row_location, lead))
        elif token.type == "inline" and tokens[number - 1].type in ("th_open", "td_open"):
            cells.append(_flatten_inline(token)[0])
        elif token.type == "inline":
            above = tokens[number - 1]
            words, lead, only_link, html = _flatten_inline(token)
            kind = "heading" if above.type == "heading_open" else "paragraph"
            if quote_depth and (note := _NOTE_LABEL_PATTERN.match(words)):
                words, lead = words[note.end() :], note[1].capitalize()
            if kind == "paragraph" and list_depth:
                kind = "continuation" if item_block_count else "item"
                item_block_count += 1
            block = Block(kind, words, *location, lead, only_link=only_link, html=html, depth=list_depth)
            if kind == "heading":
                level = int(above.tag[1:])
                headings = [heading for heading in headings if heading[0] < level]
                block = replace(block, section=tuple(heading for _, heading in headings))
                headings.append((level, words))
            blocks.append(replace(block, quoted=bool(quote_depth)))
        elif token.type in ("fence", "code_block") and (language := _parse_fence_info(token.info)) is not None:
            blocks.append(Block("code", token.content, *location, language=language, quoted=bool(quote_depth)))
    return blocks


def _parse_fence_info(info: str) -> str | None:
    """Return the language in the info string of a fence; None for a directive without code."""
    words = info.split()
    if not words or not words[0].startswith("{"):
        return words[0] if words else ""
    if words[0].strip("{}") in CODE_DIRECTIVES:
        return words[1] if len(words) > 1 else ""
    return None


def _flatten_inline(token: Token) -> tuple[str, str, bool, bool]:
    """Return the text, its leading strong words, and flags: it is only a link, it has HTML."""
    parts: list[str] = []
    lead: list[str] = []
    outside: list[str] = []
    links = strong = 0
    html = False
    for child in token.children or ():
        texts = {"text": child.content, "code_inline": f"`{child.content}`", "softbreak": " ", "hardbreak": " "}
        fragment = texts.get(child.type, "")
        html = html or (child.type == "html_inline" and not _HTML_COMMENT_PATTERN.fullmatch(child.content))
        links += child.nesting * child.type.startswith("link_")
        strong += child.nesting * child.type.startswith("strong_")
        if fragment and strong and not "".join(parts)[len("".join(lead)) :].strip():
            lead.append(fragment)
        if fragment and not links:
            outside.append(fragment)
        parts.append(fragment)
    text = _INTRA_DOC_LINK_PATTERN.sub(r"\1", " ".join("".join(parts).split()))
    only_link = bool(text) and not re.sub(r"[\W_]+", "", "".join(outside))
    return text, " ".join("".join(lead).split()), only_link, html


@cache
def _markdown_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


@dataclass(slots=True)
class _RstParser:
    lines: list[str]
    path: str
    position: int = 0
    heading_marks: list[str] = field(default_factory=list)
    section: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def parse(self) -> list[Block]:
        while self.position < len(self.lines):
            if not self.lines[self.position].strip():
                self.position += 1
            elif not (self._parse_heading() or self._parse_directive() or self._parse_doctest() or self._parse_item()):
                self._parse_paragraph()
        return self.blocks

    def _parse_heading(self) -> bool:
        has_overline = bool(_RULE_LINE_PATTERN.match(self.lines[self.position]))
        title = self.position + has_overline
        under = title + 1
        has_title = under < len(self.lines) and bool(self.lines[title].strip())
        rule = _RULE_LINE_PATTERN.match(self.lines[under]) if has_title else None
        if not rule or len(self.lines[under].rstrip()) < len(self.lines[title].strip()):
            self.position += has_overline
            return has_overline
        mark = rule[1] * 2 if has_overline else rule[1]
        level = self.heading_marks.index(mark) if mark in self.heading_marks else len(self.heading_marks)
        self.heading_marks = [*self.heading_marks[:level], mark, *self.heading_marks[level + 1 :]]
        self.section = self.section[:level]
        text = strip_inline_markup(self.lines[title].strip())
        self._add_block("heading", text, title + 1, under + 1)
        self.section.append(text)
        self.position = under + 1
        return True

    def _parse_directive(self) -> bool:
        line = self.lines[self.position]
        if not line.lstrip().startswith(".. ") and line.strip() != "..":
            return False
        directive = _DIRECTIVE_PATTERN.match(line)
        start = self.position
        self.position += 1
        body = self._read_indented(_measure_indent(line))
        if directive and directive[1] in CODE_DIRECTIVES:
            code_lines = [entry for entry in body if not re.match(r"\s*:[\w-]+:", entry[1])]
            self._add_code(code_lines, directive[2].strip() or "python")
        elif directive and directive[1] in NOTE_KINDS:
            text = " ".join([directive[2], *(entry[1].strip() for entry in body)])
            place = (start + 1, self.position)
            self._add_block("paragraph", strip_inline_markup(text), *place, lead=directive[1].capitalize())
        return True

    def _parse_doctest(self) -> bool:
        if not self.lines[self.position].lstrip().startswith(">>> "):
            return False
        start = self.position
        self._skip_to_blank()
        self._add_code(list(enumerate(self.lines[start : self.position], start)), "pycon")
        return True

    def _parse_item(self) -> bool:
        mark = _LIST_ITEM_PATTERN.match(self.lines[self.position])
        if not mark:
            return False
        start, indent = self.position, len(mark[1])
        self.position += 1
        for line in self.lines[self.position :]:
            if not line.strip() or _measure_indent(line) <= indent or _LIST_ITEM_PATTERN.match(line):
                break
            self.position += 1
        words = [self.lines[start][mark.end() :], *self.lines[start + 1 : self.position]]
        raw = " ".join(word.strip() for word in words)
        strong = re.match(r"\*\*(.+?)\*\*", raw)
        self._add_block(
            *("item", strip_inline_markup(raw), start + 1, self.position),
            lead=strip_inline_markup(strong[1]) if strong else "",
            only_link=bool(re.fullmatch(r"`[^`]+`__?[.,]?|:\w+:`[^`]+`", raw)),
            depth=1 + (indent > 0),
        )
        return True

    def _parse_paragraph(self) -> None:
        start = self.position
        indent = _measure_indent(self.lines[start])
        self._skip_to_blank()
        raw = " ".join(line.strip() for line in self.lines[start : self.position])
        literal = raw.endswith("::")
        text = strip_inline_markup(raw[:-1] if literal else raw)
        if text.strip(":") and not indent:
            self._add_block("paragraph", text, start + 1, self.position)
        if literal:
            self._add_code(self._read_indented(indent), "")

    def _skip_to_blank(self) -> None:
        while self.position < len(self.lines) and self.lines[self.position].strip():
            self.position += 1

    def _read_indented(self, indent: int) -> list[tuple[int, str]]:
        start = self.position
        for line in self.lines[start:]:
            if line.strip() and _measure_indent(line) <= indent:
                break
            self.position += 1
        return list(enumerate(self.lines[start : self.position], start))

    def _add_code(self, body: list[tuple[int, str]], language: str) -> None:
        filled = [number for number, (_, line) in enumerate(body) if line.strip()]
        if not filled:
            return
        body = body[filled[0] : filled[-1] + 1]
        indent = min(_measure_indent(line) for _, line in body if line.strip())
        code = "\n".join(line[indent:] for _, line in body) + "\n"
        self._add_block("code", code, body[0][0] + 1, body[-1][0] + 1, language=language)

    def _add_block(self, kind: str, text: str, line: int, end: int, **marks: Any) -> None:
        self.blocks.append(Block(kind, text, self.path, line, end, tuple(self.section), **marks))


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def strip_inline_markup(text: str) -> str:
    """Strip inline markup, but keep code in single backticks."""
    text = _CLASS_SUBSTITUTION_PATTERN.sub(r"`\1`", text)  # a class inside a sentence; others are badges and versions
    text = re.sub(r"\|[^|\s][^|]*\|_?", "", text)
    text = _NUMBERED_ROLE_PATTERN.sub(lambda match: f"{match[1].upper()} {match[2]}", text)
    text = _DOCUMENT_ROLE_PATTERN.sub(r"\1", text)
    text = _ROLE_PATTERN.sub(r"`\1`", text)
    text = _LINK_PATTERN.sub(r"\1", text)
    text = _LITERAL_PATTERN.sub(r"`\1`", text)
    text = re.sub(r"`([^`]+)`__?(?!\w)", r"\1", text) if re.search(r"`_", text) else text
    text = _EMPHASIS_PATTERN.sub(lambda match: match[1] or match[2], text)
    return " ".join(re.sub(r"(?<=\w)_(?=[\s.,;:)]|$)", "", text).split())

"""A block of a document."""

import re
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document: heading, paragraph, item, continuation (of an item), cell or code."""

    kind: str
    text: str
    path: str
    line: int
    end: int
    section: tuple[str, ...] = ()
    """The headings above it, outermost first."""
    lead: str = ""
    """The strong words at its beginning."""
    language: str = ""
    """The language that a code block declares."""
    only_link: bool = False
    html: bool = False
    quoted: bool = False
    depth: int = 0
    """The number of lists that it is nested in."""
    fenced: bool = True
    """True if code has explicit fences; indented text only looks like code."""


_RULE_LINE_PATTERN: Final = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}\s*$")
_LIST_ITEM_PATTERN: Final = re.compile(r"(\s*)(?:[-*+•]|\d+[.)]|#\.)\s+(?=\S)")
_DIRECTIVE_PATTERN: Final = re.compile(r"\s*\.\. +([\w-]+)::\s*(.*)$")
CODE_DIRECTIVES: Final = frozenset({"code", "code-block", "code-cell", "sourcecode", "doctest", "testcode", "ipython"})
_ROLE_PATTERN: Final = re.compile(r":[\w:.+-]+:`~?!?(?:\.(?=[A-Z]))?([^`<]+?)(?:\s*<[^>]*>)?`")
"""A dot before a class name is a search marker of Sphinx; before a file name it belongs to it."""
_NUMBERED_ROLE_PATTERN: Final = re.compile(r":(rfc|pep):`(\d+)[^`<]*`", re.IGNORECASE)
_CLASS_SUBSTITUTION_PATTERN: Final = re.compile(r"(?<=[a-z] )\|([A-Z]\w*[a-z]\w*)\|(?!_)")
_LINK_PATTERN: Final = re.compile(r"`([^`<]+?)\s*<[^>]*>`__?")
_LITERAL_PATTERN: Final = re.compile(r"``(.+?)``")
_EMPHASIS_PATTERN: Final = re.compile(r"\*\*(.+?)\*\*|(?<![\w*])\*([^*\s][^*]*)\*")


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
            line = self.lines[self.position]
            if not line.strip():
                self.position += 1
            elif self._parse_heading() or self._parse_directive() or self._parse_doctest() or self._parse_item():
                continue
            else:
                self._parse_paragraph()
        return self.blocks

    def _parse_heading(self) -> bool:
        has_overline = bool(_RULE_LINE_PATTERN.match(self.lines[self.position]))
        title = self.position + has_overline
        under = title + 1
        if under >= len(self.lines) or not self.lines[title].strip():
            return bool(has_overline and self._skip_lines(1))
        rule = _RULE_LINE_PATTERN.match(self.lines[under])
        if not rule or len(self.lines[under].rstrip()) < len(self.lines[title].strip()):
            return bool(has_overline and self._skip_lines(1))
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
        indent = len(line) - len(line.lstrip())
        self.position += 1
        body = self._read_indented(indent)
        if directive and directive[1] in CODE_DIRECTIVES:
            code_lines = [entry for entry in body if not re.match(r"\s*:[\w-]+:", entry[1])]
            self._add_code(code_lines, directive[2].strip() or "python")
        elif directive and directive[1] in ("note", "warning", "important", "caution"):
            text = " ".join([directive[2], *(entry[1].strip() for entry in body)])
            self._add_block("paragraph", strip_inline_markup(text), start + 1, self.position)
        return True

    def _parse_doctest(self) -> bool:
        if not self.lines[self.position].lstrip().startswith(">>> "):
            return False
        start = self.position
        while self.position < len(self.lines) and self.lines[self.position].strip():
            self.position += 1
        self._add_code([(n, self.lines[n]) for n in range(start, self.position)], "pycon")
        return True

    def _parse_item(self) -> bool:
        mark = _LIST_ITEM_PATTERN.match(self.lines[self.position])
        if not mark:
            return False
        start, indent = self.position, len(mark[1])
        words = [self.lines[self.position][mark.end() :]]
        self.position += 1
        while self.position < len(self.lines):
            line = self.lines[self.position]
            if not line.strip() or len(line) - len(line.lstrip()) <= indent or _LIST_ITEM_PATTERN.match(line):
                break
            words.append(line)
            self.position += 1
        raw = " ".join(word.strip() for word in words)
        strong = re.match(r"\*\*(.+?)\*\*", raw)
        only_link = bool(re.fullmatch(r"`[^`]+`__?[.,]?|:\w+:`[^`]+`", raw))
        self.blocks.append(
            Block(
                "item",
                strip_inline_markup(raw),
                self.path,
                start + 1,
                self.position,
                tuple(self.section),
                lead=strip_inline_markup(strong[1]) if strong else "",
                only_link=only_link,
                depth=1 + (indent > 0),
            )
        )
        return True

    def _parse_paragraph(self) -> None:
        start = self.position
        indent = len(self.lines[start]) - len(self.lines[start].lstrip())
        while self.position < len(self.lines) and self.lines[self.position].strip():
            self.position += 1
        raw = " ".join(line.strip() for line in self.lines[start : self.position])
        literal = raw.endswith("::")
        text = strip_inline_markup(raw[:-1] if literal else raw)
        if text.strip(":") and not indent:
            self._add_block("paragraph", text, start + 1, self.position)
        if literal:
            self._add_code(self._read_indented(indent), "")

    def _read_indented(self, indent: int) -> list[tuple[int, str]]:
        """Return the indented lines that belong to the preceding element."""
        body: list[tuple[int, str]] = []
        while self.position < len(self.lines):
            line = self.lines[self.position]
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            body.append((self.position, line))
            self.position += 1
        return body

    def _add_code(self, body: list[tuple[int, str]], language: str) -> None:
        while body and not body[0][1].strip():
            body.pop(0)
        while body and not body[-1][1].strip():
            body.pop()
        if not body:
            return
        indent = min(len(line) - len(line.lstrip()) for _, line in body if line.strip())
        code = "\n".join(line[indent:] for _, line in body) + "\n"
        location = (self.path, body[0][0] + 1, body[-1][0] + 1, tuple(self.section))
        self.blocks.append(Block("code", code, *location, language=language))

    def _add_block(self, kind: str, text: str, line: int, end: int) -> None:
        self.blocks.append(Block(kind, text, self.path, line, end, tuple(self.section)))

    def _skip_lines(self, lines: int) -> bool:
        self.position += lines
        return True


def parse_rst(text: str, path: str) -> list[Block]:
    """Return the blocks of a document."""
    return _RstParser(text.split("\n"), path).parse()


def strip_inline_markup(text: str) -> str:
    """Strip inline markup, but keep code in single backticks."""
    text = _CLASS_SUBSTITUTION_PATTERN.sub(r"`\1`", text)  # a class inside a sentence; others are badges and versions
    text = re.sub(r"\|[^|\s][^|]*\|_?", "", text)
    text = _NUMBERED_ROLE_PATTERN.sub(lambda match: f"{match[1].upper()} {match[2]}", text)
    text = _ROLE_PATTERN.sub(r"`\1`", text)
    text = _LINK_PATTERN.sub(r"\1", text)
    text = _LITERAL_PATTERN.sub(r"`\1`", text)
    text = re.sub(r"`([^`]+)`__?(?!\w)", r"\1", text) if re.search(r"`_", text) else text
    text = _EMPHASIS_PATTERN.sub(lambda match: match[1] or match[2], text)
    return " ".join(re.sub(r"(?<=\w)_(?=[\s.,;:)]|$)", "", text).split())

"""reStructuredText, as far as readmes and guides use it: headings, paragraphs, lists and code."""

import re
from dataclasses import dataclass, field
from typing import Final

from cleats.toolsets.launch.source.blocks import Block

_RULE: Final = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}\s*$")
_ITEM: Final = re.compile(r"(\s*)(?:[-*+•]|\d+[.)]|#\.)\s+(?=\S)")
_DIRECTIVE: Final = re.compile(r"\s*\.\. +([\w-]+)::\s*(.*)$")
CODE: Final = frozenset(
    {"code", "code-block", "code-cell", "sourcecode", "doctest", "testcode", "ipython"}
)
_ROLE: Final = re.compile(r":[\w:.+-]+:`~?!?(?:\.(?=[A-Z]))?([^`<]+?)(?:\s*<[^>]*>)?`")
"""A dot before a class says to look for it everywhere; before a file it is part of the name."""
_NUMBERED: Final = re.compile(r":(rfc|pep):`(\d+)[^`<]*`", re.IGNORECASE)
_CLASS: Final = re.compile(r"(?<=[a-z] )\|([A-Z]\w*[a-z]\w*)\|(?!_)")
_LINK: Final = re.compile(r"`([^`<]+?)\s*<[^>]*>`__?")
_LITERAL: Final = re.compile(r"``(.+?)``")
_STRONG: Final = re.compile(r"\*\*(.+?)\*\*|(?<![\w*])\*([^*\s][^*]*)\*")


@dataclass(slots=True)
class _Reader:
    lines: list[str]
    path: str
    at: int = 0
    marks: list[str] = field(default_factory=list)
    section: list[str] = field(default_factory=list)
    found: list[Block] = field(default_factory=list)

    def read(self) -> list[Block]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip():
                self.at += 1
            elif self._heading() or self._directive() or self._doctest() or self._item():
                continue
            else:
                self._paragraph()
        return self.found

    def _heading(self) -> bool:
        over = bool(_RULE.match(self.lines[self.at]))
        title = self.at + over
        under = title + 1
        if under >= len(self.lines) or not self.lines[title].strip():
            return bool(over and self._skip(1))
        rule = _RULE.match(self.lines[under])
        if not rule or len(self.lines[under].rstrip()) < len(self.lines[title].strip()):
            return bool(over and self._skip(1))
        mark = rule[1] * 2 if over else rule[1]
        level = self.marks.index(mark) if mark in self.marks else len(self.marks)
        self.marks = [*self.marks[:level], mark, *self.marks[level + 1 :]]
        self.section = self.section[:level]
        text = plain(self.lines[title].strip())
        self._add("heading", text, title + 1, under + 1)
        self.section.append(text)
        self.at = under + 1
        return True

    def _directive(self) -> bool:
        line = self.lines[self.at]
        if not line.lstrip().startswith(".. ") and line.strip() != "..":
            return False
        directive = _DIRECTIVE.match(line)
        start = self.at
        indent = len(line) - len(line.lstrip())
        self.at += 1
        body = self._indented(indent)
        if directive and directive[1] in CODE:
            kept = [each for each in body if not re.match(r"\s*:[\w-]+:", each[1])]
            self._code(kept, directive[2].strip() or "python")
        elif directive and directive[1] in ("note", "warning", "important", "caution"):
            text = " ".join([directive[2], *(each[1].strip() for each in body)])
            self._add("paragraph", plain(text), start + 1, self.at)
        return True

    def _doctest(self) -> bool:
        if not self.lines[self.at].lstrip().startswith(">>> "):
            return False
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at].strip():
            self.at += 1
        self._code([(n, self.lines[n]) for n in range(start, self.at)], "pycon")
        return True

    def _item(self) -> bool:
        mark = _ITEM.match(self.lines[self.at])
        if not mark:
            return False
        start, indent = self.at, len(mark[1])
        words = [self.lines[self.at][mark.end() :]]
        self.at += 1
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip() or len(line) - len(line.lstrip()) <= indent or _ITEM.match(line):
                break
            words.append(line)
            self.at += 1
        raw = " ".join(word.strip() for word in words)
        strong = re.match(r"\*\*(.+?)\*\*", raw)
        only_link = bool(re.fullmatch(r"`[^`]+`__?[.,]?|:\w+:`[^`]+`", raw))
        self.found.append(
            Block(
                "item",
                plain(raw),
                self.path,
                start + 1,
                self.at,
                tuple(self.section),
                lead=plain(strong[1]) if strong else "",
                only_link=only_link,
                depth=1 + (indent > 0),
            )
        )
        return True

    def _paragraph(self) -> None:
        start = self.at
        indent = len(self.lines[start]) - len(self.lines[start].lstrip())
        while self.at < len(self.lines) and self.lines[self.at].strip():
            self.at += 1
        raw = " ".join(line.strip() for line in self.lines[start : self.at])
        literal = raw.endswith("::")
        text = plain(raw[:-1] if literal else raw)
        if text.strip(":") and not indent:
            self._add("paragraph", text, start + 1, self.at)
        if literal:
            self._code(self._indented(indent), "")

    def _indented(self, indent: int) -> list[tuple[int, str]]:
        """The lines that belong to what stands before them."""
        body: list[tuple[int, str]] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            body.append((self.at, line))
            self.at += 1
        return body

    def _code(self, body: list[tuple[int, str]], language: str) -> None:
        while body and not body[0][1].strip():
            body.pop(0)
        while body and not body[-1][1].strip():
            body.pop()
        if not body:
            return
        indent = min(len(line) - len(line.lstrip()) for _, line in body if line.strip())
        code = "\n".join(line[indent:] for _, line in body) + "\n"
        place = (self.path, body[0][0] + 1, body[-1][0] + 1, tuple(self.section))
        self.found.append(Block("code", code, *place, language=language))

    def _add(self, kind: str, text: str, line: int, end: int) -> None:
        self.found.append(Block(kind, text, self.path, line, end, tuple(self.section)))

    def _skip(self, lines: int) -> bool:
        self.at += lines
        return True


def blocks(text: str, path: str) -> list[Block]:
    """The blocks of a document."""
    return _Reader(text.split("\n"), path).read()


def plain(text: str) -> str:
    """Inline marks taken away, except that code stays in single backticks."""
    text = _CLASS.sub(r"`\1`", text)  # in a sentence a class; others are badges and versions
    text = re.sub(r"\|[^|\s][^|]*\|_?", "", text)
    text = _NUMBERED.sub(lambda match: f"{match[1].upper()} {match[2]}", text)
    text = _ROLE.sub(r"`\1`", text)
    text = _LINK.sub(r"\1", text)
    text = _LITERAL.sub(r"`\1`", text)
    text = re.sub(r"`([^`]+)`__?(?!\w)", r"\1", text) if re.search(r"`_", text) else text
    text = _STRONG.sub(lambda match: match[1] or match[2], text)
    return " ".join(re.sub(r"(?<=\w)_(?=[\s.,;:)]|$)", "", text).split())

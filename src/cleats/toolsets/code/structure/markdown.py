"""Markdown: a section for each heading, its path of headings as signature, links as uses."""

import re
from dataclasses import dataclass, field

from cleats.toolsets.code.structure.headings import Heading, cut_sections
from cleats.toolsets.code.structure.outline import Outline
from cleats.toolsets.code.structure.yaml import read_fields

_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t\r]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\r?$")
_FENCE = re.compile(
    r" {0,3}(?:(?:[-*+]|\d+[.)])[ \t]++)*+[ \t]*+(`{3,}|~{3,})[ \t]*+\{?\.?([\w+#.-]*)"
)
_NOT_TEXT = re.compile(r" {0,3}(?:[-*+>|]|\d+[.)][ \t]|#{1,6}[ \t]|<)| {4}|\t")
_LINK = re.compile(r"\]\(\s*<?([^\s()<>]{1,300})|^ {0,3}\[[^\]\n]{1,200}\]:[ \t]*(\S{1,300})")
_IMPORT = re.compile(r"(?:import|export)\s[^\n]{0,200}?\bfrom\s+[\"']([^\"']+)[\"']")
_LINKED = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_IDENTIFIER = re.compile(r"\s*\{#[^{}]*\}\s*$")
_MOST_UNDERLINED = 3
"""Lines a heading that is underlined may have."""


def read(outline: Outline) -> None:
    Reading(outline).run()


@dataclass(slots=True)
class Reading:
    """One pass over a document."""

    outline: Outline
    fence: str = ""
    comment: bool = False
    text_since: int | None = None
    """Where the paragraph began that an underline would turn into a heading."""
    sections: list[Heading] = field(default_factory=list)

    def run(self) -> None:
        lines = self.outline.source.lines
        for at in range(self._front_matter(), len(lines)):
            self._line(at, lines[at])
        cut_sections(self.outline, self.sections, _said)

    def _front_matter(self) -> int:
        lines = self.outline.source.lines
        if lines[0].strip() not in ("---", "+++"):
            return 0
        ends = (lines[0].strip(), "...")
        close = next((at for at in range(1, len(lines)) if lines[at].strip() in ends), None)
        if close is None:
            return 0
        if lines[0].strip() == "---":
            read_fields(self.outline, 1, close)
        return close + 1

    def _line(self, at: int, line: str) -> None:
        if self.fence or _FENCE.match(line):
            self.text_since = None
            self._in_fence(at, line)
            return
        if self._in_comment(line):
            self.text_since = None
            return
        self._links(at, line)
        if heading := _HEADING.match(line):
            self._begin(at, at + 1, len(heading[1]), _unclosed(line[heading.end() :]))
            self.text_since = None
        elif (under := _UNDERLINE.match(line)) and self.text_since is not None:
            since, self.text_since = self.text_since, None
            if at - since <= _MOST_UNDERLINED:
                text = " ".join(self.outline.source.lines[since:at])
                self._begin(since, at + 1, 1 if under[1][0] == "=" else 2, text)
        elif not line.strip():
            self.text_since = None
        elif self.text_since is None and not _NOT_TEXT.match(line):
            self.text_since = at

    def _in_fence(self, at: int, line: str) -> None:
        if not self.fence:
            opened = _FENCE.match(line)
            if opened is not None:
                self.fence = opened[1]
                if opened[2]:
                    self.outline.field(at, "code", opened[2].lower())
            return
        text = line.strip()
        if text.startswith(self.fence) and not text.strip(self.fence[0]):
            self.fence = ""

    def _in_comment(self, line: str) -> bool:
        inside = self.comment
        if line.lstrip().startswith("<!--"):
            inside = self.comment = True
        if inside and "-->" in line:
            self.comment = False
        return inside

    def _links(self, at: int, line: str) -> None:
        if "](" in line or "]:" in line:
            for link in _LINK.finditer(line):
                self.outline.say(at, "uses", link[1] or link[2])
        elif self.outline.source.path.endswith(".mdx") and (found := _IMPORT.match(line)):
            self.outline.imported(found[1])

    def _begin(self, start: int, body: int, level: int, text: str) -> None:
        self.sections.append((start, body, level, _plain(text) or self.outline.source.stem))


def _unclosed(text: str) -> str:
    """The text of a heading without the marks that may close it."""
    bare = text.strip()
    shorter = bare.rstrip("#")
    return shorter.strip() if not shorter or shorter[-1].isspace() else bare


def _said(text: str) -> str:
    return "" if text.startswith(("```", "~~~", "<!--", "|")) else _plain(text)


def _plain(text: str) -> str:
    """A heading or a paragraph without its marks."""
    return _LINKED.sub(r"\1", _IDENTIFIER.sub("", text)).replace("`", "").replace("**", "").strip()

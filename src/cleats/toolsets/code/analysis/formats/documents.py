"""Documents with headings in a simple line format: AsciiDoc, Org, TeX, reStructuredText."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from cleats.toolsets.code.analysis.formats.data import read_fields
from cleats.toolsets.code.analysis.formats.outline import Outline, join_first_paragraph

Heading = tuple[int, int, int, str]
"""Line, first line of the body, level, text."""

_ASCIIDOC_HEADING_PATTERN = re.compile(r"(={1,6})[ \t]+(\S.{0,300})")
_ORG_HEADING_PATTERN = re.compile(r"(\*{1,9})[ \t]+(\S.{0,300})")
_TEX_HEADING_PATTERN = re.compile(
    r"\s{0,20}\\(part|chapter|section|subsection|subsubsection)\*?(?:\[[^\]]{0,200}\])?\{([^}]{0,300})"
)
_TEX_LEVELS: Final = ("part", "chapter", "section", "subsection", "subsubsection")
_DELIMITER_PATTERN = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|/{4,}|\+{4,}|`{3,})\s*$")
_ADORNMENT_PATTERN = re.compile(r"([!-/:-@\[-`{-~])\1+\s*$")
_ROLE_PATTERN = re.compile(r":(?:doc|ref|class|func|meth|mod|attr|exc|data|obj|term|file):`([^`\n]{1,200})`")
_LINK_TARGET_PATTERN = re.compile(r"<([^<>`\s]{1,300})>`_|^\.\. _[^:\n]{1,200}: (\S{1,300})")
_DIRECTIVE_PATTERN = re.compile(r"\s{0,40}\.\. (include|literalinclude|code-block|code|sourcecode):: (\S{1,200})")


def read_headings(outline: Outline, lang: str) -> None:
    headings = _FINDERS_BY_LANGUAGE[lang](outline.source.lines)
    if lang == "rst":
        _collect_rst_mentions(outline)
    cut_sections(outline, headings)


def cut_sections(outline: Outline, headings: Sequence[Heading], strip_markup: Callable[[str], str] = str) -> None:
    """Cut a document at its headings; the signature of a section is its path of headings.

    `strip_markup` removes the markup from a paragraph.
    """
    ancestors: list[tuple[int, str]] = []
    lines = outline.source.lines
    ends = [*(heading[0] for heading in headings[1:]), len(lines)]
    for (start, body, level, text), next_start in zip(headings, ends, strict=False):
        ancestors = [(depth, title) for depth, title in ancestors if depth < level]
        ancestors.append((level, text))
        path = " > ".join(title for _, title in ancestors)
        outline.cut(start, "section", text, strip_markup(join_first_paragraph(lines, body, next_start - 1)), path)


def _find_asciidoc_headings(lines: list[str]) -> list[Heading]:
    headings: list[Heading] = []
    open_delimiter = ""
    for index, line in enumerate(lines):
        if (delimiter := _DELIMITER_PATTERN.match(line)) and open_delimiter in ("", delimiter[1]):
            open_delimiter = "" if open_delimiter else delimiter[1]
        elif not open_delimiter and (heading := _ASCIIDOC_HEADING_PATTERN.match(line)):
            headings.append((index, index + 1, len(heading[1]), heading[2].strip()))
    return headings


def _find_marked_headings(lines: list[str], pattern: re.Pattern[str], get_level: Callable[[str], int]) -> list[Heading]:
    return [
        (index, index + 1, get_level(heading[1]), heading[2].strip())
        for index, line in enumerate(lines)
        if (heading := pattern.match(line))
    ]


def _find_rst_headings(lines: list[str]) -> list[Heading]:
    """Find text above a line of one repeated mark; marks get levels in order of appearance."""
    headings: list[Heading] = []
    styles: list[str] = []
    next_free = 0
    for index in range(1, len(lines)):
        text = lines[index - 1]
        if index - 1 < next_free or not text.strip() or text[0].isspace() or not _is_adorned(lines, index):
            continue
        has_overline = index >= next_free + 2 and lines[index - 2].strip() == lines[index].strip()
        if not has_overline and index >= 2 and lines[index - 2].strip():
            continue
        style = lines[index][0] + ("^" if has_overline else "")
        if style not in styles:
            styles.append(style)
        headings.append((index - 1 - has_overline, index + 1, styles.index(style), text.strip()))
        next_free = index + 1
    return headings


def _is_adorned(lines: list[str], index: int) -> bool:
    text, under = lines[index - 1].strip(), lines[index].strip()
    if not _ADORNMENT_PATTERN.match(lines[index]) or _ADORNMENT_PATTERN.match(lines[index - 1]):
        return False
    return len(under) >= len(text) or len(under) >= 4


def _collect_rst_mentions(outline: Outline) -> None:
    for index, line in enumerate(outline.source.lines):
        if "`" in line or line.startswith(".. _"):
            for role in _ROLE_PATTERN.finditer(line):
                target = role[1].rsplit("<", 1)[-1].rstrip(">")
                outline.add_mention(index, "uses", target.lstrip("~!"))
            for link in _LINK_TARGET_PATTERN.finditer(line):
                outline.add_mention(index, "uses", link[1] or link[2])
        if ".. " in line and (match := _DIRECTIVE_PATTERN.match(line)):
            if match[1].endswith("include"):
                outline.add_import(match[2])
            else:
                outline.add_field(index, "code", match[2])


_FINDERS_BY_LANGUAGE: Final[Mapping[str, Callable[[list[str]], list[Heading]]]] = {
    "asciidoc": _find_asciidoc_headings,
    "org": partial(_find_marked_headings, pattern=_ORG_HEADING_PATTERN, get_level=len),
    "rst": _find_rst_headings,
    "tex": partial(_find_marked_headings, pattern=_TEX_HEADING_PATTERN, get_level=_TEX_LEVELS.index),
}


_HEADING_PATTERN = re.compile(r" {0,3}(#{1,6})(?=[ \t\r]|$)")
_UNDERLINE_PATTERN = re.compile(r" {0,3}(=+|-+)[ \t]*\r?$")
_FENCE_PATTERN = re.compile(r" {0,3}(?:(?:[-*+]|\d+[.)])[ \t]++)*+[ \t]*+(`{3,}|~{3,})[ \t]*+\{?\.?([\w+#.-]*)")
_NON_PARAGRAPH_PATTERN = re.compile(r" {0,3}(?:[-*+>|]|\d+[.)][ \t]|#{1,6}[ \t]|<)| {4}|\t")
_LINK_PATTERN = re.compile(r"\]\(\s*<?([^\s()<>]{1,300})|^ {0,3}\[[^\]\n]{1,200}\]:[ \t]*(\S{1,300})")
_IMPORT_PATTERN = re.compile(r"(?:import|export)\s[^\n]{0,200}?\bfrom\s+[\"']([^\"']+)[\"']")
_LINK_TEXT_PATTERN = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_HEADING_ID_PATTERN = re.compile(r"\s*\{#[^{}]*\}\s*$")
_MAX_HEADING_LINES = 3
"""Lines of an underlined heading."""


def read_markdown(outline: Outline) -> None:
    reader, lines = MarkdownReader(outline), outline.source.lines
    for index in range(reader.skip_front_matter(), len(lines)):
        reader.read_line(index, lines[index])
    cut_sections(
        outline,
        reader.sections,
        lambda text: "" if text.startswith(("```", "~~~", "<!--", "|")) else _strip_markup(text),
    )


class MarkdownReader(Struct):
    """One pass over a document."""

    outline: Outline
    fence: str = ""
    in_comment: bool = False
    paragraph_start: int | None = None
    """The first line of the paragraph that an underline would turn into a heading."""
    sections: list[Heading] = []

    def skip_front_matter(self) -> int:
        lines = self.outline.source.lines
        if lines[0].strip() not in ("---", "+++"):
            return 0
        closing_marks = (lines[0].strip(), "...")
        close = next((index for index in range(1, len(lines)) if lines[index].strip() in closing_marks), None)
        if close is None:
            return 0
        if lines[0].strip() == "---":
            read_fields(self.outline, 1, close)
        return close + 1

    def read_line(self, index: int, line: str) -> None:
        if self.fence or _FENCE_PATTERN.match(line):
            self.paragraph_start = None
            self._read_fence_line(index, line)
            return
        if self._is_in_comment(line):
            self.paragraph_start = None
            return
        self._collect_links(index, line)
        if heading := _HEADING_PATTERN.match(line):
            text = line[heading.end() :].strip()
            bare = text.rstrip("#")
            self._add_section(index, index + 1, len(heading[1]), text if bare and not bare[-1].isspace() else bare)
            self.paragraph_start = None
        elif (underline := _UNDERLINE_PATTERN.match(line)) and self.paragraph_start is not None:
            start, self.paragraph_start = self.paragraph_start, None
            if index - start <= _MAX_HEADING_LINES:
                text = " ".join(self.outline.source.lines[start:index])
                self._add_section(start, index + 1, 1 if underline[1][0] == "=" else 2, text)
        elif not line.strip():
            self.paragraph_start = None
        elif self.paragraph_start is None and not _NON_PARAGRAPH_PATTERN.match(line):
            self.paragraph_start = index

    def _read_fence_line(self, index: int, line: str) -> None:
        text = line.strip()
        if self.fence:
            self.fence = "" if text.startswith(self.fence) and not text.strip(self.fence[0]) else self.fence
        elif opening := _FENCE_PATTERN.match(line):
            self.fence = opening[1]
            if opening[2]:
                self.outline.add_field(index, "code", opening[2].lower())

    def _is_in_comment(self, line: str) -> bool:
        is_inside = self.in_comment
        if line.lstrip().startswith("<!--"):
            is_inside = self.in_comment = True
        if is_inside and "-->" in line:
            self.in_comment = False
        return is_inside

    def _collect_links(self, index: int, line: str) -> None:
        if "](" in line or "]:" in line:
            for link in _LINK_PATTERN.finditer(line):
                self.outline.add_mention(index, "uses", link[1] or link[2])
        elif self.outline.source.path.endswith(".mdx") and (match := _IMPORT_PATTERN.match(line)):
            self.outline.add_import(match[1])

    def _add_section(self, start: int, body: int, level: int, text: str) -> None:
        self.sections.append((start, body, level, _strip_markup(text) or self.outline.source.stem))


def _strip_markup(text: str) -> str:
    return _LINK_TEXT_PATTERN.sub(r"\1", _HEADING_ID_PATTERN.sub("", text)).replace("`", "").replace("**", "").strip()

"""Documents whose headings are lines of a simple form: AsciiDoc, Org, TeX, reStructuredText."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cleats.toolsets.code.structure.outline import Outline, paragraph

Heading = tuple[int, int, int, str]
"""Line, first line of the body, level, text."""

_ASCIIDOC = re.compile(r"(={1,6})[ \t]+(\S.{0,300})")
_ORG = re.compile(r"(\*{1,9})[ \t]+(\S.{0,300})")
_TEX = re.compile(
    r"\s{0,20}\\(part|chapter|section|subsection|subsubsection)\*?(?:\[[^\]]{0,200}\])?\{([^}]{0,300})"
)
_TEX_LEVELS: Final = ("part", "chapter", "section", "subsection", "subsubsection")
_DELIMITER = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|/{4,}|\+{4,}|`{3,})\s*$")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+\s*$")
_ROLE = re.compile(
    r":(?:doc|ref|class|func|meth|mod|attr|exc|data|obj|term|file):`([^`\n]{1,200})`"
)
_TARGET = re.compile(r"<([^<>`\s]{1,300})>`_|^\.\. _[^:\n]{1,200}: (\S{1,300})")
_DIRECTIVE = re.compile(
    r"\s{0,40}\.\. (include|literalinclude|code-block|code|sourcecode):: (\S{1,200})"
)


def read(outline: Outline, lang: str) -> None:
    found = _FINDERS[lang](outline.source.lines)
    if lang == "rst":
        _mentions(outline)
    cut_sections(outline, found)


def cut_sections(
    outline: Outline, headings: Sequence[Heading], plain: Callable[[str], str] = str
) -> None:
    """Cut a document at its headings; the signature of a section is the path to it.

    `plain` takes the marks out of a paragraph.
    """
    above: list[tuple[int, str]] = []
    lines = outline.source.lines
    ends = [*(heading[0] for heading in headings[1:]), len(lines)]
    for (start, body, level, text), after in zip(headings, ends, strict=False):
        above = [(depth, title) for depth, title in above if depth < level]
        above.append((level, text))
        path = " > ".join(title for _, title in above)
        outline.cut(start, "section", text, plain(paragraph(lines, body, after - 1)), path)


def _asciidoc(lines: list[str]) -> list[Heading]:
    found: list[Heading] = []
    inside = ""
    for at, line in enumerate(lines):
        if (fence := _DELIMITER.match(line)) and inside in ("", fence[1]):
            inside = "" if inside else fence[1]
        elif not inside and (heading := _ASCIIDOC.match(line)):
            found.append((at, at + 1, len(heading[1]), heading[2].strip()))
    return found


def _org(lines: list[str]) -> list[Heading]:
    return [
        (at, at + 1, len(heading[1]), heading[2].strip())
        for at, line in enumerate(lines)
        if (heading := _ORG.match(line))
    ]


def _tex(lines: list[str]) -> list[Heading]:
    return [
        (at, at + 1, _TEX_LEVELS.index(heading[1]), heading[2].strip())
        for at, line in enumerate(lines)
        if (heading := _TEX.match(line))
    ]


def _rst(lines: list[str]) -> list[Heading]:
    """A line of text over a line of one repeated mark; which mark is which level, order decides."""
    found: list[Heading] = []
    styles: list[str] = []
    free = 0
    for at in range(1, len(lines)):
        text = lines[at - 1]
        if at - 1 < free or not text.strip() or text[0].isspace() or not _is_adorned(lines, at):
            continue
        over = at >= free + 2 and lines[at - 2].strip() == lines[at].strip()
        if not over and at >= 2 and lines[at - 2].strip():
            continue
        style = lines[at][0] + ("^" if over else "")
        if style not in styles:
            styles.append(style)
        found.append((at - 1 - over, at + 1, styles.index(style), text.strip()))
        free = at + 1
    return found


def _is_adorned(lines: list[str], at: int) -> bool:
    text, under = lines[at - 1].strip(), lines[at].strip()
    if not _ADORNMENT.match(lines[at]) or _ADORNMENT.match(lines[at - 1]):
        return False
    return len(under) >= len(text) or len(under) >= 4


def _mentions(outline: Outline) -> None:
    for at, line in enumerate(outline.source.lines):
        if "`" in line or line.startswith(".. _"):
            for role in _ROLE.finditer(line):
                target = role[1].rsplit("<", 1)[-1].rstrip(">")
                outline.say(at, "uses", target.lstrip("~!"))
            for link in _TARGET.finditer(line):
                outline.say(at, "uses", link[1] or link[2])
        if ".. " in line and (found := _DIRECTIVE.match(line)):
            if found[1].endswith("include"):
                outline.imported(found[2])
            else:
                outline.field(at, "code", found[2])


_FINDERS: Final[Mapping[str, Callable[[list[str]], list[Heading]]]] = {
    "asciidoc": _asciidoc,
    "org": _org,
    "rst": _rst,
    "tex": _tex,
}

"""Fixes of Markdown that a careful editor would make without thinking."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from cleats.toolsets.launch.fixes.model import Answer, Case, code_lines, each_line, ended, without
from cleats.toolsets.launch.fixes.model import prose_lines as prose
from cleats.toolsets.launch.gates import markdown_lint as lint
from cleats.toolsets.launch.gates.catalogue import known, normal
from cleats.toolsets.launch.gates.consistency import only_installs

_LEVEL = re.compile(r"^( {0,3})(#{1,6})(?=\s|$)")
_IMAGE = re.compile(r"!\[\s*\]\(([^)\s]+)([^)]*)\)")
_EMPTY_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(\s*\)|<a\s+href=(?:\"\s*\"|'\s*')\s*>(.*?)</a>")


def _prose(case: Case, change: Callable[[str], str]) -> str:
    """Change each line of text, and leave code and front matter alone."""
    lines = prose(case.file)
    return each_line(case.text or "", lambda n, line: change(line) if n in lines else line)


def trailing_space(case: Case) -> Answer:
    return _prose(
        case, lambda line: line if line.endswith("  ") and line.strip() else line.rstrip()
    )


def tab(case: Case) -> Answer:
    return _prose(case, lambda line: line.expandtabs(4))


def line_ends(case: Case) -> Answer:
    return (case.text or "").replace("\r\n", "\n").replace("\r", "\n")


def byte_order(case: Case) -> Answer:
    return (case.text or "").removeprefix("\ufeff")


def final_newline(case: Case) -> Answer:
    return ended(case.text or "")


def blank_lines(case: Case) -> Answer:
    lines = (case.text or "").split("\n")
    text = prose(case.file)
    doubles = [
        number
        for number in range(2, len(lines))
        if number in text
        and number - 1 in text
        and not lines[number - 1].strip()
        and not lines[number - 2].strip()
    ]
    gone = set(doubles)
    return "\n".join(line for number, line in enumerate(lines, start=1) if number not in gone)


def heading_space(case: Case) -> Answer:
    """Put an empty line before and after each heading."""
    lines = (case.text or "").split("\n")
    text = prose(case.file)
    made: list[str] = []
    for number, line in enumerate(lines, start=1):
        is_heading = number in text and lint.HEADING.match(line)
        if is_heading and made and made[-1].strip() and number - 1 in text:
            made.append("")
        made.append(line)
        if is_heading and number < len(lines) and number + 1 in text and lines[number].strip():
            made.append("")
    return "\n".join(made)


def heading_mark(case: Case) -> Answer:
    return _prose(case, lambda line: re.sub(r"^( {0,3}#{1,6})(?=[^#\s])", r"\1 ", line))


def heading_skip(case: Case) -> Answer:
    """Raise a heading to one below the heading before it."""
    levels: dict[int, int] = {}
    above = 1
    for heading in case.file.headings:
        above = levels[heading.line] = min(heading.level, above + 1)

    def change(number: int, line: str) -> str:
        if number in levels:
            return _LEVEL.sub(lambda found: found[1] + "#" * levels[number], line)
        return line

    return each_line(case.text or "", change)


def second_title(case: Case) -> Answer:
    """Lower every heading of the body by one when one of them is a title."""
    lines = {heading.line for heading in case.file.headings if heading.level < 6}

    def change(number: int, line: str) -> str:
        return _LEVEL.sub(r"\1#\2", line) if number in lines else line

    return each_line(case.text or "", change)


def empty_heading(case: Case) -> Answer:
    return without(case.text or "", case.lines)


def fence_language(case: Case) -> Answer:
    """Name the language of the snippet, of a shell for commands, else that of plain text."""
    catalogue = known(case.site)
    names: dict[int, str] = {}
    for fence in case.file.fences:
        if fence.language:
            continue
        snippet = catalogue.get(normal(fence.code))
        other = "bash" if only_installs(fence) else "text"
        names[fence.line] = snippet["language"] if snippet else other

    def change(number: int, line: str) -> str:
        return line.rstrip() + names[number] if number in names else line

    return each_line(case.text or "", change)


def open_fence(case: Case) -> Answer:
    """Close the code block at the end of the page."""
    opened = lint.open_fence(case.file.body)
    mark = lint.FENCE.match(case.file.body.split("\n")[opened - 1]) if opened else None
    return None if mark is None else ended(case.text or "") + mark.group(1) + "\n"


def bare_url(case: Case) -> Answer:
    def change(line: str) -> str:
        for url in dict.fromkeys(lint.bare_urls(line)):
            line = re.sub(rf"(?<![<(\"'=\w`]){re.escape(url)}(?![\w/>)`])", f"<{url}>", line)
        return line

    return _prose(case, change)


def image_alt(case: Case) -> Answer:
    """Name an image after its file."""

    def name(found: re.Match[str]) -> str:
        words = re.split(r"[\s_-]+", PurePosixPath(found[1]).stem)
        return f"![{' '.join(words).strip().capitalize() or 'Image'}]({found[1]}{found[2]})"

    return _prose(case, lambda line: _IMAGE.sub(name, line))


def empty_link(case: Case) -> Answer:
    return _prose(case, lambda line: _EMPTY_LINK.sub(lambda found: found[1] or found[2], line))


def unsafe_html(case: Case) -> Answer:
    """Take the lines away; whoever wrote them did not write them for this launch."""
    return without(case.text or "", case.lines - code_lines(case.file))


def empty_page(case: Case) -> Answer:
    return case.draft


RULES = {
    "GATE_LINT_TRAILING_SPACE": trailing_space,
    "GATE_LINT_TAB": tab,
    "GATE_LINT_LINE_ENDS": line_ends,
    "GATE_LINT_BYTE_ORDER": byte_order,
    "GATE_LINT_FINAL_NEWLINE": final_newline,
    "GATE_LINT_BLANK_LINES": blank_lines,
    "GATE_LINT_HEADING_SPACE": heading_space,
    "GATE_LINT_HEADING_MARK": heading_mark,
    "GATE_LINT_HEADING_SKIP": heading_skip,
    "GATE_LINT_SECOND_TITLE": second_title,
    "GATE_LINT_EMPTY_HEADING": empty_heading,
    "GATE_LINT_FENCE_LANGUAGE": fence_language,
    "GATE_LINT_OPEN_FENCE": open_fence,
    "GATE_LINT_BARE_URL": bare_url,
    "GATE_LINT_IMAGE_ALT": image_alt,
    "GATE_LINT_EMPTY_LINK": empty_link,
    "GATE_LINT_UNSAFE_HTML": unsafe_html,
    "GATE_LINT_EMPTY_PAGE": empty_page,
}

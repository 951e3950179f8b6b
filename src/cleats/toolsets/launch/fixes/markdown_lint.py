"""Mechanical fixes for Markdown, which a careful editor would make without thinking."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from cleats.toolsets.launch.fixes.model import (
    FixCase,
    FixResult,
    edit_lines,
    end_with_newline,
    list_code_lines,
    remove_lines,
)
from cleats.toolsets.launch.fixes.model import list_prose_lines as prose
from cleats.toolsets.launch.gates import markdown_lint as lint
from cleats.toolsets.launch.gates.consistency import is_install_block
from cleats.toolsets.launch.gates.page_text import index_snippets, normalise_code

_HEADING_LEVEL_PATTERN = re.compile(r"^( {0,3})(#{1,6})(?=\s|$)")
_EMPTY_ALT_PATTERN = re.compile(r"!\[\s*\]\(([^)\s]+)([^)]*)\)")
_EMPTY_LINK_PATTERN = re.compile(r"(?<!!)\[([^\]]*)\]\(\s*\)|<a\s+href=(?:\"\s*\"|'\s*')\s*>(.*?)</a>")


def _edit_prose(case: FixCase, edit_line: Callable[[str], str]) -> str:
    """Edit each line of prose, and leave code and front matter alone."""
    lines = prose(case.file)
    return edit_lines(case.text or "", lambda number, line: edit_line(line) if number in lines else line)


def fix_trailing_spaces(case: FixCase) -> FixResult:
    return _edit_prose(case, lambda line: line if line.endswith("  ") and line.strip() else line.rstrip())


def fix_tabs(case: FixCase) -> FixResult:
    return _edit_prose(case, lambda line: line.expandtabs(4))


def fix_line_endings(case: FixCase) -> FixResult:
    return (case.text or "").replace("\r\n", "\n").replace("\r", "\n")


def fix_byte_order_mark(case: FixCase) -> FixResult:
    return (case.text or "").removeprefix("\ufeff")


def fix_final_newline(case: FixCase) -> FixResult:
    return end_with_newline(case.text or "")


def fix_blank_lines(case: FixCase) -> FixResult:
    lines = (case.text or "").split("\n")
    prose_numbers = prose(case.file)
    repeated_blanks = [
        number
        for number in range(2, len(lines))
        if number in prose_numbers
        and number - 1 in prose_numbers
        and not lines[number - 1].strip()
        and not lines[number - 2].strip()
    ]
    removed_lines = set(repeated_blanks)
    return "\n".join(line for number, line in enumerate(lines, start=1) if number not in removed_lines)


def fix_heading_spacing(case: FixCase) -> FixResult:
    """Put an empty line before and after each heading."""
    lines = (case.text or "").split("\n")
    prose_numbers = prose(case.file)
    edited_lines: list[str] = []
    for number, line in enumerate(lines, start=1):
        is_heading = number in prose_numbers and lint.HEADING_PATTERN.match(line)
        if is_heading and edited_lines and edited_lines[-1].strip() and number - 1 in prose_numbers:
            edited_lines.append("")
        edited_lines.append(line)
        if is_heading and number < len(lines) and number + 1 in prose_numbers and lines[number].strip():
            edited_lines.append("")
    return "\n".join(edited_lines)


def fix_heading_marks(case: FixCase) -> FixResult:
    return _edit_prose(case, lambda line: re.sub(r"^( {0,3}#{1,6})(?=[^#\s])", r"\1 ", line))


def fix_skipped_levels(case: FixCase) -> FixResult:
    """Raise a heading to one level below the heading before it."""
    levels: dict[int, int] = {}
    previous_level = 1
    for heading in case.file.headings:
        previous_level = levels[heading.line] = min(heading.level, previous_level + 1)

    def edit_line(number: int, line: str) -> str:
        if number in levels:
            return _HEADING_LEVEL_PATTERN.sub(lambda match: match[1] + "#" * levels[number], line)
        return line

    return edit_lines(case.text or "", edit_line)


def fix_second_title(case: FixCase) -> FixResult:
    """Lower all headings of the body by one level when one of them is a title."""
    lines = {heading.line for heading in case.file.headings if heading.level < 6}

    def edit_line(number: int, line: str) -> str:
        return _HEADING_LEVEL_PATTERN.sub(r"\1#\2", line) if number in lines else line

    return edit_lines(case.text or "", edit_line)


def fix_empty_headings(case: FixCase) -> FixResult:
    return remove_lines(case.text or "", case.lines)


def fix_fence_languages(case: FixCase) -> FixResult:
    """Name the language of the snippet, of a shell for install commands, otherwise plain text."""
    catalogue = index_snippets(case.site)
    names: dict[int, str] = {}
    for fence in case.file.fences:
        if fence.language:
            continue
        snippet = catalogue.get(normalise_code(fence.code))
        fallback = "bash" if is_install_block(fence) else "text"
        names[fence.line] = snippet["language"] if snippet else fallback

    def edit_line(number: int, line: str) -> str:
        return line.rstrip() + names[number] if number in names else line

    return edit_lines(case.text or "", edit_line)


def fix_open_fence(case: FixCase) -> FixResult:
    """Close the code block at the end of the page."""
    open_line = lint.find_open_fence(case.file.body)
    mark = lint.FENCE_PATTERN.match(case.file.body.split("\n")[open_line - 1]) if open_line else None
    return None if mark is None else end_with_newline(case.text or "") + mark.group(1) + "\n"


def fix_bare_urls(case: FixCase) -> FixResult:
    def edit_line(line: str) -> str:
        for url in dict.fromkeys(lint.find_bare_urls(line)):
            line = re.sub(rf"(?<![<(\"'=\w`]){re.escape(url)}(?![\w/>)`])", f"<{url}>", line)
        return line

    return _edit_prose(case, edit_line)


def fix_image_alts(case: FixCase) -> FixResult:
    """Name an image after its file."""

    def add_alt_text(match: re.Match[str]) -> str:
        words = re.split(r"[\s_-]+", PurePosixPath(match[1]).stem)
        return f"![{' '.join(words).strip().capitalize() or 'Image'}]({match[1]}{match[2]})"

    return _edit_prose(case, lambda line: _EMPTY_ALT_PATTERN.sub(add_alt_text, line))


def fix_empty_links(case: FixCase) -> FixResult:
    return _edit_prose(case, lambda line: _EMPTY_LINK_PATTERN.sub(lambda match: match[1] or match[2], line))


def fix_unsafe_html(case: FixCase) -> FixResult:
    """Remove the lines; their author did not write them for this launch."""
    return remove_lines(case.text or "", case.lines - list_code_lines(case.file))


def fix_empty_page(case: FixCase) -> FixResult:
    return case.draft


LINT_FIXES = {
    "GATE_LINT_TRAILING_SPACE": fix_trailing_spaces,
    "GATE_LINT_TAB": fix_tabs,
    "GATE_LINT_LINE_ENDS": fix_line_endings,
    "GATE_LINT_BYTE_ORDER": fix_byte_order_mark,
    "GATE_LINT_FINAL_NEWLINE": fix_final_newline,
    "GATE_LINT_BLANK_LINES": fix_blank_lines,
    "GATE_LINT_HEADING_SPACE": fix_heading_spacing,
    "GATE_LINT_HEADING_MARK": fix_heading_marks,
    "GATE_LINT_HEADING_SKIP": fix_skipped_levels,
    "GATE_LINT_SECOND_TITLE": fix_second_title,
    "GATE_LINT_EMPTY_HEADING": fix_empty_headings,
    "GATE_LINT_FENCE_LANGUAGE": fix_fence_languages,
    "GATE_LINT_OPEN_FENCE": fix_open_fence,
    "GATE_LINT_BARE_URL": fix_bare_urls,
    "GATE_LINT_IMAGE_ALT": fix_image_alts,
    "GATE_LINT_EMPTY_LINK": fix_empty_links,
    "GATE_LINT_UNSAFE_HTML": fix_unsafe_html,
    "GATE_LINT_EMPTY_PAGE": fix_empty_page,
}

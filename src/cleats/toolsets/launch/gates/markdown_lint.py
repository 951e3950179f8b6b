"""The Markdown of each page must be clean: readable structure, no marks that break rendering.

No linter is used: those from npm need Node, the one from PyPI is slow and brings nine packages, and
each rule here has a fix that must parse the page in the same way.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import TypeAlias

from cleats.toolsets.launch.gates import page_text
from cleats.toolsets.launch.gates.model import FixCase, FixResult, Gate, GateMessage, IssueDraft, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite, PageFile
from cleats.toolsets.launch.source.text.code_blocks import normalize_code

_BARE_URL_PATTERN = re.compile(r"https?://[^\s<>()\[\]\"'`]*[^\s<>()\[\]\"'`.,;:!?*_]")
_LINKED_URL_PATTERN = re.compile(
    r"<https?://[^>\s]*>"  # an autolink
    r"|<[a-zA-Z!/][^<>]*>"  # a tag, or a comment
    r"|\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+[^)]*)?\)"  # the target of a link
    r"|\[[^\]]*\]:\s*\S+"  # a definition of one
)
_FENCE_PATTERN = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_HEADING_PATTERN = re.compile(r"^( {0,3})(#{1,6})(?=\s|$)")
_CRAMPED_HEADING_PATTERN = re.compile(r"^( {0,3}#{1,6})(?=[^#\s])")
_EMPTY_ALT_PATTERN = re.compile(r"!\[\s*\]\(([^)\s]+)([^)]*)\)")
_EMPTY_LINK_PATTERN = re.compile(r"(?<!!)\[([^\]]*)\]\(\s*\)|<a\s+href=(?:\"\s*\"|'\s*')\s*>(.*?)</a>")
_UNSAFE_HTML_PATTERN = re.compile(
    r"<\s*/?\s*(?:script|iframe|object|embed|form)\b|<[^<>]*\son[a-z]+\s*=|javascript:", re.IGNORECASE
)


def check_markdown(site: LaunchSite) -> Iterator[GateMessage]:
    for file in site.files:
        if file.page is not None:  # else the front_matter gate reports it
            yield from lint_page(file, has_title_heading=site.kind.has_title_headings)


def lint_page(file: PageFile, *, has_title_heading: bool = False) -> Iterator[IssueDraft]:
    """Yield everything that is wrong with the Markdown of a page, which may begin with its title."""
    if not file.body.strip():
        yield EMPTY_PAGE.draft("the page is empty", file.path)
    for kind, edit_text, message in TEXT_RULES:
        if edit_text(file.text) != file.text:
            yield kind.draft(message, file.path)
    yield from _check_headings_and_links(file, has_title_heading=has_title_heading)
    yield from _check_lines(file)
    for fence in file.fences:
        if not fence.language:
            yield FENCE_LANGUAGE.draft("a code block does not say its language", file.path, fence.line)
    if open_line := find_open_fence(file.body)[0]:
        yield OPEN_FENCE.draft("a code block is never closed", file.path, file.body_line + open_line - 1)
    for image in file.images:
        if not image.text.strip():
            message = f"the image {image.target!r} has no alternative text"
            yield IMAGE_ALT.draft(message, file.path, image.line)


def _check_headings_and_links(file: PageFile, *, has_title_heading: bool) -> Iterator[IssueDraft]:
    previous_level = 1
    heading_texts: set[str] = set()
    for number, heading in enumerate(file.headings):
        if heading.level > previous_level + 1:
            message = f"a heading of level {heading.level} follows one of level {previous_level}"
            yield SKIPPED_LEVEL.draft(message, file.path, heading.line)
        previous_level = heading.level
        if heading.level == 1 and not (has_title_heading and number == 0):
            message = "a second title: the page's first heading is its title"
            if not has_title_heading:
                message = "a second title: the front matter's title is the page's first heading"
            yield SECOND_TITLE.draft(message, file.path, heading.line)
        if not heading.text:
            yield EMPTY_HEADING.draft("an empty heading", file.path, heading.line)
        elif heading.text in heading_texts:
            yield TWIN_HEADING.draft(f"two headings are named {heading.text!r}", file.path, heading.line)
        heading_texts.add(heading.text)
    for link in file.links:
        if not link.target.strip():
            yield EMPTY_LINK.draft("a link has no target", file.path, link.line)


def _check_lines(file: PageFile) -> Iterator[IssueDraft]:
    lines = dict(file.prose)
    for number, line in file.prose:
        neighbours = (lines.get(number - 1, ""), lines.get(number + 1, ""))
        if _HEADING_PATTERN.match(line) and any(neighbour.strip() for neighbour in neighbours):
            yield HEADING_SPACE.draft("a heading needs an empty line before and after it", file.path, number)
        for kind, edit_line, message in LINE_RULES:
            if edit_line(line) != line:
                yield kind.draft(message, file.path, number)
        if _UNSAFE_HTML_PATTERN.search(page_text.CODE_SPAN_PATTERN.sub("", line)):
            yield UNSAFE_HTML.draft("HTML that can run a script in the reader's browser", file.path, number)
        for url in find_bare_urls(line):
            yield BARE_URL.draft(f"a bare address: {url}", file.path, number)
    for number in _find_repeated_blanks(file):
        yield BLANK_LINES.draft("two empty lines", file.path, number)


def _find_repeated_blanks(file: PageFile) -> list[int]:
    blank_lines = {number for number, line in file.prose if not line.strip()}
    return sorted(number for number in blank_lines if number - 1 in blank_lines)


def find_open_fence(body: str) -> tuple[int, str]:
    """Return the line number, from 1, and the mark of a fence that is never closed, or 0 and ""."""
    mark, open_line = "", 0
    for number, line in enumerate(body.split("\n"), start=1):
        fence = _FENCE_PATTERN.match(line)
        if fence is None:
            continue
        if not mark:
            mark, open_line = fence.group(1), number
        elif fence.group(1)[0] == mark[0] and len(fence.group(1)) >= len(mark) and not fence.group(2).strip():
            mark, open_line = "", 0
    return open_line, mark


def find_bare_urls(line: str) -> list[str]:
    """Return the URLs in a line that are not inside a link, code or a tag."""
    return _BARE_URL_PATTERN.findall(_LINKED_URL_PATTERN.sub(" ", page_text.CODE_SPAN_PATTERN.sub(" ", line)))


def fix_text(case: FixCase) -> FixResult:
    return next(edit(case.text) for kind, edit, _ in TEXT_RULES if kind.code == case.issue.error_code)


def fix_lines(case: FixCase) -> FixResult:
    return next(page_text.edit_prose(case, edit) for kind, edit, _ in LINE_RULES if kind.code == case.issue.error_code)


def fix_blank_lines(case: FixCase) -> FixResult:
    lines = case.text.split("\n")
    removed_lines = {number for number in _find_repeated_blanks(case.file) if number < len(lines)}
    return page_text.edit_lines(case.text, lambda number, line: None if number in removed_lines else line)


def fix_heading_spacing(case: FixCase) -> FixResult:
    """Put an empty line before and after each heading."""
    lines = case.text.split("\n")
    prose = dict(case.file.prose)
    edited_lines: list[str] = []
    for number, line in enumerate(lines, start=1):
        is_heading = _HEADING_PATTERN.match(prose.get(number, ""))
        if is_heading and prose.get(number - 1, "").strip() and edited_lines[-1].strip():
            edited_lines.append("")
        edited_lines.append(line)
        if is_heading and prose.get(number + 1, "").strip():
            edited_lines.append("")
    return "\n".join(edited_lines)


def fix_skipped_levels(case: FixCase) -> FixResult:
    """Raise a heading to one level below the heading before it."""
    levels: dict[int, int] = {}
    previous_level = 1
    for heading in case.file.headings:
        previous_level = levels[heading.line] = min(heading.level, previous_level + 1)
    return _set_heading_levels(case, levels)


def fix_empty_heading(case: FixCase) -> FixResult:
    return page_text.remove_lines(case.text, case.lines)


def fix_second_title(case: FixCase) -> FixResult:
    """Lower all headings of the body by one level when one of them is a title."""
    headings = case.file.headings[1:] if case.site.kind.has_title_headings else case.file.headings
    return _set_heading_levels(case, {item.line: item.level + 1 for item in headings if item.level < 6})


def _set_heading_levels(case: FixCase, levels: Mapping[int, int]) -> str:
    return page_text.edit_lines(
        case.text,
        lambda number, line: _HEADING_PATTERN.sub(rf"\1{'#' * levels[number]}", line) if number in levels else line,
    )


def fix_fence_languages(case: FixCase) -> FixResult:
    """Name the language of the snippet, of a shell for install commands, otherwise plain text."""
    catalogue = page_text.index_snippets(case.site)
    names: dict[int, str] = {}
    for fence in (fence for fence in case.file.fences if not fence.language):
        snippet = catalogue.get(normalize_code(fence.code))
        names[fence.line] = snippet["language"] if snippet else "bash" if page_text.is_install_block(fence) else "text"
    return page_text.edit_lines(
        case.text, lambda number, line: line.rstrip() + names[number] if number in names else line
    )


def fix_open_fence(case: FixCase) -> FixResult:
    """Close the code block at the end of the page."""
    mark = find_open_fence(case.file.body)[1]
    return f"{page_text.end_with_newline(case.text)}{mark}\n" if mark else None


def fix_bare_urls(case: FixCase) -> FixResult:
    def edit_line(line: str) -> str:
        for url in dict.fromkeys(find_bare_urls(line)):
            line = re.sub(rf"(?<![<(\"'=\w`]){re.escape(url)}(?![\w/>)`])", f"<{url}>", line)
        return line

    return page_text.edit_prose(case, edit_line)


def fix_image_alts(case: FixCase) -> FixResult:
    """Name an image after its file."""

    def add_alt_text(match: re.Match[str]) -> str:
        words = re.split(r"[\s_-]+", PurePosixPath(match[1]).stem)
        return f"![{' '.join(words).strip().capitalize() or 'Image'}]({match[1]}{match[2]})"

    return page_text.edit_prose(case, lambda line: _EMPTY_ALT_PATTERN.sub(add_alt_text, line))


SKIPPED_LEVEL = IssueKind(
    "GATE_LINT_HEADING_SKIP", "warn", "Raise the heading to one level below the one before it.", fix_skipped_levels
)
SECOND_TITLE = IssueKind(
    "GATE_LINT_SECOND_TITLE", "warn", "Lower the headings of the page by one level.", fix_second_title
)
EMPTY_HEADING = IssueKind(
    "GATE_LINT_EMPTY_HEADING", "warn", "Give the heading a text, or remove it.", fix_empty_heading
)
TWIN_HEADING = IssueKind("GATE_LINT_TWIN_HEADING", "info", "Give one of the headings another name.")
HEADING_SPACE = IssueKind(
    "GATE_LINT_HEADING_SPACE", "warn", "Put an empty line before and after the heading.", fix_heading_spacing
)
HEADING_MARK = IssueKind("GATE_LINT_HEADING_MARK", "warn", "Put a space after the # signs of the heading.", fix_lines)
TRAILING_SPACE = IssueKind("GATE_LINT_TRAILING_SPACE", "warn", "Remove the spaces at the end of the line.", fix_lines)
TAB_CHARACTER = IssueKind("GATE_LINT_TAB", "warn", "Use spaces.", fix_lines)
BLANK_LINES = IssueKind("GATE_LINT_BLANK_LINES", "warn", "Keep one empty line.", fix_blank_lines)
FENCE_LANGUAGE = IssueKind(
    "GATE_LINT_FENCE_LANGUAGE", "warn", "Name the language after the fence; `text` for plain text.", fix_fence_languages
)
OPEN_FENCE = IssueKind("GATE_LINT_OPEN_FENCE", "error", "Close the code block.", fix_open_fence)
BARE_URL = IssueKind("GATE_LINT_BARE_URL", "warn", "Turn it into a link, or put it in angle brackets.", fix_bare_urls)
EMPTY_LINK = IssueKind(
    "GATE_LINT_EMPTY_LINK",
    "error",
    "Give the link a target, or keep only its words.",
    lambda case: page_text.edit_prose(
        case, lambda line: _EMPTY_LINK_PATTERN.sub(lambda match: match[1] or match[2], line)
    ),
)
IMAGE_ALT = IssueKind("GATE_LINT_IMAGE_ALT", "warn", "Say what the image shows.", fix_image_alts)
UNSAFE_HTML = IssueKind(
    "GATE_LINT_UNSAFE_HTML",
    "blocker",
    "Remove the HTML; a shortcode of the site may replace it.",
    lambda case: page_text.remove_lines(case.text, case.lines - page_text.list_code_lines(case.file)),
)
EMPTY_PAGE = IssueKind(
    "GATE_LINT_EMPTY_PAGE", "error", "Write the page, or remove it from the plan.", lambda case: case.draft
)
LINE_ENDS = IssueKind("GATE_LINT_LINE_ENDS", "warn", "End lines with a line feed alone.", fix_text)
BYTE_ORDER = IssueKind("GATE_LINT_BYTE_ORDER", "warn", "Save the file without a byte order mark.", fix_text)
FINAL_NEWLINE = IssueKind("GATE_LINT_FINAL_NEWLINE", "warn", "End the file with one line feed.", fix_text)

EditRule: TypeAlias = tuple[IssueKind, Callable[[str], str], str]
"""A kind of issue, the edit that is both its check and its fix, and the message. What it changes breaks the rule."""
TEXT_RULES: tuple[EditRule, ...] = (
    (LINE_ENDS, lambda text: text.replace("\r\n", "\n").replace("\r", "\n"), "lines end with a carriage return"),
    (BYTE_ORDER, lambda text: text.removeprefix("\ufeff"), "the file begins with a byte order mark"),
    (FINAL_NEWLINE, page_text.end_with_newline, "the file does not end with one line feed"),
)
LINE_RULES: tuple[EditRule, ...] = (
    (
        HEADING_MARK,
        lambda line: _CRAMPED_HEADING_PATTERN.sub(r"\1 ", line),
        "a heading needs a space after its # signs",
    ),
    # Two or more spaces at the end break a line.
    (
        TRAILING_SPACE,
        lambda line: line if line[-2:] == "  " and line.strip() else line.rstrip(),
        "the line ends with spaces",
    ),
    (TAB_CHARACTER, lambda line: line.expandtabs(4), "a tab in the text"),
)

GATE = Gate("markdown_lint", __doc__, check_markdown, reads_pages=True)

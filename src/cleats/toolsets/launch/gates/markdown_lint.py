"""The Markdown of each page must be clean: readable structure, no marks that break rendering.

The rules are implemented here. A linter from npm would bring Node to every validation; the one from
PyPI is slow and brings nine packages; and each rule here has a fix that must parse the page in the
same way.
"""

import re
from collections.abc import Callable, Iterator

from cleats.toolsets.launch.gates.model import (
    Gate,
    GateMessage,
    IssueDraft,
    LaunchSite,
    PageFile,
    make_blocker,
    make_error,
    make_warning,
)

CODE_SPAN_PATTERN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
BARE_URL_PATTERN = re.compile(r"https?://[^\s<>()\[\]\"'`]*[^\s<>()\[\]\"'`.,;:!?*_]")
_LINKED_URL_PATTERN = re.compile(
    r"<https?://[^>\s]*>"  # an autolink
    r"|<[a-zA-Z!/][^<>]*>"  # a tag, or a comment
    r"|\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+[^)]*)?\)"  # the target of a link
    r"|\[[^\]]*\]:\s*\S+"  # a definition of one
)
FENCE_PATTERN = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
HEADING_PATTERN = re.compile(r"^ {0,3}#{1,6}(?:\s|$)")
_CRAMPED_HEADING_PATTERN = re.compile(r"^ {0,3}#{1,6}[^#\s]")
_UNSAFE_HTML_PATTERN = re.compile(
    r"<\s*/?\s*(?:script|iframe|object|embed|form)\b|<[^<>]*\son[a-z]+\s*=|javascript:",
    re.IGNORECASE,
)

MarkdownRule = Callable[[PageFile], Iterator[IssueDraft]]


def check_markdown(site: LaunchSite) -> Iterator[GateMessage]:
    for file in site.files:
        if file.page is None:
            continue  # the front_matter gate reports it
        for rule in MARKDOWN_RULES:
            yield from rule(file)


def _check_headings(file: PageFile) -> Iterator[IssueDraft]:
    previous_level = 1
    heading_texts: set[str] = set()
    for heading in file.headings:
        if heading.level > previous_level + 1:
            message = f"a heading of level {heading.level} follows one of level {previous_level}"
            yield make_warning("GATE_LINT_HEADING_SKIP", message, file.path, heading.line)
        previous_level = heading.level
        if heading.level == 1:
            message = "a second title: the front matter's title is the page's first heading"
            yield make_warning("GATE_LINT_SECOND_TITLE", message, file.path, heading.line)
        if not heading.text:
            yield make_warning("GATE_LINT_EMPTY_HEADING", "an empty heading", file.path, heading.line)
        elif heading.text in heading_texts:
            message = f"two headings are named {heading.text!r}"
            yield IssueDraft(
                code="GATE_LINT_TWIN_HEADING",
                severity="info",
                message=message,
                path=file.path,
                line=heading.line,
            )
        heading_texts.add(heading.text)


def _check_spacing(file: PageFile) -> Iterator[IssueDraft]:
    lines = dict(file.prose)
    for number, line in file.prose:
        if HEADING_PATTERN.match(line):
            for neighbour in (number - 1, number + 1):
                if lines.get(neighbour, "").strip():
                    message = "a heading needs an empty line before and after it"
                    yield make_warning("GATE_LINT_HEADING_SPACE", message, file.path, number)
                    break
        elif _CRAMPED_HEADING_PATTERN.match(line):
            message = "a heading needs a space after its marks"
            yield make_warning("GATE_LINT_HEADING_MARK", message, file.path, number)
        if line != line.rstrip() and not (line.endswith("  ") and line.strip()):
            yield make_warning("GATE_LINT_TRAILING_SPACE", "spaces end the line", file.path, number)
        if "\t" in line:
            yield make_warning("GATE_LINT_TAB", "a tab in the text", file.path, number)
        if not line.strip() and number - 1 in lines and not lines[number - 1].strip():
            yield make_warning("GATE_LINT_BLANK_LINES", "two empty lines", file.path, number)


def _check_fences(file: PageFile) -> Iterator[IssueDraft]:
    for fence in file.fences:
        if not fence.language:
            message = "a code block does not say its language"
            yield make_warning("GATE_LINT_FENCE_LANGUAGE", message, file.path, fence.line)
    if line := find_open_fence(file.body):
        message = "a code block is never closed"
        yield make_error("GATE_LINT_OPEN_FENCE", message, file.path, file.body_line + line - 1)


def find_open_fence(body: str) -> int:
    """Return the line number, from 1, of a fence that is never closed; 0 when there is none."""
    mark, open_line = "", 0
    for number, line in enumerate(body.split("\n"), start=1):
        fence = FENCE_PATTERN.match(line)
        if fence is None:
            continue
        if not mark:
            mark, open_line = fence.group(1), number
        elif fence.group(1)[0] == mark[0] and len(fence.group(1)) >= len(mark) and not fence.group(2).strip():
            mark, open_line = "", 0
    return open_line


def _check_links(file: PageFile) -> Iterator[IssueDraft]:
    for link in file.links:
        if not link.target.strip():
            yield make_error("GATE_LINT_EMPTY_LINK", "a link leads nowhere", file.path, link.line)
    for image in file.images:
        if not image.alt.strip():
            message = f"the image {image.target!r} has no text for those who cannot see it"
            yield make_warning("GATE_LINT_IMAGE_ALT", message, file.path, image.line)
    for number, line in file.prose:
        for url in find_bare_urls(line):
            message = f"a bare address: {url}"
            yield make_warning("GATE_LINT_BARE_URL", message, file.path, number)


def find_bare_urls(line: str) -> list[str]:
    """Return the URLs in a line that are not inside a link, code or a tag."""
    return BARE_URL_PATTERN.findall(_LINKED_URL_PATTERN.sub(" ", CODE_SPAN_PATTERN.sub(" ", line)))


def _check_html(file: PageFile) -> Iterator[IssueDraft]:
    for number, line in file.prose:
        if _UNSAFE_HTML_PATTERN.search(CODE_SPAN_PATTERN.sub("", line)):
            message = "HTML that can run a program in the reader's browser"
            yield make_blocker("GATE_LINT_UNSAFE_HTML", message, file.path, number)


def _check_file(file: PageFile) -> Iterator[IssueDraft]:
    if not file.body.strip():
        yield make_error("GATE_LINT_EMPTY_PAGE", "the page says nothing", file.path)
    if "\r" in file.text:
        message = "lines end with a carriage return"
        yield make_warning("GATE_LINT_LINE_ENDS", message, file.path)
    if file.text.startswith("\ufeff"):
        yield make_warning("GATE_LINT_BYTE_ORDER", "the file begins with a byte order mark", file.path)
    if not file.text.endswith("\n") or file.text.endswith("\n\n"):
        message = "the file does not end with one line feed"
        yield make_warning("GATE_LINT_FINAL_NEWLINE", message, file.path)


MARKDOWN_RULES: tuple[MarkdownRule, ...] = (
    _check_file,
    _check_headings,
    _check_spacing,
    _check_fences,
    _check_links,
    _check_html,
)

GATE = Gate(
    name="markdown_lint",
    purpose=__doc__,
    check=check_markdown,
    reads_pages=True,
    local_seconds=60.0,
    strict_seconds=120.0,
)

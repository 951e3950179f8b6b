"""The Markdown of each page is clean: structure that reads well, no marks that break rendering.

The rules are ours. A linter from npm would bring Node to every validation; the one from Python's
index is slow and brings nine packages; and each rule here has a fix that must see the page with
the same eyes.
"""

import re
from collections.abc import Callable, Iterator

from cleats.toolsets.launch.gates.model import Finding, Gate, Said, blocker, error, warning
from cleats.toolsets.launch.gates.site import PageFile, Site

CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
BARE_URL = re.compile(r"https?://[^\s<>()\[\]\"'`]*[^\s<>()\[\]\"'`.,;:!?*_]")
_NOT_BARE = re.compile(
    r"<https?://[^>\s]*>"  # an autolink
    r"|<[a-zA-Z!/][^<>]*>"  # a tag, or a comment
    r"|\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+[^)]*)?\)"  # the target of a link
    r"|\[[^\]]*\]:\s*\S+"  # a definition of one
)
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
HEADING = re.compile(r"^ {0,3}#{1,6}(?:\s|$)")
_CRAMPED = re.compile(r"^ {0,3}#{1,6}[^#\s]")
_UNSAFE = re.compile(
    r"<\s*/?\s*(?:script|iframe|object|embed|form)\b|<[^<>]*\son[a-z]+\s*=|javascript:",
    re.IGNORECASE,
)

Rule = Callable[[PageFile], Iterator[Finding]]


def check(site: Site) -> Iterator[Said]:
    for file in site.files:
        if file.page is None:
            continue  # the gate of front matter has said so
        for rule in RULES:
            yield from rule(file)


def _headings(file: PageFile) -> Iterator[Finding]:
    above = 1
    seen: set[str] = set()
    for heading in file.headings:
        if heading.level > above + 1:
            message = f"a heading of level {heading.level} follows one of level {above}"
            yield warning("GATE_LINT_HEADING_SKIP", message, file.path, heading.line)
        above = heading.level
        if heading.level == 1:
            message = "a second title: the front matter's title is the page's first heading"
            yield warning("GATE_LINT_SECOND_TITLE", message, file.path, heading.line)
        if not heading.text:
            yield warning("GATE_LINT_EMPTY_HEADING", "an empty heading", file.path, heading.line)
        elif heading.text in seen:
            message = f"two headings are named {heading.text!r}"
            yield Finding(
                code="GATE_LINT_TWIN_HEADING",
                severity="info",
                message=message,
                path=file.path,
                line=heading.line,
            )
        seen.add(heading.text)


def _spacing(file: PageFile) -> Iterator[Finding]:
    lines = dict(file.prose)
    for number, line in file.prose:
        if HEADING.match(line):
            for beside in (number - 1, number + 1):
                if lines.get(beside, "").strip():
                    message = "a heading needs an empty line before and after it"
                    yield warning("GATE_LINT_HEADING_SPACE", message, file.path, number)
                    break
        elif _CRAMPED.match(line):
            message = "a heading needs a space after its marks"
            yield warning("GATE_LINT_HEADING_MARK", message, file.path, number)
        if line != line.rstrip() and not (line.endswith("  ") and line.strip()):
            yield warning("GATE_LINT_TRAILING_SPACE", "spaces end the line", file.path, number)
        if "\t" in line:
            yield warning("GATE_LINT_TAB", "a tab in the text", file.path, number)
        if not line.strip() and number - 1 in lines and not lines[number - 1].strip():
            yield warning("GATE_LINT_BLANK_LINES", "two empty lines", file.path, number)


def _fences(file: PageFile) -> Iterator[Finding]:
    for fence in file.fences:
        if not fence.language:
            message = "a code block does not say its language"
            yield warning("GATE_LINT_FENCE_LANGUAGE", message, file.path, fence.line)
    if line := open_fence(file.body):
        message = "a code block is never closed"
        yield error("GATE_LINT_OPEN_FENCE", message, file.path, file.first + line - 1)


def open_fence(body: str) -> int:
    """The line, from 1, of a fence that nothing closes; 0 when there is none."""
    mark, opened = "", 0
    for number, line in enumerate(body.split("\n"), start=1):
        fence = FENCE.match(line)
        if fence is None:
            continue
        if not mark:
            mark, opened = fence.group(1), number
        elif (
            fence.group(1)[0] == mark[0]
            and len(fence.group(1)) >= len(mark)
            and not fence.group(2).strip()
        ):
            mark, opened = "", 0
    return opened


def _links(file: PageFile) -> Iterator[Finding]:
    for link in file.links:
        if not link.target.strip():
            yield error("GATE_LINT_EMPTY_LINK", "a link leads nowhere", file.path, link.line)
    for image in file.images:
        if not image.alt.strip():
            message = f"the image {image.target!r} has no text for those who cannot see it"
            yield warning("GATE_LINT_IMAGE_ALT", message, file.path, image.line)
    for number, line in file.prose:
        for url in bare_urls(line):
            message = f"a bare address: {url}"
            yield warning("GATE_LINT_BARE_URL", message, file.path, number)


def bare_urls(line: str) -> list[str]:
    """The addresses in a line that stand in no link, no code and no tag."""
    return BARE_URL.findall(_NOT_BARE.sub(" ", CODE_SPAN.sub(" ", line)))


def _html(file: PageFile) -> Iterator[Finding]:
    for number, line in file.prose:
        if _UNSAFE.search(CODE_SPAN.sub("", line)):
            message = "HTML that can run a program in the reader's browser"
            yield blocker("GATE_LINT_UNSAFE_HTML", message, file.path, number)


def _file(file: PageFile) -> Iterator[Finding]:
    if not file.body.strip():
        yield error("GATE_LINT_EMPTY_PAGE", "the page says nothing", file.path)
    if "\r" in file.text:
        message = "lines end with a carriage return"
        yield warning("GATE_LINT_LINE_ENDS", message, file.path)
    if file.text.startswith("\ufeff"):
        yield warning("GATE_LINT_BYTE_ORDER", "the file begins with a byte order mark", file.path)
    if not file.text.endswith("\n") or file.text.endswith("\n\n"):
        message = "the file does not end with one line feed"
        yield warning("GATE_LINT_FINAL_NEWLINE", message, file.path)


RULES: tuple[Rule, ...] = (_file, _headings, _spacing, _fences, _links, _html)

GATE = Gate(
    name="markdown_lint", purpose=__doc__, check=check, reads_pages=True, local=60.0, strict=120.0
)

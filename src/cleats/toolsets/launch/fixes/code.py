"""Fixes of code on pages: back to the catalogue's own, or off the page."""

from collections.abc import Iterable
from difflib import SequenceMatcher

from cleats.toolsets.launch.fixes.model import Answer, Case, without
from cleats.toolsets.launch.gates.catalogue import known, language, normal
from cleats.toolsets.launch.pages import Fence

LIKE = 0.6
"""How much of a code block must be in a snippet for the snippet to be what was meant."""


def restored(case: Case) -> Answer:
    catalogue = known(case.site)
    text = case.text or ""
    for fence in reversed(case.file.fences):  # from the end, so that lines keep their numbers
        if fence.line not in case.lines:
            continue
        code = normal(fence.code)
        good = [
            each
            for each, snippet in catalogue.items()
            if snippet["validation"]["syntax_ok"] and snippet["language"] == language(fence)
        ]
        best = max(good, key=lambda each: (_like(code, each), each), default="")
        if best and best != code and _like(code, best) >= LIKE:
            text = _with_code(text, fence, best)
        else:
            text = without(text, span(text, fence))
    return text


def removed_blocks(case: Case) -> Answer:
    """Take the code blocks away that the issues name."""
    text = case.text or ""
    for fence in reversed(case.file.fences):
        lines = span(text, fence)
        if case.lines & set(lines):
            text = without(text, lines)
    return text


def span(text: str, fence: Fence) -> range:
    """The lines of a code block, its fences included."""
    last = fence.line + fence.code.count("\n")
    lines = text.split("\n")
    closed = last < len(lines) and lines[last].strip()[:3] in ("```", "~~~")
    return range(fence.line, last + 1 + closed)


def _with_code(text: str, fence: Fence, code: str) -> str:
    lines = text.split("\n")
    opening = lines[fence.line - 1]
    lead = opening[: len(opening) - len(opening.lstrip())]  # a block may stand in a list
    new = [lead + line if line else line for line in code.split("\n")]
    inside = fence.code.count("\n")
    return "\n".join([*lines[: fence.line], *new, *lines[fence.line + inside :]])


def _like(one: Iterable[str], other: Iterable[str]) -> float:
    return SequenceMatcher(None, list(one), list(other), autojunk=False).ratio()


RULES = {
    "GATE_SNIPPET_UNKNOWN": restored,
    "GATE_SNIPPET_SYNTAX": restored,
    "GATE_CONTENT_TOC_CODE": removed_blocks,
}

"""Fixes for code on pages: replaced by the snippet of the catalogue, or removed."""

from collections.abc import Iterable
from difflib import SequenceMatcher

from cleats.toolsets.launch.fixes.model import FixCase, FixResult, remove_lines
from cleats.toolsets.launch.gates.page_text import index_snippets, normalise_code, normalise_language
from cleats.toolsets.launch.site.pages import CodeBlock

MIN_SIMILARITY_RATIO = 0.6
"""Minimum similarity of a code block to a snippet for the snippet to be what was meant."""


def fix_snippets(case: FixCase) -> FixResult:
    catalogue = index_snippets(case.site)
    text = case.text or ""
    for fence in reversed(case.file.fences):  # from the end, so that lines keep their numbers
        if fence.line not in case.lines:
            continue
        code = normalise_code(fence.code)
        candidates = [
            candidate
            for candidate, snippet in catalogue.items()
            if snippet["validation"]["syntax_ok"] and snippet["language"] == normalise_language(fence)
        ]
        best = max(candidates, key=lambda candidate: (_measure_similarity(code, candidate), candidate), default="")
        if best and best != code and _measure_similarity(code, best) >= MIN_SIMILARITY_RATIO:
            text = _replace_block_code(text, fence, best)
        else:
            text = remove_lines(text, find_block_lines(text, fence))
    return text


def remove_code_blocks(case: FixCase) -> FixResult:
    """Remove the code blocks that the issues name."""
    text = case.text or ""
    for fence in reversed(case.file.fences):
        lines = find_block_lines(text, fence)
        if case.lines & set(lines):
            text = remove_lines(text, lines)
    return text


def find_block_lines(text: str, fence: CodeBlock) -> range:
    """Return the line numbers of a code block, including its fences."""
    last = fence.line + fence.code.count("\n")
    lines = text.split("\n")
    is_closed = last < len(lines) and lines[last].strip()[:3] in ("```", "~~~")
    return range(fence.line, last + 1 + is_closed)


def _replace_block_code(text: str, fence: CodeBlock, code: str) -> str:
    lines = text.split("\n")
    opening = lines[fence.line - 1]
    indent = opening[: len(opening) - len(opening.lstrip())]  # a block may be inside a list
    new_lines = [indent + line if line else line for line in code.split("\n")]
    old_line_count = fence.code.count("\n")
    return "\n".join([*lines[: fence.line], *new_lines, *lines[fence.line + old_line_count :]])


def _measure_similarity(first: Iterable[str], second: Iterable[str]) -> float:
    return SequenceMatcher(None, list(first), list(second), autojunk=False).ratio()


SNIPPET_FIXES = {
    "GATE_SNIPPET_UNKNOWN": fix_snippets,
    "GATE_SNIPPET_SYNTAX": fix_snippets,
    "GATE_CONTENT_TOC_CODE": remove_code_blocks,
}

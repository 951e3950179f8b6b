"""All code on a page must come from the snippet catalogue, and parse; programs that were run must not have failed."""

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from cleats.toolsets.launch.gates import page_text
from cleats.toolsets.launch.gates.model import FixCase, Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.site.pages import CodeBlock
from cleats.toolsets.launch.snippets.syntax import find_faults
from cleats.toolsets.launch.source.text.code_blocks import normalize_code

NON_CODE_LANGUAGES = frozenset({"text", "txt", "plain", "plaintext", "output", "diff", "mermaid"})
"""Languages of fenced blocks that are not code."""
MIN_SIMILARITY_RATIO = 0.6
"""Minimum similarity of a code block to a snippet for the snippet to be what was meant."""


def check_snippets(site: LaunchSite) -> Iterator[GateMessage]:
    catalogue = page_text.index_snippets(site)
    known_commands = {normalize_code(command) for command in page_text.list_known_commands(site.facts)}
    yield f"the catalogue holds {len(catalogue)} snippets"
    code_blocks = [
        (file, fence)
        for file in site.files
        for fence in file.fences
        if fence.language not in NON_CODE_LANGUAGES
        and site.are_lines_from_launch(file.path, fence.line, fence.line + fence.code.count("\n") + 1)
    ]
    faults = find_faults((fence.code, page_text.normalise_language(fence)) for _, fence in code_blocks)
    for (file, fence), fault in zip(code_blocks, faults, strict=True):
        if fault:
            yield BROKEN_CODE.draft(f"the code does not parse: {fault}", file.path, fence.line)
        code = normalize_code(fence.code)
        snippet = catalogue.get(code, {})
        if snippet.get("validation", {}).get("runnable_ok") is False:
            yield FAILED_PROGRAM.draft(
                f"the program failed when it was run. {snippet['run']['reason']}", file.path, fence.line
            )
        if fence.language in page_text.SHELL_LANGUAGES and (fence.language or page_text.is_install_block(fence)):
            continue  # commands are not snippets; the consistency gate checks those that install
        if code.strip() and code not in catalogue and code not in known_commands:
            yield UNKNOWN_CODE.draft("the code is not in the catalogue of snippets", file.path, fence.line)


def fix_snippets(case: FixCase) -> str:
    """Replace code by the snippet of the catalogue that was meant, or remove it."""
    catalogue = page_text.index_snippets(case.site)
    text = case.text
    for fence in reversed(case.file.fences):  # from the end, so that lines keep their numbers
        if fence.line not in case.lines:
            continue
        code = normalize_code(fence.code)
        candidates = [
            candidate
            for candidate, snippet in catalogue.items()
            if snippet["validation"]["syntax_ok"]
            and snippet["validation"]["runnable_ok"] is not False
            and snippet["language"] == page_text.normalise_language(fence)
        ]
        best = max(candidates, key=lambda candidate: (_measure_similarity(code, candidate), candidate), default="")
        if best and best != code and _measure_similarity(code, best) >= MIN_SIMILARITY_RATIO:
            text = _replace_block_code(text, fence, best.rstrip("\n"))
        else:
            text = page_text.remove_lines(text, page_text.find_block_lines(text, fence))
    return text


def _replace_block_code(text: str, fence: CodeBlock, code: str) -> str:
    lines = text.split("\n")
    opening = lines[fence.line - 1]
    indent = opening[: len(opening) - len(opening.lstrip())]  # a block may be inside a list
    new_lines = [indent + line if line else line for line in code.split("\n")]
    old_line_count = fence.code.count("\n")
    return "\n".join([*lines[: fence.line], *new_lines, *lines[fence.line + old_line_count :]])


def _measure_similarity(first: Iterable[str], second: Iterable[str]) -> float:
    return SequenceMatcher(None, list(first), list(second), autojunk=False).ratio()


UNKNOWN_CODE = IssueKind("GATE_SNIPPET_UNKNOWN", "error", "Show code exactly as it is in the repository.", fix_snippets)
BROKEN_CODE = IssueKind("GATE_SNIPPET_SYNTAX", "error", "Show code that parses.", fix_snippets)
FAILED_PROGRAM = IssueKind(
    "GATE_SNIPPET_FAILED",
    "warn",
    "Remove the program, or correct it in the repository and start another run; its log says what it wrote.",
    page_text.remove_code_blocks,
)

GATE = Gate("snippet_syntax", __doc__, check_snippets, reads_pages=True)

"""Fixes for text that must never be on a page: template tokens, conflict markers, secrets."""

import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.fixes.model import (
    FixCase,
    FixResult,
    end_with_newline,
    list_code_lines,
    list_prose_lines,
    remove_lines,
)
from cleats.toolsets.launch.fixes.snippets import remove_code_blocks
from cleats.toolsets.launch.gates import conflict_markers as conflicts
from cleats.toolsets.launch.gates import template_tokens as tokens
from cleats.toolsets.launch.patching.patches import set_front_matter_keys
from cleats.toolsets.launch.site.pages import CLAIM_MARKER_PATTERN

_CODE_SPAN_PATTERN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_PUNCTUATION_ONLY_PATTERN = re.compile(r"[\s>*+#|\d.:;,()\[\]_-]*")


def fix_tokens(case: FixCase) -> FixResult:
    """Fill in a token as the plan says; remove one that the plan does not know."""
    token_values = {str(key): str(value) for key, value in case.file.plan.get("token_mappings", {}).items()}
    lines = (case.text or "").split("\n")
    empty_lines = set()
    for number in list_prose_lines(case.file):
        line = lines[number - 1]
        lines[number - 1] = _fill_tokens(line, token_values)
        if lines[number - 1] != line and _PUNCTUATION_ONLY_PATTERN.fullmatch(
            CLAIM_MARKER_PATTERN.sub("", lines[number - 1])
        ):
            empty_lines.add(number)
    text = "\n".join(lines)
    text = remove_lines(text, empty_lines) if empty_lines else text
    front_updates = _fill_front_matter(case.file.front, token_values)
    if "title" in front_updates and not front_updates["title"]:
        front_updates["title"] = case.file.plan.get("title") or None
    return set_front_matter_keys(text, front_updates) if front_updates else text


def _fill_tokens(line: str, token_values: Mapping[str, str]) -> str:
    pieces, end = [], 0
    for code_span in [*_CODE_SPAN_PATTERN.finditer(line), None]:
        piece = line[end : code_span.start() if code_span else len(line)]
        for token in tokens.find_tokens(piece):
            value = token_values.get(token, token_values.get(token.strip("_{} "), ""))
            piece = piece.replace(token, value)
            if not value:
                piece = re.sub(r"(?<=\S) {2,}(?=\S)", " ", piece)
                piece = re.sub(r" +(?=[.,;:!?](?:\s|$))", "", piece)
        pieces.append(piece + (code_span.group() if code_span else ""))
        end = code_span.end() if code_span else len(line)
    return "".join(pieces).rstrip() if tokens.find_tokens(_CODE_SPAN_PATTERN.sub("", line)) else line


def _fill_front_matter(front: Mapping[str, Any], token_values: Mapping[str, str]) -> dict[str, Any]:
    """Return the top-level keys that change; a key whose value was only a token is removed."""
    changes: dict[str, Any] = {}
    for key, value in front.items():
        if isinstance(value, str) and tokens.find_tokens(value):
            changes[key] = _fill_tokens(value, token_values).strip() or None
        elif isinstance(value, list) and any(isinstance(item, str) and tokens.find_tokens(item) for item in value):
            filled_items = [
                _fill_tokens(item, token_values).strip() if isinstance(item, str) else item for item in value
            ]
            changes[key] = [item for item in filled_items if item != ""]
    return changes


def fix_conflicts(case: FixCase) -> FixResult:
    """Keep the first side of each conflict: the text from before the merge."""
    remaining_lines: list[str] = []
    side = 0
    for line in (case.text or "").split("\n"):
        if conflicts.CONFLICT_START_PATTERN.match(line):
            side = 1
        elif side and conflicts.CONFLICT_MIDDLE_PATTERN.match(line):
            side = 2
        elif conflicts.CONFLICT_END_PATTERN.match(line):
            side = 0
        elif side != 2:
            remaining_lines.append(line)
    return "\n".join(remaining_lines)


def fix_secrets(case: FixCase) -> FixResult:
    """Remove the line; in a code block, the whole block, which would not work without the line."""
    if case.lines & list_code_lines(case.file):
        return remove_code_blocks(case)
    if any(number < case.file.body_line for number in case.lines):
        return _remove_secret_keys(case)
    return remove_lines(case.text or "", case.lines)


def _remove_secret_keys(case: FixCase) -> FixResult:
    lines = (case.text or "").split("\n")
    keys = {
        key: None for key in case.file.front if any(lines[number - 1].lstrip().startswith(key) for number in case.lines)
    }
    if not keys or "title" in keys:
        return None
    return set_front_matter_keys(case.text or "", keys)


def fix_missing_page(case: FixCase) -> FixResult:
    """Restore a planned page from its draft."""
    return None if case.text is not None or case.draft is None else end_with_newline(case.draft)


LEAK_FIXES = {
    "GATE_TOKEN_LEAKED": fix_tokens,
    "GATE_CONFLICT_MARKER": fix_conflicts,
    "GATE_SECRET": fix_secrets,
    "GATE_HOST_PATH": fix_secrets,
    "GATE_CONTENT_PAGE_MISSING": fix_missing_page,
}

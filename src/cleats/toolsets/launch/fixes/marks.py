"""Fixes of what should never be on a page: template tokens, marks of a merge, secrets."""

import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.fixes.code import removed_blocks
from cleats.toolsets.launch.fixes.model import (
    Answer,
    Case,
    code_lines,
    ended,
    prose_lines,
    without,
)
from cleats.toolsets.launch.gates import conflict_markers as conflicts
from cleats.toolsets.launch.gates import template_tokens as tokens
from cleats.toolsets.launch.pages import MARKER
from cleats.toolsets.launch.patching.front import updated

_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_BARE = re.compile(r"[\s>*+#|\d.:;,()\[\]_-]*")


def token(case: Case) -> Answer:
    """Fill a token in as the plan says; one that the plan does not know goes."""
    known = {
        str(key): str(value) for key, value in case.file.plan.get("token_mappings", {}).items()
    }
    made = (case.text or "").split("\n")
    empty = set()
    for number in prose_lines(case.file):
        line = made[number - 1]
        made[number - 1] = _filled(line, known)
        if made[number - 1] != line and _BARE.fullmatch(MARKER.sub("", made[number - 1])):
            empty.add(number)
    text = "\n".join(made)
    text = without(text, empty) if empty else text
    front = _front(case.file.front, known)
    if "title" in front and not front["title"]:
        front["title"] = case.file.plan.get("title") or None
    return updated(text, front) if front else text


def _filled(line: str, known: Mapping[str, str]) -> str:
    pieces, end = [], 0
    for code in [*_CODE.finditer(line), None]:
        piece = line[end : code.start() if code else len(line)]
        for each in tokens.found(piece):
            value = known.get(each, known.get(each.strip("_{} "), ""))
            piece = piece.replace(each, value)
            if not value:
                piece = re.sub(r"(?<=\S) {2,}(?=\S)", " ", piece)
                piece = re.sub(r" +(?=[.,;:!?](?:\s|$))", "", piece)
        pieces.append(piece + (code.group() if code else ""))
        end = code.end() if code else len(line)
    return "".join(pieces).rstrip() if tokens.found(_CODE.sub("", line)) else line


def _front(front: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    """The keys at the top that change; a value that was only a token goes with its key."""
    changes: dict[str, Any] = {}
    for key, value in front.items():
        if isinstance(value, str) and tokens.found(value):
            changes[key] = _filled(value, known).strip() or None
        elif isinstance(value, list) and any(
            isinstance(each, str) and tokens.found(each) for each in value
        ):
            filled = [
                _filled(each, known).strip() if isinstance(each, str) else each for each in value
            ]
            changes[key] = [each for each in filled if each != ""]
    return changes


def conflict(case: Case) -> Answer:
    """Keep the first side of each conflict: what was there before the merge."""
    kept: list[str] = []
    side = 0
    for line in (case.text or "").split("\n"):
        if conflicts.OPENS.match(line):
            side = 1
        elif side and conflicts.MIDDLE.match(line):
            side = 2
        elif conflicts.CLOSES.match(line):
            side = 0
        elif side != 2:
            kept.append(line)
    return "\n".join(kept)


def secret(case: Case) -> Answer:
    """Take the line away; in a code block, the whole block, which would not work without it."""
    if case.lines & code_lines(case.file):
        return removed_blocks(case)
    if any(number < case.file.first for number in case.lines):
        return _without_keys(case)
    return without(case.text or "", case.lines)


def _without_keys(case: Case) -> Answer:
    lines = (case.text or "").split("\n")
    keys = {
        key: None
        for key in case.file.front
        if any(lines[number - 1].lstrip().startswith(key) for number in case.lines)
    }
    if not keys or "title" in keys:
        return None
    return updated(case.text or "", keys)


def missing(case: Case) -> Answer:
    """Bring a planned page back as it was drafted."""
    return None if case.text is not None or case.draft is None else ended(case.draft)


RULES = {
    "GATE_TOKEN_LEAKED": token,
    "GATE_CONFLICT_MARKER": conflict,
    "GATE_SECRET": secret,
    "GATE_HOST_PATH": secret,
    "GATE_CONTENT_PAGE_MISSING": missing,
}

"""Logs and other records: a chunk for each failure with its stack, and chunks for the rest."""

import json
import re
from collections.abc import Iterator
from typing import Final

from cleats.toolsets.code.analysis.formats.outline import BLOCK_LINES, Outline

_TIMESTAMP_PATTERN = re.compile(
    r"[\[(<]?(\d{4}[-/.]\d\d[-/.]\d\d[T _]\d\d?:\d\d(?::\d\d)?\S{0,12}|\d\d?:\d\d:\d\d\S{0,8}"
    r"|\d\d?/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d"
    r"|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"
)
_LEVEL_PATTERN = re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|FATAL|CRITICAL|PANIC)\b")
_CONTINUATION_PATTERN = re.compile(
    r"\s|Caused by: |Traceback \(most recent call last\)|\.\.\. \d+ more"
    r"|During handling of the above"
    r"|The above exception was|goroutine \d+ \[|at [\w.$<>/]+ ?\(|#\d+ |[\w./]+\(.*\)$"
)
_FAILURE_PATTERN = re.compile(r"((?:[A-Za-z_]\w*[.:]{1,2}){0,20}[A-Z]\w*(?:Error|Exception|Fault|Panic)|panic)\b:?(.*)")
_TAP_FAILURE_PATTERN = re.compile(r"not ok\b\s*\d*\s*-?\s*(.*)")
_MAX_LINE_CHARS: Final = 1000
"""Characters of a line that are examined."""

_MAX_SINGLE_RECORD_LINES: Final = 2000
"""Lines of a JSON Lines file up to which each line is a separate chunk."""

_MIN_STACK_LINES: Final = 3
"""Lines from which an entry is a stack and not a wrapped message."""


def read_log(outline: Outline) -> None:
    """Cut a log into entries, a coverage file by source, test results by failure."""
    lines = outline.source.lines
    if any(line.startswith("SF:") for line in lines[:50]):
        for index, line in enumerate(lines):
            if line.startswith("SF:"):
                outline.cut(index, "record", line[3:].strip())
                outline.add_mention(index, "uses", line[3:].strip())
        return
    group_start: int | None = None
    for first, last in _iterate_entries(lines):
        failure = _find_failure(lines, first, last)
        _add_log_fields(outline, first, lines[first][:_MAX_LINE_CHARS], failure)
        if failure:
            outline.cut(first, "record", failure, signature=lines[first].strip())
            group_start = None
        elif group_start is None or last - group_start >= BLOCK_LINES:
            outline.cut(first, "record", outline.source.stem)
            group_start = first


def read_lines(outline: Outline) -> None:
    """Cut JSON Lines into records with their values as fields."""
    lines = outline.source.lines
    step = 1 if len(lines) <= _MAX_SINGLE_RECORD_LINES else BLOCK_LINES // 3
    for index in range(0, len(lines), step):
        outline.cut(index, "record", outline.source.stem)
    for index, line in enumerate(lines):
        for key, value in _flatten_record(line):
            outline.add_field(index, key, value)


def _iterate_entries(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of each entry, which ends where the next one starts."""
    start = 0
    has_timestamps = any(_TIMESTAMP_PATTERN.match(line) for line in lines[:50])
    for index in range(1, len(lines)):
        line = lines[index][:_MAX_LINE_CHARS]
        if not line or line[0].isspace() or _CONTINUATION_PATTERN.match(line):
            continue
        if has_timestamps and not (_TIMESTAMP_PATTERN.match(line) or _LEVEL_PATTERN.match(line.lstrip("[("))):
            continue
        if not has_timestamps and _is_stack_message(lines, start, index):
            continue
        yield start, index - 1
        start = index
    yield start, len(lines) - 1


def _is_stack_message(lines: list[str], start: int, index: int) -> bool:
    """Return whether a line is the error message that Python prints after a stack, unindented."""
    return index - start >= 2 and lines[start].startswith("Traceback") and lines[index - 1][:1] == " "


def _find_failure(lines: list[str], first: int, last: int) -> str:
    """Return the failure of an entry that has a stack or reports a failed test, or empty text."""
    if match := _TAP_FAILURE_PATTERN.match(lines[first][:_MAX_LINE_CHARS]):
        return match[1].strip() or "not ok"
    if last - first + 1 < _MIN_STACK_LINES:
        return ""
    examined_lines = [*lines[first : first + 5], *lines[max(first + 5, last - 5) : last + 1]]
    matches = [match for line in examined_lines if (match := _FAILURE_PATTERN.search(line[:_MAX_LINE_CHARS]))]
    if not matches:
        return ""
    best = matches[-1] if any(line.startswith("Traceback") for line in examined_lines) else matches[0]
    return f"{best[1]}: {best[2].strip()}" if best[2].strip() else best[1]


def _add_log_fields(outline: Outline, index: int, line: str, failure: str) -> None:
    if stamp := _TIMESTAMP_PATTERN.match(line):
        outline.add_field(index, "time", stamp[1])
    if level := _LEVEL_PATTERN.search(line[:200]):
        outline.add_field(index, "level", level[1].lower())
    if failure:
        outline.add_field(index, "failure", failure)


def _flatten_record(line: str) -> Iterator[tuple[str, str]]:
    try:
        value = json.loads(line) if line[:1] == "{" and len(line) < 65_536 else None
    except (ValueError, RecursionError):
        return
    pending = list(value.items()) if isinstance(value, dict) else []
    for key, item in pending:
        if isinstance(item, dict):
            pending.extend((f"{key}.{child_key}", child) for child_key, child in item.items())
        elif isinstance(item, list):
            pending.extend((key, element) for element in item[:50])
        elif item is not None:
            yield key, item if isinstance(item, str) else json.dumps(item)

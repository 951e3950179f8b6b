"""Logs and other records: one chunk for what failed, with its stack, and one for calm stretches."""

import json
import re
from collections.abc import Iterator
from typing import Final

from cleats.toolsets.code.structure.outline import Outline
from cleats.toolsets.code.structure.source import BLOCK

_STAMP = re.compile(
    r"[\[(<]?(\d{4}[-/.]\d\d[-/.]\d\d[T _]\d\d?:\d\d(?::\d\d)?\S{0,12}|\d\d?:\d\d:\d\d\S{0,8}"
    r"|\d\d?/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d"
    r"|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"
)
_LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|FATAL|CRITICAL|PANIC)\b")
_MORE = re.compile(
    r"\s|Caused by: |Traceback \(most recent call last\)|\.\.\. \d+ more"
    r"|During handling of the above"
    r"|The above exception was|goroutine \d+ \[|at [\w.$<>/]+ ?\(|#\d+ |[\w./]+\(.*\)$"
)
_FAILURE = re.compile(
    r"((?:[A-Za-z_]\w*[.:]{1,2}){0,20}[A-Z]\w*(?:Error|Exception|Fault|Panic)|panic)\b:?(.*)"
)
_NOT_OK = re.compile(r"not ok\b\s*\d*\s*-?\s*(.*)")
_MOST: Final = 1000
"""Characters of a line that are looked at."""

_SINGLE: Final = 2000
"""Lines of JSON up to which each is a record of its own."""

_STACK: Final = 3
"""Lines from which an entry is a stack and not a wrapped message."""


def read(outline: Outline) -> None:
    """Cut a log into entries, a coverage file by source, test results by failure."""
    lines = outline.source.lines
    if any(line.startswith("SF:") for line in lines[:50]):
        _read_coverage(outline)
        return
    calm: int | None = None
    for first, last in _entries(lines):
        failure = _failure(lines, first, last)
        _fields(outline, first, lines[first][:_MOST], failure)
        if failure:
            outline.cut(first, "record", failure, signature=lines[first].strip())
            calm = None
        elif calm is None or last - calm >= BLOCK:
            outline.cut(first, "record", outline.source.stem)
            calm = first


def read_lines(outline: Outline) -> None:
    """Cut JSON Lines into records, whose values are fields."""
    lines = outline.source.lines
    step = 1 if len(lines) <= _SINGLE else BLOCK // 3
    for at in range(0, len(lines), step):
        outline.cut(at, "record", outline.source.stem)
    for at, line in enumerate(lines):
        for key, value in _flat(line):
            outline.field(at, key, value)


def _entries(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Each entry's first and last line. One goes on where a line is not the start of another."""
    start = 0
    stamped = any(_STAMP.match(line) for line in lines[:50])
    for at in range(1, len(lines)):
        line = lines[at][:_MOST]
        if not line or line[0].isspace() or _MORE.match(line):
            continue
        if stamped and not (_STAMP.match(line) or _LEVEL.match(line.lstrip("[("))):
            continue
        if not stamped and _ends_stack(lines, start, at):
            continue
        yield start, at - 1
        start = at
    yield start, len(lines) - 1


def _ends_stack(lines: list[str], start: int, at: int) -> bool:
    """Python says what was wrong after the stack, at the left margin."""
    return at - start >= 2 and lines[start].startswith("Traceback") and lines[at - 1][:1] == " "


def _failure(lines: list[str], first: int, last: int) -> str:
    """What went wrong, if an entry carries a stack or says that a test failed."""
    if found := _NOT_OK.match(lines[first][:_MOST]):
        return found[1].strip() or "not ok"
    if last - first + 1 < _STACK:
        return ""
    looked = [*lines[first : first + 5], *lines[max(first + 5, last - 5) : last + 1]]
    named = [found for line in looked if (found := _FAILURE.search(line[:_MOST]))]
    if not named:
        return ""
    best = named[-1] if any(line.startswith("Traceback") for line in looked) else named[0]
    return f"{best[1]}: {best[2].strip()}" if best[2].strip() else best[1]


def _fields(outline: Outline, at: int, line: str, failure: str) -> None:
    if stamp := _STAMP.match(line):
        outline.field(at, "time", stamp[1])
    if level := _LEVEL.search(line[:200]):
        outline.field(at, "level", level[1].lower())
    if failure:
        outline.field(at, "failure", failure)


def _read_coverage(outline: Outline) -> None:
    for at, line in enumerate(outline.source.lines):
        if line.startswith("SF:"):
            path = line[3:].strip()
            outline.cut(at, "record", path)
            outline.say(at, "uses", path)


def _flat(line: str) -> Iterator[tuple[str, str]]:
    try:
        value = json.loads(line) if line[:1] == "{" and len(line) < 65_536 else None
    except (ValueError, RecursionError):
        return
    waiting = list(value.items()) if isinstance(value, dict) else []
    for key, said in waiting:
        if isinstance(said, dict):
            waiting.extend((f"{key}.{below}", deeper) for below, deeper in said.items())
        elif isinstance(said, list):
            waiting.extend((key, element) for element in said[:50])
        elif said is not None:
            yield key, said if isinstance(said, str) else json.dumps(said)

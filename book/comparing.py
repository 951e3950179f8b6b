"""The comparison of a command's output with a page: literal except for values that vary.

Numbers, spaces, and the paths and ids of one run are not compared. `...` (or `…`) on a line of its
own matches any lines, inside a line any words.
"""

import re
from collections.abc import Sequence

_ELLIPSIS_LINES = ("...", "…")
_ID_PATTERN = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b")
_NUMBER_PATTERN = re.compile(r"\d+(?:[.,:]\d+)*")
_COLOUR_PATTERN = re.compile(r"\x1b\[[0-9;]*m")


def find_difference(expected: str, output: str, home: str) -> str:
    """Return the first expected line that is missing in the output, or an empty string."""
    expected_lines = [_normalize_line(line, home) for line in expected.strip("\n").splitlines()]
    output_lines = [_normalize_line(line, home) for line in output.strip("\n").splitlines()]
    mismatch = _find_mismatch(expected_lines, output_lines)
    if mismatch is None:
        return ""
    return expected.strip("\n").splitlines()[mismatch] if mismatch < len(expected_lines) else "(the end)"


def _find_mismatch(expected_lines: Sequence[str], output_lines: Sequence[str]) -> int | None:
    """Return the number of the first expected line that does not match, or None."""
    reached = {0}
    for number, line in enumerate(expected_lines):
        if line in _ELLIPSIS_LINES:
            reached = set(range(min(reached), len(output_lines) + 1))
            continue
        pattern = _build_pattern(line)
        reached = {
            position + 1
            for position in reached
            if position < len(output_lines) and pattern.fullmatch(output_lines[position]) is not None
        }
        if not reached:
            return number
    return None if len(output_lines) in reached else len(expected_lines)


def _build_pattern(line: str) -> re.Pattern[str]:
    words = re.split(r"\.\.\.|…", line)
    return re.compile(".*".join(map(re.escape, words)))


def _normalize_line(line: str, home: str) -> str:
    line = _COLOUR_PATTERN.sub("", line).replace(home, "~")
    line = _NUMBER_PATTERN.sub("#", _ID_PATTERN.sub("#", line))
    return " ".join(line.split())

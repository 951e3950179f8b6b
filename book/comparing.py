"""Whether a command said what the page shows: word for word, but for what differs by nature.

Numbers, spaces, and the places and ids of one run are not compared. `...` (or `…`) on a line of its
own stands for any lines, inside a line for any words.
"""

import re
from collections.abc import Sequence

_ANY = ("...", "…")
_ID = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def differs(shown: str, said: str, home: str) -> str:
    """What is shown and was not said; empty when all of it was."""
    wanted = [_normal(line, home) for line in shown.strip("\n").splitlines()]
    found = [_normal(line, home) for line in said.strip("\n").splitlines()]
    place = _fits(wanted, found)
    if place is None:
        return ""
    return shown.strip("\n").splitlines()[place] if place < len(wanted) else "(the end)"


def _fits(wanted: Sequence[str], found: Sequence[str]) -> int | None:
    """None when every line is there, else the first of the wanted lines that no line is like."""
    reached = {0}
    for number, line in enumerate(wanted):
        if line in _ANY:
            reached = set(range(min(reached), len(found) + 1))
            continue
        pattern = _pattern(line)
        reached = {
            at + 1 for at in reached if at < len(found) and pattern.fullmatch(found[at]) is not None
        }
        if not reached:
            return number
    return None if len(found) in reached else len(wanted)


def _pattern(line: str) -> re.Pattern[str]:
    words = re.split(r"\.\.\.|…", line)
    return re.compile(".*".join(map(re.escape, words)))


def _normal(line: str, home: str) -> str:
    line = _COLOUR.sub("", line).replace(home, "~")
    line = _NUMBER.sub("#", _ID.sub("#", line))
    return " ".join(line.split())

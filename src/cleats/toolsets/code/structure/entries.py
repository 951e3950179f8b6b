"""Entries of data and configuration: which keys get a chunk of their own, and which share one.

A chunk for every line would drown what matters, one for the whole file would hide it. So what has
a body of its own stands alone, single values stand together, and what is long is cut again by the
keys in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cleats.toolsets.code.structure.outline import Outline
from cleats.toolsets.code.structure.source import BLOCK

SMALL_ELEMENT: Final = 20
"""Lines up to which an element of a list, which has no name, stays with its neighbours."""


@dataclass(slots=True)
class Entry:
    """A key of the first or second level, and where it stands."""

    line: int
    key: str
    """An element of a list without a name is `[]`."""
    body: bool
    """Whether it holds more than a single value."""
    last: int = 0
    entries: list["Entry"] = field(default_factory=list)


def cut_entries(outline: Outline, entries: Sequence[Entry], last: int, name: str = "") -> None:
    """Cut the lines of some entries, the last of which ends with line `last`.

    `name` is what they belong to: a document among several, such as a manifest.
    """
    _close(entries, last)
    _cut(outline, entries, name or outline.source.stem, f"{name}." if name else "")


def _close(entries: Sequence[Entry], last: int) -> None:
    ends = [*(entry.line - 1 for entry in entries[1:]), last]
    for entry, end in zip(entries, ends, strict=False):
        entry.last = max(end, entry.line)
        _close(entry.entries, entry.last)


def _cut(outline: Outline, entries: Sequence[Entry], around: str, prefix: str) -> None:
    loose: list[Entry] = []
    for entry in entries:
        lines = entry.last - entry.line + 1
        named = entry.key != "[]"
        if lines == 1 or not entry.body or (not named and lines < SMALL_ELEMENT):
            if loose and entry.last - loose[0].line >= BLOCK:
                _together(outline, loose, around, prefix)
            loose.append(entry)
            continue
        _together(outline, loose, around, prefix)
        full = prefix + entry.key if named else around
        outline.cut(entry.line, "entry", full)
        if lines > BLOCK:
            _cut(outline, entry.entries, full, f"{full}.")
    _together(outline, loose, around, prefix)


def _together(outline: Outline, loose: list[Entry], around: str, prefix: str) -> None:
    if loose:
        alone = len(loose) == 1 and loose[0].key != "[]"
        outline.cut(loose[0].line, "entry", prefix + loose[0].key if alone else around)
        loose.clear()

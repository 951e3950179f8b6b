"""Entries of data and configuration: keys with a separate chunk, and keys that share one.

A chunk for every line would drown the important ones, one chunk for the whole file would hide them.
So an entry with a body gets a separate chunk, single values share one, and a long entry is divided
again by its keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cleats.toolsets.code.analysis.formats.outline import BLOCK_LINES, Outline

MIN_ELEMENT_LINES: Final = 20
"""Lines from which an unnamed element of a list gets a separate chunk."""


@dataclass(slots=True)
class DataEntry:
    """A key of the first or second level, and its lines."""

    line: int
    key: str
    """The key; `[]` for an unnamed element of a list."""
    body: bool
    """True if the entry holds more than a single value."""
    last: int = 0
    entries: list["DataEntry"] = field(default_factory=list)


def cut_entries(outline: Outline, entries: Sequence[DataEntry], last: int, name: str = "") -> None:
    """Cut the lines of some entries, the last of which ends with line `last`.

    `name` is the document they belong to, such as a manifest among several in a file.
    """
    _set_last_lines(entries, last)
    _cut_level(outline, entries, name or outline.source.stem, f"{name}." if name else "")


def _set_last_lines(entries: Sequence[DataEntry], last: int) -> None:
    ends = [*(entry.line - 1 for entry in entries[1:]), last]
    for entry, end in zip(entries, ends, strict=False):
        entry.last = max(end, entry.line)
        _set_last_lines(entry.entries, entry.last)


def _cut_level(outline: Outline, entries: Sequence[DataEntry], parent_name: str, prefix: str) -> None:
    small_entries: list[DataEntry] = []
    for entry in entries:
        lines = entry.last - entry.line + 1
        has_name = entry.key != "[]"
        if lines == 1 or not entry.body or (not has_name and lines < MIN_ELEMENT_LINES):
            if small_entries and entry.last - small_entries[0].line >= BLOCK_LINES:
                _cut_small_entries(outline, small_entries, parent_name, prefix)
            small_entries.append(entry)
            continue
        _cut_small_entries(outline, small_entries, parent_name, prefix)
        full_name = prefix + entry.key if has_name else parent_name
        outline.cut(entry.line, "entry", full_name)
        if lines > BLOCK_LINES:
            _cut_level(outline, entry.entries, full_name, f"{full_name}.")
    _cut_small_entries(outline, small_entries, parent_name, prefix)


def _cut_small_entries(outline: Outline, small_entries: list[DataEntry], parent_name: str, prefix: str) -> None:
    if small_entries:
        is_single = len(small_entries) == 1 and small_entries[0].key != "[]"
        outline.cut(small_entries[0].line, "entry", prefix + small_entries[0].key if is_single else parent_name)
        small_entries.clear()

"""JSON and its relatives with comments, read by one pass over the tokens; nothing is built.

Broken text is read as far as it goes: brackets that do not match are not complained about.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from cleats.toolsets.code.structure.entries import Entry, cut_entries
from cleats.toolsets.code.structure.outline import MOST_MENTIONS, MOST_TEXT, Outline

_TOKEN = re.compile(
    r"\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?|//[^\n]*|/\*.*?(?:\*/|\Z)|[{}\[\],:]"
    r"|[^\s{}\[\],:\"'/]++|/",
    re.DOTALL,
)
_DEEPEST: Final = 8
"""Keys a dotted name may have; what is nested deeper has no field."""


@dataclass(slots=True)
class Level:
    """A bracket that is open: whose value it is, and what stands before the next value in it."""

    path: str
    is_list: bool
    entry: Entry | None
    key: str = ""
    key_line: int = -1
    waiting: str = ""
    """A word that is a key if a colon follows, else a value."""


@dataclass(slots=True)
class Reading:
    """One pass over a text."""

    outline: Outline
    top: list[Entry] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    fields: int = 0

    def run(self) -> None:
        text = "\n".join(self.outline.source.lines)
        line = at = 0
        for found in _TOKEN.finditer(text):
            line += text.count("\n", at, found.start())
            at = found.start()
            word = found[0]
            if not word.startswith(("//", "/*")):
                self._word(word, line)

    def _word(self, word: str, line: int) -> None:
        level = self.levels[-1] if self.levels else None
        if word in "{[":
            self._open(level, word == "[", line)
        elif word in "}]":
            self._settle(level)
            if level is not None:
                self.levels.pop()
        elif level is None:
            return
        elif word == ",":
            self._settle(level)
        elif word == ":":
            level.key, level.waiting = level.waiting, ""
        else:
            level.waiting = _text(word)
            if level.is_list or not level.key:
                level.key_line = line

    def _open(self, level: Level | None, is_list: bool, line: int) -> None:
        if level is None:
            self.levels.append(Level("", is_list, None))
            return
        entry = self._enter(level, line, body=True)
        path = self._path(level)
        level.key, level.waiting = "", ""
        self.levels.append(Level(path, is_list, entry))

    def _settle(self, level: Level | None) -> None:
        """A single value has ended, if there was one."""
        if level is None or not level.waiting:
            return
        self._enter(level, level.key_line, body=False)
        path = self._path(level)
        if path and len(self.levels) <= _DEEPEST and self.fields < MOST_MENTIONS:
            self.fields += 1
            self.outline.field(level.key_line, path, level.waiting)
        level.key, level.waiting = "", ""

    def _path(self, level: Level) -> str:
        if len(self.levels) > _DEEPEST or not level.key:
            return level.path
        return f"{level.path}.{level.key}" if level.path else level.key

    def _enter(self, level: Level, line: int, *, body: bool) -> Entry | None:
        depth = len(self.levels)
        if depth > 2:
            return None
        into = self.top if depth == 1 else level.entry.entries if level.entry else self.top
        start = level.key_line if level.key else line
        entry = Entry(start, level.key or "[]", body)
        into.append(entry)
        return entry


def read(outline: Outline) -> None:
    reading = Reading(outline)
    reading.run()
    if reading.top:
        reading.top[0].line = 0  # a bracket alone is nothing to find
    cut_entries(outline, reading.top, len(outline.source.lines) - 1)


def _text(word: str) -> str:
    bare = word[: MOST_TEXT + 2]
    return bare.strip(bare[0]) if bare[0] in "\"'" else bare

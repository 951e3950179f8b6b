"""JSON and its relatives with comments, read in one pass over the tokens without building values.

Broken text is read as far as possible: mismatched brackets are not reported.
"""

import re
from dataclasses import dataclass, field

from cleats.toolsets.code.analysis.formats.outline import (
    MAX_FILE_MENTIONS,
    MAX_KEY_DEPTH,
    MAX_VALUE_CHARS,
    DataEntry,
    Outline,
    cut_entries,
)

_TOKEN_PATTERN = re.compile(
    r"\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?|//[^\n]*|/\*.*?(?:\*/|\Z)|[{}\[\],:]"
    r"|[^\s{}\[\],:\"'/]++|/",
    re.DOTALL,
)


@dataclass(slots=True)
class JsonLevel:
    """An open bracket: the value it belongs to, and the text before its next value."""

    path: str
    is_list: bool
    entry: DataEntry | None
    key: str = ""
    key_line: int = -1
    pending_word: str = ""
    """A word that is a key if a colon follows, and otherwise a value."""


@dataclass(slots=True)
class JsonReader:
    """One pass over a text."""

    outline: Outline
    top_entries: list[DataEntry] = field(default_factory=list)
    levels: list[JsonLevel] = field(default_factory=list)
    field_count: int = 0

    def run(self) -> None:
        text = "\n".join(self.outline.source.lines)
        line = offset = 0
        for match in _TOKEN_PATTERN.finditer(text):
            line += text.count("\n", offset, match.start())
            offset = match.start()
            token = match[0]
            if not token.startswith(("//", "/*")):
                self._read_token(token, line)

    def _read_token(self, token: str, line: int) -> None:
        level = self.levels[-1] if self.levels else None
        if token in "{[":
            self._open_level(level, token == "[", line)
        elif token in "}]":
            self._finish_value(level)
            if level is not None:
                self.levels.pop()
        elif level is None:
            return
        elif token == ",":
            self._finish_value(level)
        elif token == ":":
            level.key, level.pending_word = level.pending_word, ""
        else:
            level.pending_word = _unquote_word(token)
            if level.is_list or not level.key:
                level.key_line = line

    def _open_level(self, level: JsonLevel | None, is_list: bool, line: int) -> None:
        if level is None:
            self.levels.append(JsonLevel("", is_list, None))
            return
        entry = self._add_entry(level, line, body=True)
        path = self._build_path(level)
        level.key, level.pending_word = "", ""
        self.levels.append(JsonLevel(path, is_list, entry))

    def _finish_value(self, level: JsonLevel | None) -> None:
        """Record the single value that has ended, if there was one."""
        if level is None or not level.pending_word:
            return
        self._add_entry(level, level.key_line, body=False)
        path = self._build_path(level)
        if path and len(self.levels) <= MAX_KEY_DEPTH and self.field_count < MAX_FILE_MENTIONS:
            self.field_count += 1
            self.outline.add_field(level.key_line, path, level.pending_word)
        level.key, level.pending_word = "", ""

    def _build_path(self, level: JsonLevel) -> str:
        if len(self.levels) > MAX_KEY_DEPTH or not level.key:
            return level.path
        return f"{level.path}.{level.key}" if level.path else level.key

    def _add_entry(self, level: JsonLevel, line: int, *, body: bool) -> DataEntry | None:
        depth = len(self.levels)
        if depth > 2:
            return None
        siblings = self.top_entries if depth == 1 else level.entry.entries if level.entry else self.top_entries
        start = level.key_line if level.key else line
        entry = DataEntry(start, level.key or "[]", body)
        siblings.append(entry)
        return entry


def read_json(outline: Outline) -> None:
    reader = JsonReader(outline)
    reader.run()
    if reader.top_entries:
        reader.top_entries[0].line = 0  # a chunk with only a bracket is useless
    cut_entries(outline, reader.top_entries, len(outline.source.lines) - 1)


def _unquote_word(word: str) -> str:
    bare = word[: MAX_VALUE_CHARS + 2]
    return bare.strip(bare[0]) if bare[0] in "\"'" else bare

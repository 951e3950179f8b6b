"""Data and configuration: JSON, TOML, INI and YAML, cut into entries, with single values as fields.

Broken text is read as far as possible, and nothing is resolved or executed. JSON with or without comments is read in
one pass over the tokens without building values, YAML by indentation.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec import Struct

from cleats.toolsets.code.analysis.formats.outline import (
    BLOCK_LINES,
    MAX_FILE_MENTIONS,
    MAX_KEY_DEPTH,
    MAX_LINE_CHARS,
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


class JsonLevel(Struct):
    """An open bracket: the value it belongs to, and the text before its next value."""

    path: str
    is_list: bool
    entry: DataEntry | None
    key: str = ""
    key_line: int = -1
    pending_word: str = ""
    """A word that is a key if a colon follows, and otherwise a value."""


class JsonReader(Struct):
    """One pass over a text."""

    outline: Outline
    top_entries: list[DataEntry] = []
    levels: list[JsonLevel] = []
    field_count: int = 0

    def read_token(self, token: str, line: int) -> None:
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
            bare = token[: MAX_VALUE_CHARS + 2]
            level.pending_word = bare.strip(bare[0]) if bare[0] in "\"'" else bare
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
        siblings = level.entry.entries if depth == 2 and level.entry else self.top_entries
        entry = DataEntry(level.key_line if level.key else line, level.key or "[]", body)
        siblings.append(entry)
        return entry


def read_json(outline: Outline) -> None:
    reader, text = JsonReader(outline), outline.source.text
    line = offset = 0
    for match in _TOKEN_PATTERN.finditer(text):
        line += text.count("\n", offset, match.start())
        offset = match.start()
        if not match[0].startswith(("//", "/*")):
            reader.read_token(match[0], line)
    if reader.top_entries:
        reader.top_entries[0].line = 0  # a chunk with only a bracket is useless
    cut_entries(outline, reader.top_entries, len(outline.source.lines) - 1)


_TOML_TABLE_PATTERN = re.compile(r"\s{0,40}\[{1,2}([^\[\]]{1,300})\]{1,2}\s*(?:#.*)?$")
_INI_TABLE_PATTERN = re.compile(r"\s{0,40}\[(.{1,300}?)\]\s*(?:[;#].*)?$")
_INI_VALUE_PATTERN = re.compile(r"\s{0,40}([^\s=:#;\[][^=:#]{0,200}?)[ \t]{0,20}[=:][ \t]*(.*)")
_TOML_VALUE_PATTERN = re.compile(r"\s{0,40}([\w\"'.-][^=#]{0,200}?)[ \t]{0,20}=[ \t]*(.*)")
_STRING_OR_COMMENT_PATTERN = re.compile(r"\"(?:[^\"\\]++|\\.)*+\"|'[^']*'|#.*$")
_MULTILINE_QUOTES: Final = ('"""', "'''")
_MULTILINE_OPENERS: Final = ("[", "{", "", *_MULTILINE_QUOTES)
"""Beginnings of values that continue on the next lines."""


def read_toml(outline: Outline) -> None:
    table = quote = key = ""
    depth = 0
    for index, full_line in enumerate(outline.source.lines):
        line = full_line[:MAX_LINE_CHARS]
        if quote:
            quote = "" if quote in line else quote
            continue
        if depth == 0 and (match := _TOML_TABLE_PATTERN.match(line)):
            table = match[1].strip()
            outline.cut(outline.source.find_comment_start(index, "#", ";"), "entry", table)
            continue
        if depth == 0 and (match := _TOML_VALUE_PATTERN.match(line)):
            key = _add_value(outline, index, table, match)
        elif depth and (item := line.split("#", 1)[0].strip(" \t\r,[]\"'")):
            outline.add_field(index, key, item)
        quote = next((mark for mark in _MULTILINE_QUOTES if line.count(mark) == 1), "")
        bare = _STRING_OR_COMMENT_PATTERN.sub("", line.split(quote, 1)[0] if quote else line)
        depth = max(depth + bare.count("[") - bare.count("]"), 0)


def read_ini(outline: Outline) -> None:
    table = ""
    for index, full_line in enumerate(outline.source.lines):
        line = full_line[:MAX_LINE_CHARS]
        if line.lstrip().startswith(("#", ";", "!")):
            continue
        if match := _INI_TABLE_PATTERN.match(line):
            table = match[1].strip()
            outline.cut(outline.source.find_comment_start(index, "#", ";"), "entry", table)
        elif match := _INI_VALUE_PATTERN.match(line):
            _add_value(outline, index, table, match)


def _add_value(outline: Outline, index: int, table: str, match: re.Match[str]) -> str:
    key = match[1].strip().strip("\"'")
    value = match[2].strip()
    if value[:1] in ("'", '"') and (close := value.find(value[0], 1)) > 0:
        value = value[1:close]
    full_key = f"{table}.{key}" if table else key
    if value not in _MULTILINE_OPENERS:
        outline.add_field(index, full_key, value.split(" #", 1)[0].rstrip())
    return full_key


_KEY_PATTERN = re.compile(
    r"(?P<dashes>(?:-[ \t]+)*)(?P<key>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s#&*!|>'\"%@`{\[\],-]"
    r"[^:#\n]{0,200}?|-[^\s:][^:#\n]{0,200}?)[ \t]{0,20}:(?:[ \t]+(?P<value>.*))?$"
)
_BLOCK_SCALAR_PATTERN = re.compile(r"(?:^|[ \t])[|>][-+\d]*[ \t]*(?:#.*)?$")
_COMMENT_PATTERN = re.compile(r"(?:^|[ \t])#.*$")
_DOCUMENT_START_PATTERN = re.compile(r"---(?:[ \t\r]|$)")


class YamlLine(NamedTuple):
    """A line with content: its index, indentation, key and value."""

    line_index: int
    indent: int
    column: int
    """The column of its key, which for an item of a list is right of the dash."""
    is_item: bool
    key: str
    value: str


def read_yaml(outline: Outline) -> None:
    lines = outline.source.lines
    starts = [index for index, line in enumerate(lines) if index and _DOCUMENT_START_PATTERN.match(line)]
    for first, end in pairwise([0, *starts, len(lines)]):
        _read_document(outline, first, end)


def read_fields(outline: Outline, first: int, end: int) -> None:
    """Read only the values, as for the front matter of a document."""
    for scalar in _iterate_scalars(list(_iterate_content_lines(outline.source.lines, first, end))):
        outline.add_field(*scalar)


def _read_document(outline: Outline, first: int, end: int) -> None:
    content_lines = list(_iterate_content_lines(outline.source.lines, first, end))
    if not content_lines:
        return
    manifest: dict[str, str] = {}
    for index, key, value in _iterate_scalars(content_lines):
        outline.add_field(index, key, value)
        manifest.setdefault(key, value)
    name = ""
    if "kind" in manifest and "apiVersion" in manifest:
        name = f"{manifest['kind']}/{manifest.get('metadata.name', '')}".rstrip("/")
        outline.cut(first, "entry", name)
        if end - first <= BLOCK_LINES:
            return
    cut_entries(outline, _build_entries(outline, content_lines), end - 1, name)


def _build_entries(outline: Outline, content_lines: list[YamlLine]) -> list[DataEntry]:
    base = min(line.indent for line in content_lines)
    is_list = next(line.is_item for line in content_lines if line.indent == base)
    top_entries: list[DataEntry] = []
    child_column = 0
    for line in content_lines:
        # The items of a list may have the same indentation as their key.
        if not top_entries or (line.indent == base and line.is_item == is_list):
            top_entries.append(_build_entry(outline, line))
            child_column = 0
            continue
        top_entries[-1].body = True
        child_column = child_column or line.column
        if line.column == child_column or (line.is_item and line.indent < child_column):
            child_column = line.column
            top_entries[-1].entries.append(_build_entry(outline, line))
    return top_entries


def _build_entry(outline: Outline, line: YamlLine) -> DataEntry:
    key = line.key if not line.is_item else line.value if line.key in ("name", "id") else ""
    start = outline.source.find_comment_start(line.line_index, "#")
    return DataEntry(start, key or "[]", line.is_item or not line.value)


def _iterate_content_lines(lines: list[str], first: int, end: int) -> Iterator[YamlLine]:
    scalar_column: int | None = None
    for index in range(first, end):
        text = lines[index].strip()
        if not text or text.startswith("#"):
            continue
        indent = len(lines[index]) - len(lines[index].lstrip(" "))
        if scalar_column is not None and indent > scalar_column:
            continue
        scalar_column = None
        if text.startswith(("---", "...", "%")) and indent == 0:
            continue
        line = _parse_line(index, indent, text[:MAX_LINE_CHARS])
        if _BLOCK_SCALAR_PATTERN.search(text[:MAX_LINE_CHARS]):
            scalar_column = line.column
            line = line._replace(value="")
        yield line


def _parse_line(index: int, indent: int, text: str) -> YamlLine:
    is_item = text == "-" or text.startswith("- ")
    match = _KEY_PATTERN.match(text)
    if match is None:
        return YamlLine(index, indent, indent, is_item, "", _parse_scalar(text[1:].strip()) if is_item else "")
    key = match["key"].strip("\"'")
    return YamlLine(index, indent, indent + match.end(1), is_item, key, _parse_scalar(match["value"] or ""))


def _parse_scalar(text: str) -> str:
    if text[:1] in ("'", '"'):
        close = text.find(text[0], 1)
        return text[1:close] if close > 0 else text[1:]
    return _COMMENT_PATTERN.sub("", text).strip()


def _iterate_scalars(content_lines: list[YamlLine]) -> Iterator[tuple[int, str, str]]:
    """Yield every single value with its dotted key; the elements of a list share the list's key."""
    ancestors: list[tuple[int, str]] = []
    for line in content_lines:
        # A list may have the same indentation as its key: the dash counts as one more level.
        depth = line.indent + 1 if line.is_item else line.indent
        while ancestors and ancestors[-1][0] >= depth:
            ancestors.pop()
        if len(ancestors) >= MAX_KEY_DEPTH:
            continue
        path = ".".join(key for _, key in ancestors)
        key = f"{path}.{line.key}" if path and line.key else path or line.key
        if line.value:
            yield line.line_index, key, line.value
        elif line.key:
            ancestors.append((line.column, line.key))

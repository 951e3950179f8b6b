"""TOML, INI and properties: a chunk for each table, its values as fields."""

import re
from typing import Final

from cleats.toolsets.code.analysis.formats.outline import MAX_LINE_CHARS, Outline

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

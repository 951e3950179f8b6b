"""TOML, INI and properties: a chunk for each table, its values as fields."""

import re
from typing import Final

from cleats.toolsets.code.structure.outline import Outline

_TOML_TABLE = re.compile(r"\s{0,40}\[{1,2}([^\[\]]{1,300})\]{1,2}\s*(?:#.*)?$")
_INI_TABLE = re.compile(r"\s{0,40}\[(.{1,300}?)\]\s*(?:[;#].*)?$")
_VALUE = re.compile(r"\s{0,40}([^\s=:#;\[][^=:#]{0,200}?)[ \t]{0,20}[=:][ \t]*(.*)")
_TOML_VALUE = re.compile(r"\s{0,40}([\w\"'.-][^=#]{0,200}?)[ \t]{0,20}=[ \t]*(.*)")
_STRINGS = re.compile(r"\"(?:[^\"\\]++|\\.)*+\"|'[^']*'|#.*$")
_QUOTES: Final = ('"""', "'''")
_OPENED: Final = ("[", "{", "", *_QUOTES)
"""What a value that goes on below begins with."""

_MOST: Final = 2000
"""Characters of a line that are looked at."""


def read_toml(outline: Outline) -> None:
    table = quote = key = ""
    depth = 0
    for at, whole in enumerate(outline.source.lines):
        line = whole[:_MOST]
        if quote:
            quote = "" if quote in line else quote
            continue
        if depth == 0 and (found := _TOML_TABLE.match(line)):
            table = found[1].strip()
            outline.cut(_with_comment(outline, at), "entry", table)
            continue
        if depth == 0 and (found := _TOML_VALUE.match(line)):
            key = _value(outline, at, table, found)
        elif depth and (item := line.split("#", 1)[0].strip(" \t\r,[]\"'")):
            outline.field(at, key, item)
        quote = next((mark for mark in _QUOTES if line.count(mark) == 1), "")
        bare = _STRINGS.sub("", line.split(quote, 1)[0] if quote else line)
        depth = max(depth + bare.count("[") - bare.count("]"), 0)


def read_ini(outline: Outline) -> None:
    table = ""
    for at, whole in enumerate(outline.source.lines):
        line = whole[:_MOST]
        if line.lstrip().startswith(("#", ";", "!")):
            continue
        if found := _INI_TABLE.match(line):
            table = found[1].strip()
            outline.cut(_with_comment(outline, at), "entry", table)
        elif found := _VALUE.match(line):
            _value(outline, at, table, found)


def _value(outline: Outline, at: int, table: str, found: re.Match[str]) -> str:
    key = found[1].strip().strip("\"'")
    value = found[2].strip()
    if value[:1] in ("'", '"') and (close := value.find(value[0], 1)) > 0:
        value = value[1:close]
    whole = f"{table}.{key}" if table else key
    if value not in _OPENED:
        outline.field(at, whole, value.split(" #", 1)[0].rstrip())
    return whole


def _with_comment(outline: Outline, at: int) -> int:
    while at > 0 and outline.source.lines[at - 1].lstrip().startswith(("#", ";")):
        at -= 1
    return at

"""On which line of a manifest a key stands. Parsers give values, readers want places."""

import re
from collections.abc import Sequence


def toml_line(text: str, table: str, key: str = "") -> int:
    """The line of `key` in `[table]`, or of the table itself; 1 when it cannot be found."""
    current = ""
    bare = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*(=|\.)")
    dotted = f"{table}.{key}" if key else table
    parent, _, last = table.rpartition(".")
    inner = re.compile(rf"\s*{re.escape(last)}\s*\.\s*[\"']?{re.escape(key)}[\"']?\s*=")
    top = re.compile(rf"\s*{re.escape(dotted)}\s*=")
    for number, line in enumerate(text.split("\n"), start=1):
        if head := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            current = head[1].replace('"', "").replace("'", "").replace(" ", "")
            if current == dotted:
                return number
        elif (
            (key and current == table and bare.match(line))
            or (not current and top.match(line))
            or (key and current == parent and inner.match(line))
        ):
            return number
    return toml_line(text, table) if key else 1


def item_line(text: str, start: int, value: str) -> int:
    """The first line from `start` on that holds a value in quotes; `start` when none does."""
    lines = text.split("\n")
    for number in range(start, min(start + 400, len(lines)) + 1):
        if f'"{value}"' in lines[number - 1] or f"'{value}'" in lines[number - 1]:
            return number
    return start


def json_line(text: str, keys: Sequence[str]) -> int:
    """The line of a key in nested objects; 1 when it cannot be found."""
    depth, wanted, position = 0, 0, 0
    pattern = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]')
    while match := pattern.search(text, position):
        position = match.end()
        mark = match[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            wanted = min(wanted, max(depth - 1, 0))
        elif match[2] and depth == wanted + 1 and match[1] == keys[wanted]:
            wanted += 1
            if wanted == len(keys):
                return text.count("\n", 0, match.start()) + 1
    return 1


def pattern_line(text: str, pattern: str) -> int:
    """The line of the first match; 1 when there is none."""
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 1

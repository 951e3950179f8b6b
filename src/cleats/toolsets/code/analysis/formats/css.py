"""Style sheets: rules in readable groups, named after the elements that they style."""

import re
from typing import Final

from cleats.toolsets.code.analysis.formats.outline import BLOCK_LINES, Outline

_TOKEN_PATTERN = re.compile(
    r"/\*.*?(?:\*/|\Z)|//[^\n]*|\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?|[{};]", re.DOTALL
)
_IMPORT_PATTERN = re.compile(r"@(?:import|use|forward)\s+(?:url\()?[\"']?([^\"')\s;]+)")
_SELECTOR_PATTERN = re.compile(r"[.#]([A-Za-z_][\w-]{0,100})")
_VARIABLE_PATTERN = re.compile(r"((?:--|\$|@)[\w-]{1,100})\s{0,20}:\s{0,20}([^;{}\n]{1,200})")
_VARIABLE_USE_PATTERN = re.compile(r"var\(\s{0,20}(--[\w-]{1,100})")
_TITLE_PATTERN = re.compile(r"[\w][^\n*]{0,100}")
_MAX_LINE_CHARS: Final = 2000
"""Characters of a line that are examined."""


def read_css(outline: Outline) -> None:
    text = "\n".join(outline.source.lines)
    line = offset = depth = rule_start = 0
    group_line: int | None = None
    title = ""
    for match in _TOKEN_PATTERN.finditer(text):
        line += text.count("\n", offset, match.start())
        offset = match.start()
        token = match[0]
        if token.startswith("/*"):
            if depth == 0 and not text[rule_start:offset].strip():
                group_line, title, rule_start = None, _comment_title(token), match.end()
                outline.cut(line, "element", title or outline.source.stem)
                group_line = line
        elif token == "{":
            if depth == 0:
                first = line - text[rule_start:offset].lstrip().count("\n")
                if group_line is None or (first - group_line >= BLOCK_LINES and first > group_line):
                    outline.cut(first, "element", title or _format_selector(text[rule_start:offset]))
                    group_line = first
            depth += 1
        elif token == "}":
            depth = max(depth - 1, 0)
        if token in "};" and depth == 0:
            rule_start = match.end()
    _collect_mentions(outline)


def _comment_title(comment: str) -> str:
    match = _TITLE_PATTERN.search(comment[:_MAX_LINE_CHARS])
    return match[0].strip(" -=/") if match else ""


def _format_selector(text: str) -> str:
    return " ".join(text[-_MAX_LINE_CHARS:].split())[:100]


def _collect_mentions(outline: Outline) -> None:
    for index, full_line in enumerate(outline.source.lines):
        line = full_line[:_MAX_LINE_CHARS]
        if "@" in line and (match := _IMPORT_PATTERN.search(line)):
            outline.add_import(match[1])
        if line.rstrip().endswith(("{", ",")):
            for match in _SELECTOR_PATTERN.finditer(line):
                outline.add_mention(index, "uses", match[1])
        for match in _VARIABLE_USE_PATTERN.finditer(line):
            outline.add_mention(index, "uses", match[1])
        for match in _VARIABLE_PATTERN.finditer(line):
            outline.add_field(index, match[1], match[2].strip())

"""Style sheets: rules in groups that a person can read, named after what they style."""

import re
from typing import Final

from cleats.toolsets.code.structure.outline import Outline
from cleats.toolsets.code.structure.source import BLOCK

_TOKEN = re.compile(
    r"/\*.*?(?:\*/|\Z)|//[^\n]*|\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?|[{};]", re.DOTALL
)
_IMPORT = re.compile(r"@(?:import|use|forward)\s+(?:url\()?[\"']?([^\"')\s;]+)")
_SELECTED = re.compile(r"[.#]([A-Za-z_][\w-]{0,100})")
_VARIABLE = re.compile(r"((?:--|\$|@)[\w-]{1,100})\s{0,20}:\s{0,20}([^;{}\n]{1,200})")
_USED = re.compile(r"var\(\s{0,20}(--[\w-]{1,100})")
_TITLE = re.compile(r"[\w][^\n*]{0,100}")
_MOST: Final = 2000
"""Characters of a line that are looked at."""


def read(outline: Outline) -> None:
    text = "\n".join(outline.source.lines)
    line = at = depth = begun = 0
    group: int | None = None
    title = ""
    for found in _TOKEN.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        word = found[0]
        if word.startswith("/*"):
            if depth == 0 and not text[begun:at].strip():
                group, title, begun = None, _title(word), found.end()
                outline.cut(line, "element", title or outline.source.stem)
                group = line
        elif word == "{":
            if depth == 0:
                first = line - text[begun:at].lstrip().count("\n")
                if group is None or (first - group >= BLOCK and first > group):
                    outline.cut(first, "element", title or _selector(text[begun:at]))
                    group = first
            depth += 1
        elif word == "}":
            depth = max(depth - 1, 0)
        if word in "};" and depth == 0:
            begun = found.end()
    _mentions(outline)


def _title(comment: str) -> str:
    found = _TITLE.search(comment[:_MOST])
    return found[0].strip(" -=/") if found else ""


def _selector(text: str) -> str:
    return " ".join(text[-_MOST:].split())[:100]


def _mentions(outline: Outline) -> None:
    for at, whole in enumerate(outline.source.lines):
        line = whole[:_MOST]
        if "@" in line and (found := _IMPORT.search(line)):
            outline.imported(found[1])
        if line.rstrip().endswith(("{", ",")):
            for found in _SELECTED.finditer(line):
                outline.say(at, "uses", found[1])
        for found in _USED.finditer(line):
            outline.say(at, "uses", found[1])
        for found in _VARIABLE.finditer(line):
            outline.field(at, found[1], found[2].strip())

"""Makefiles: a chunk for each target, its prerequisites as uses, variables as fields."""

import re
from typing import Final

from cleats.toolsets.code.structure.outline import Outline

_ASSIGNED = re.compile(
    r"(?:export\s+|override\s+)*+([\w.%/$(){}-]{1,200})\s*(?:[:?+!]|::)?=\s*(.*)"
)
_TARGET = re.compile(r"([^\s#:=][^#:=]{0,500}?)\s{0,20}::?(?![:=])([^=]*)$")
_INCLUDE = re.compile(r"-?s?include\s+(.+)")
_COMMAND = re.compile(r"\t\s{0,40}[@+-]*\s*([\w./$(){}-]{1,100})")
_DOC = re.compile(r"##+\s*(.*)")
_SPECIAL: Final = frozenset(
    {".PHONY", ".SUFFIXES", ".DEFAULT", ".PRECIOUS", ".SECONDARY", ".SILENT"}
)
_MOST: Final = 2000
"""Characters of a line that are looked at."""


def read(outline: Outline) -> None:
    lines = outline.source.lines
    defining = False
    for at, whole in enumerate(lines):
        line = whole[:_MOST]
        if line.startswith(("define ", "endef")):
            defining = line.startswith("define ")
        elif line.startswith("\t"):
            if found := _COMMAND.match(line):
                outline.say(at, "calls", found[1])
        elif defining or not line.strip() or (at and lines[at - 1].rstrip().endswith("\\")):
            continue
        elif found := _INCLUDE.match(line):
            for name in found[1].split():
                outline.imported(name)
        elif found := _ASSIGNED.match(line):
            outline.field(at, found[1], found[2].strip())
        elif found := _TARGET.match(_uncommented(line)):
            _target(outline, at, found)


def _target(outline: Outline, at: int, found: re.Match[str]) -> None:
    name = found[1].strip()
    if name in _SPECIAL:
        return
    lines = outline.source.lines
    start = at
    while start > 0 and (
        lines[start - 1].startswith("#") or lines[start - 1].startswith((".PHONY", ".SILENT"))
    ):
        start -= 1
    said = _DOC.search(lines[at][:_MOST])
    above = " ".join(line.strip("# \t") for line in lines[start:at] if line.startswith("#"))
    doc = said[1].strip() if said else above
    outline.cut(start, "target", name, doc, _uncommented(lines[at][:_MOST]))
    for word in found[2].split(";", 1)[0].split():
        if word not in ("|", "\\"):
            outline.say(at, "uses", word)


def _uncommented(line: str) -> str:
    return line.split("#", 1)[0].rstrip()

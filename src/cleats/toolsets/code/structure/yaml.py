"""YAML by its indentation: entries, documents, manifests. Nothing is resolved or executed."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from cleats.toolsets.code.structure.entries import Entry, cut_entries
from cleats.toolsets.code.structure.outline import Outline
from cleats.toolsets.code.structure.source import BLOCK

_KEY = re.compile(
    r"(?P<dashes>(?:-[ \t]+)*)(?P<key>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s#&*!|>'\"%@`{\[\],-]"
    r"[^:#\n]{0,200}?|-[^\s:][^:#\n]{0,200}?)[ \t]{0,20}:(?:[ \t]+(?P<value>.*))?$"
)
_BLOCK_SCALAR = re.compile(r"(?:^|[ \t])[|>][-+\d]*[ \t]*(?:#.*)?$")
_COMMENT = re.compile(r"(?:^|[ \t])#.*$")
MOST_LINE: Final = 2000
"""Characters of a line that are looked at."""

_DEEPEST: Final = 8
"""Keys a dotted name may have; what is nested deeper has no field."""


class Line(NamedTuple):
    """A line that says something: where it stands, how deep, and what."""

    at: int
    indent: int
    column: int
    """Where its key stands, which for an item of a list is right of the dash."""
    item: bool
    key: str
    value: str


def read(outline: Outline) -> None:
    lines = outline.source.lines
    starts = [0, *(at for at, line in enumerate(lines) if at and _begins_document(line))]
    for first, after in zip(starts, [*starts[1:], len(lines)], strict=True):
        _read_document(outline, first, after)


def read_fields(outline: Outline, first: int, after: int) -> None:
    """Read only what the values say, as for the front matter of a document."""
    for said in _scalars(list(_said(outline.source.lines, first, after))):
        outline.field(*said)


def _begins_document(line: str) -> bool:
    return line.startswith("---") and (len(line) == 3 or line[3] in " \t\r")


def _read_document(outline: Outline, first: int, after: int) -> None:
    said = list(_said(outline.source.lines, first, after))
    if not said:
        return
    manifest: dict[str, str] = {}
    for at, key, value in _scalars(said):
        outline.field(at, key, value)
        manifest.setdefault(key, value)
    name = ""
    if "kind" in manifest and "apiVersion" in manifest:
        name = f"{manifest['kind']}/{manifest.get('metadata.name', '')}".rstrip("/")
        outline.cut(first, "entry", name)
        if after - first <= BLOCK:
            return
    cut_entries(outline, _entries(outline, said), after - 1, name)


def _entries(outline: Outline, said: list[Line]) -> list[Entry]:
    base = min(line.indent for line in said)
    is_list = next(line.item for line in said if line.indent == base)
    top: list[Entry] = []
    below = 0
    for line in said:
        # The items of a list may stand as far left as the key they belong to.
        if not top or (line.indent == base and line.item == is_list):
            top.append(_entry(outline, line))
            below = 0
            continue
        top[-1].body = True
        below = below or line.column
        if line.column == below or (line.item and line.indent < below):
            below = line.column
            top[-1].entries.append(_entry(outline, line))
    return top


def _entry(outline: Outline, line: Line) -> Entry:
    key = _item_name(line) if line.item else line.key
    return Entry(_with_comment(outline, line.at), key or "[]", line.item or not line.value)


def _item_name(line: Line) -> str:
    return line.value if line.key in ("name", "id") else ""


def _with_comment(outline: Outline, at: int) -> int:
    while at > 0 and outline.source.lines[at - 1].lstrip().startswith("#"):
        at -= 1
    return at


def _said(lines: list[str], first: int, after: int) -> Iterator[Line]:
    within: int | None = None
    for at in range(first, after):
        text = lines[at].strip()
        if not text or text.startswith("#"):
            continue
        indent = len(lines[at]) - len(lines[at].lstrip(" "))
        if within is not None and indent > within:
            continue
        within = None
        if text.startswith(("---", "...", "%")) and indent == 0:
            continue
        line = _line(at, indent, text[:MOST_LINE])
        if _BLOCK_SCALAR.search(text[:MOST_LINE]):
            within = line.column
            line = line._replace(value="")
        yield line


def _line(at: int, indent: int, text: str) -> Line:
    item = text == "-" or text.startswith("- ")
    found = _KEY.match(text)
    if found is None:
        return Line(at, indent, indent, item, "", _scalar(text[1:].strip()) if item else "")
    key = found["key"].strip("\"'")
    return Line(at, indent, indent + found.end(1), item, key, _scalar(found["value"] or ""))


def _scalar(text: str) -> str:
    if text[:1] in ("'", '"'):
        close = text.find(text[0], 1)
        return text[1:close] if close > 0 else text[1:]
    return _COMMENT.sub("", text).strip()


def _scalars(said: list[Line]) -> Iterator[tuple[int, str, str]]:
    """Every single value with its dotted key; the elements of a list share the list's."""
    above: list[tuple[int, str]] = []
    for line in said:
        # A list may stand as deep as its key: the dash itself counts as a step to the right.
        depth = line.indent + 1 if line.item else line.indent
        while above and above[-1][0] >= depth:
            above.pop()
        if len(above) >= _DEEPEST:
            continue
        path = ".".join(key for _, key in above)
        key = f"{path}.{line.key}" if path and line.key else path or line.key
        if line.value:
            yield line.at, key, line.value
        elif line.key:
            above.append((line.column, line.key))

"""YAML read by indentation: entries, documents, manifests. Nothing is resolved or executed."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from cleats.toolsets.code.analysis.formats.outline import (
    BLOCK_LINES,
    MAX_KEY_DEPTH,
    MAX_LINE_CHARS,
    DataEntry,
    Outline,
    cut_entries,
)

_KEY_PATTERN = re.compile(
    r"(?P<dashes>(?:-[ \t]+)*)(?P<key>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s#&*!|>'\"%@`{\[\],-]"
    r"[^:#\n]{0,200}?|-[^\s:][^:#\n]{0,200}?)[ \t]{0,20}:(?:[ \t]+(?P<value>.*))?$"
)
_BLOCK_SCALAR_PATTERN = re.compile(r"(?:^|[ \t])[|>][-+\d]*[ \t]*(?:#.*)?$")
_COMMENT_PATTERN = re.compile(r"(?:^|[ \t])#.*$")


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
    starts = [0, *(index for index, line in enumerate(lines) if index and _is_document_start(line))]
    for first, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        _read_document(outline, first, end)


def read_fields(outline: Outline, first: int, end: int) -> None:
    """Read only the values, as for the front matter of a document."""
    for scalar in _iterate_scalars(list(_iterate_content_lines(outline.source.lines, first, end))):
        outline.add_field(*scalar)


def _is_document_start(line: str) -> bool:
    return line.startswith("---") and (len(line) == 3 or line[3] in " \t\r")


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
    key = line.key
    if line.is_item:
        key = line.value if line.key in ("name", "id") else ""
    return DataEntry(
        outline.source.find_comment_start(line.line_index, "#"), key or "[]", line.is_item or not line.value
    )


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

"""Tags of HTML and XML, one after the other: a pass that never goes back and never goes deep."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_TAG = re.compile(
    r"<(?P<close>/)?(?P<name>[A-Za-z_][\w:.-]*)(?P<attributes>(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+)>"
)
_ATTRIBUTE = re.compile(r"([\w:@.-]+)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_RAW: Final = frozenset({"script", "style"})
_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source"}
    | {"track", "wbr"}
)
_SKIPPED: Final = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"))


class Tag(NamedTuple):
    """A tag, or the text of a script or style up to its end."""

    name: str
    """In lower case for HTML."""
    opens: bool
    closes: bool
    """Both for a tag that holds nothing."""
    attributes: dict[str, str]
    start: int
    end: int
    line: int
    last: int
    """The lines it begins and ends on, from 0."""


def tags(text: str, *, html: bool) -> Iterator[Tag]:
    """Every tag in order. What looks like one in comments, data and scripts is passed over."""
    at = line = counted = 0
    while (start := text.find("<", at)) != -1:
        line += text.count("\n", counted, start)
        counted = start
        skipped = _skipped(text, start)
        if skipped is not None:
            at = skipped
            continue
        found = _TAG.match(text, start)
        if found is None:
            at = start + 1
            continue
        at = found.end()
        tag = _tag(found, line, html=html)
        yield tag
        if html and tag.opens and tag.name in _RAW:
            at = _raw_end(text, at, tag.name)


def _skipped(text: str, start: int) -> int | None:
    for opening, closing in _SKIPPED:
        if text.startswith(opening, start):
            end = text.find(closing, start + len(opening))
            return len(text) if end == -1 else end + len(closing)
    return None


def _tag(found: re.Match[str], line: int, *, html: bool) -> Tag:
    name = found["name"].lower() if html else found["name"]
    written = found["attributes"]
    empty = written.endswith("/") or (html and name in _VOID)
    closing = found["close"] is not None
    attributes = {} if closing else _attributes(written)
    last = line + found[0].count("\n")
    start, end = found.span()
    return Tag(name, not closing, closing or empty, attributes, start, end, line, last)


def _attributes(written: str) -> dict[str, str]:
    return {
        found[1].lower(): found[2] or found[3] or found[4] or ""
        for found in _ATTRIBUTE.finditer(written[:4000])
    }


def _raw_end(text: str, at: int, name: str) -> int:
    found = re.compile(rf"</{name}\b", re.IGNORECASE).search(text, at)
    return len(text) if found is None else found.start()

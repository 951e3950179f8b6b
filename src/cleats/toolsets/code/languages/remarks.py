"""Comments and documentation: whose they are, and what they say without their markers."""

import re
from typing import Literal

from msgspec import Struct

from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.walk import Walk

_OPENING = re.compile(r"\s*(?:/\*+!?|//+!?|#+!?|--+|\*+(?!/)|<!--)?[ \t]?")
_CLOSING = re.compile(r"\s*(?:\*+/|-->)\s*$")
_QUOTES = re.compile(r"[rRbBuUfF]{0,2}(\"\"\"|'''|\"|')")

LONGEST_DECORATOR = 120


class Remark(Struct, frozen=True):
    """A comment or a piece of documentation, as prose."""

    start: int
    end: int
    start_line: int
    end_line: int
    text: str
    kind: Literal["comment", "docstring"]
    owner: str
    """The qualified name of the declaration it is in or about; empty for the file's own."""


def uncommented(text: str) -> str:
    """A comment without its markers."""
    return "\n".join([_bare(line) for line in text.splitlines()]).strip()


def _bare(line: str) -> str:
    # The expression looks at every letter; few lines close a comment.
    if "*/" in line or "-->" in line:
        line = _CLOSING.sub("", line)
    marker = _OPENING.match(line)
    return line[marker.end() :].rstrip() if marker else line.rstrip()


def unquoted(text: str) -> str:
    """A docstring without its quotes and its indentation."""
    stripped = text.strip()
    found = _QUOTES.match(stripped)
    inner = stripped[found.end() :].removesuffix(found.group(1)) if found else text
    lines = inner.splitlines()
    indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    indent = min(indents, default=0)
    return "\n".join(
        [line.strip() for line in lines[:1]] + [line[indent:].rstrip() for line in lines[1:]]
    ).strip()


def code(walk: Walk, node: int, start: int, end: int) -> str:
    """What is written in a part of a node, on one line and without the comments in it."""
    syntax, comments = walk.syntax, walk.language.comments
    text = syntax.data[start:end]
    if b"#" in text or b"//" in text or b"/*" in text:
        at, stop = node + 1, syntax.stops[node]
        kept: list[bytes] = []
        while at < stop and syntax.starts[at] < end:
            if syntax.kinds[at] in comments and syntax.starts[at] >= start:
                kept.append(syntax.data[start : syntax.starts[at]])
                start = syntax.ends[at]
                at = syntax.stops[at]
            else:
                at += 1
        text = b" ".join([*kept, syntax.data[start:end]])
    return " ".join(text.decode("utf-8", "replace").split())


def decorator(walk: Walk, node: int) -> str:
    """A decorator without what marks it as one: `@`, `#[` and `]`."""
    text = code(walk, node, walk.syntax.starts[node], walk.syntax.ends[node])
    if text.startswith("#"):
        text = text.removesuffix("]")
    return text.lstrip("@#![").strip()[:LONGEST_DECORATOR]


def set_doc(walk: Walk, node: int, frame: Frame) -> None:
    """Take a string in a body for its documentation."""
    frame.doc = unquoted(walk.syntax.text(node))
    frame.doc_range = walk.syntax.starts[node], walk.syntax.ends[node]


def take_doc(walk: Walk, node: int, frame: Frame) -> None:
    """Take what stands right above a declaration and documents it, decorators in between.

    Comments above have been visited just before, so they are the last that the walk has seen.
    """
    syntax, language = walk.syntax, walk.language
    found: list[int] = []
    top, above = node, _above(syntax, node)
    while above != NONE:
        kind = syntax.kinds[above]
        if kind in language.decorators:
            frame.decorators.insert(0, decorator(walk, above))
            walk.frame, around = frame, walk.frame
            walk.use(above)
            walk.frame = around
        elif kind not in language.comments or not _documents(walk, above, top):
            break
        else:
            found.insert(0, above)
        top, above = above, _above(syntax, above)
    frame.start = syntax.starts[top]
    if found:
        while walk.comments and walk.comments[-1][0] >= found[0]:
            walk.comments.pop()
        frame.doc = "\n".join(uncommented(syntax.text(each)) for each in found).strip()
        frame.doc_range = syntax.starts[found[0]], syntax.ends[found[-1]]


def _above(syntax: Syntax, node: int) -> int:
    """What stands before a node, if need be before the body that begins with it."""
    above, parent = syntax.before(node), syntax.parents[node]
    if above == NONE and parent > 0 and "body" in syntax.kinds[parent]:
        return syntax.before(parent) if syntax.starts[parent] == syntax.starts[node] else NONE
    return above


def _documents(walk: Walk, comment: int, below: int) -> bool:
    syntax = walk.syntax
    # Not of `data`: `API int f(void)` begins with a word that the grammar was not given.
    gap = syntax.parsed[syntax.ends[comment] : syntax.starts[below]]
    beginning = syntax.data[syntax.starts[comment] : syntax.starts[comment] + 4]
    return (
        gap.count(b"\n") + syntax.data[syntax.ends[comment] - 1 : syntax.ends[comment]].count(b"\n")
        <= 1
        and not gap.strip()
        and beginning.startswith(tuple(mark.encode() for mark in walk.language.doc_comments))
        and syntax.opens_line(comment)
    )


def remarks(walk: Walk) -> list[Remark]:
    """All comments and documentation of a file, in order.

    Line comments that follow one another are one. Each frame gets the text of its own as well.
    """
    syntax = walk.syntax
    found = [_doc(syntax, frame) for frame in walk.frames if frame.doc]
    runs: list[tuple[int, int, Frame]] = []
    for node, frame in walk.comments:
        start, end = syntax.starts[node], syntax.ends[node]
        if runs and runs[-1][2] is frame and _continues(syntax, runs[-1], start):
            runs[-1] = (runs[-1][0], end, frame)
        else:
            runs.append((start, end, frame))
    for start, end, frame in runs:
        text = uncommented(syntax.data[start:end].decode("utf-8", "replace"))
        if text:
            frame.comments.append(text)
            found.append(_remark(syntax, (start, end), text, "comment", frame))
    return sorted(found, key=lambda remark: (remark.start, remark.end))


def _continues(syntax: Syntax, run: tuple[int, int, Frame], start: int) -> bool:
    gap = syntax.data[run[1] : start]
    return not gap.strip() and gap.count(b"\n") <= 1


def _doc(syntax: Syntax, frame: Frame) -> Remark:
    return _remark(syntax, frame.doc_range, frame.doc, "docstring", frame)


def _remark(
    syntax: Syntax,
    span: tuple[int, int],
    text: str,
    kind: Literal["comment", "docstring"],
    frame: Frame,
) -> Remark:
    start, end = span
    last = syntax.line(max(start, end - 1))
    owner = frame.qualified if frame.around is not None else ""
    return Remark(start, end, syntax.line(start), last, text, kind, owner)

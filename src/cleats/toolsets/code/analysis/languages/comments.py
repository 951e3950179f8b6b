"""Comments and documentation: the declarations they belong to, and their text without markers."""

import re
from typing import Literal

from cleats.toolsets.code.analysis.facts import CommentBlock
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker

_COMMENT_OPENING_PATTERN = re.compile(r"\s*(?:/\*+!?|//+!?|#+!?|--+|\*+(?!/)|<!--)?[ \t]?")
_COMMENT_CLOSING_PATTERN = re.compile(r"\s*(?:\*+/|-->)\s*$")
_QUOTES_PATTERN = re.compile(r"[rRbBuUfF]{0,2}(\"\"\"|'''|\"|')")

MAX_DECORATOR_CHARS = 120


def strip_comment_markers(text: str) -> str:
    """Return a comment without its markers."""
    return "\n".join([_strip_line_markers(line) for line in text.splitlines()]).strip()


def _strip_line_markers(line: str) -> str:
    # The pattern scans every character, and few lines close a comment.
    if "*/" in line or "-->" in line:
        line = _COMMENT_CLOSING_PATTERN.sub("", line)
    marker = _COMMENT_OPENING_PATTERN.match(line)
    return line[marker.end() :].rstrip() if marker else line.rstrip()


def strip_docstring(text: str) -> str:
    """Return a docstring without its quotes and its indentation."""
    stripped = text.strip()
    opening_quotes = _QUOTES_PATTERN.match(stripped)
    inner = stripped[opening_quotes.end() :].removesuffix(opening_quotes.group(1)) if opening_quotes else text
    lines = inner.splitlines()
    indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    indent = min(indents, default=0)
    return "\n".join([line.strip() for line in lines[:1]] + [line[indent:].rstrip() for line in lines[1:]]).strip()


def read_code(walk: SyntaxWalker, node: int, start: int, end: int) -> str:
    """Return the code of a part of a node, on one line and without comments."""
    comments = walk.language.comments
    text = walk.data[start:end]
    if b"#" in text or b"//" in text or b"/*" in text:
        descendant, stop = node + 1, walk.stops[node]
        pieces: list[bytes] = []
        while descendant < stop and walk.starts[descendant] < end:
            if walk.kinds[descendant] in comments and walk.starts[descendant] >= start:
                pieces.append(walk.data[start : walk.starts[descendant]])
                start = walk.ends[descendant]
                descendant = walk.stops[descendant]
            else:
                descendant += 1
        text = b" ".join([*pieces, walk.data[start:end]])
    return " ".join(text.decode("utf-8", "replace").split())


def read_decorator(walk: SyntaxWalker, node: int) -> str:
    """Return a decorator without the characters that mark it: `@`, `#[` and `]`."""
    text = read_code(walk, node, walk.starts[node], walk.ends[node])
    if text.startswith("#"):
        text = text.removesuffix("]")
    return text.lstrip("@#![").strip()[:MAX_DECORATOR_CHARS]


def attach_docstring(walk: SyntaxWalker, node: int, frame: Frame) -> None:
    """Use a string in a body as the documentation of its declaration."""
    frame.doc = strip_docstring(walk.text(node))
    frame.doc_range = walk.starts[node], walk.ends[node]


def attach_doc_comment(walk: SyntaxWalker, node: int, frame: Frame) -> None:
    """Attach the decorators and documentation comments directly above a declaration.

    Comments above have been visited just before, so they are the last ones that the walk recorded.
    """
    language = walk.language
    doc_nodes: list[int] = []
    first_node, previous = node, _find_previous_node(walk, node)
    while previous != NO_NODE:
        if (kind := walk.kinds[previous]) in language.decorators:
            frame.decorators.insert(0, read_decorator(walk, previous))
            walk.frame, parent = frame, walk.frame
            walk.record_uses(previous)
            walk.frame = parent
        elif kind not in language.comments or not _is_doc_comment(walk, previous, first_node):
            break
        else:
            doc_nodes.insert(0, previous)
        first_node, previous = previous, _find_previous_node(walk, previous)
    frame.start = walk.starts[first_node]
    if doc_nodes:
        while walk.comments and walk.comments[-1][0] >= doc_nodes[0]:
            walk.comments.pop()
        frame.doc = "\n".join(strip_comment_markers(walk.text(doc_node)) for doc_node in doc_nodes).strip()
        frame.doc_range = walk.starts[doc_nodes[0]], walk.ends[doc_nodes[-1]]


def _find_previous_node(syntax: SyntaxTree, node: int) -> int:
    """Return the node before a node or, at the beginning of a body, the node before that body."""
    previous, parent = syntax.previous_sibling(node), syntax.parents[node]
    if previous == NO_NODE and parent > 0 and "body" in syntax.kinds[parent]:
        return syntax.previous_sibling(parent) if syntax.starts[parent] == syntax.starts[node] else NO_NODE
    return previous


def _is_doc_comment(walk: SyntaxWalker, comment: int, next_node: int) -> bool:
    # Not `data`: `API int f(void)` begins with a word that was hidden from the grammar.
    gap = walk.parsed[walk.ends[comment] : walk.starts[next_node]]
    prefix = walk.data[walk.starts[comment] : walk.starts[comment] + 4]
    return (
        gap.count(b"\n") + walk.data[walk.ends[comment] - 1 : walk.ends[comment]].count(b"\n") <= 1
        and not gap.strip()
        and prefix.startswith(tuple(mark.encode() for mark in walk.language.doc_comments))
        and walk.is_first_on_line(comment)
    )


def collect_comments(walk: SyntaxWalker) -> list[CommentBlock]:
    """Return all comments and documentation of a file, in order.

    Consecutive line comments form one block. Each frame also receives the text of its comments.
    """
    blocks = [_make_block(walk, frame.doc_range, frame.doc, "docstring", frame) for frame in walk.frames if frame.doc]
    runs: list[tuple[int, int, Frame]] = []
    for node, frame in walk.comments:
        start, end = walk.starts[node], walk.ends[node]
        gap = walk.data[runs[-1][1] : start] if runs and runs[-1][2] is frame else b"\n\n"
        if not gap.strip() and gap.count(b"\n") <= 1:
            runs[-1] = (runs[-1][0], end, frame)
        else:
            runs.append((start, end, frame))
    for start, end, frame in runs:
        if text := strip_comment_markers(walk.data[start:end].decode("utf-8", "replace")):
            frame.comments.append(text)
            blocks.append(_make_block(walk, (start, end), text, "comment", frame))
    return sorted(blocks, key=lambda block: (block.start, block.end))


def _make_block(
    syntax: SyntaxTree, span: tuple[int, int], text: str, kind: Literal["comment", "docstring"], frame: Frame
) -> CommentBlock:
    start, end = span
    last_line = syntax.line_number(max(start, end - 1))
    owner = frame.qualified_name if frame.parent is not None else ""
    return CommentBlock(start, end, syntax.line_number(start), last_line, text, kind, owner)

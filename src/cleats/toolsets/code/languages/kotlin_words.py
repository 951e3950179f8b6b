"""Kotlin's words and signs that its grammar lumps together with names and expressions."""

import re

from cleats.toolsets.code.languages.assignments import add_type, type_text, update
from cleats.toolsets.code.languages.syntax import NONE
from cleats.toolsets.code.languages.walk import Flow, Walk

_WORD = re.compile(r"[A-Za-z_]\w*")


def identifier(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """Some keywords are names to the grammar."""
    name, frame = walk.syntax.text(node), walk.frame
    frame.breaks += name == "break"
    frame.continues += name == "continue"
    return name in ("break", "continue", "null", "true", "false")


def labelled(walk: Walk, node: int, _flow: Flow | None) -> bool:
    text = walk.syntax.text(node)
    if not text.startswith(("break@", "continue@")):
        return False
    walk.frame.breaks += text.startswith("break@")
    walk.frame.continues += text.startswith("continue@")
    return True


def unary(walk: Walk, node: int, flow: Flow | None) -> bool:
    text = walk.syntax.text(node)
    if not (text.startswith(("++", "--")) or text.endswith(("++", "--"))):
        return False
    update(walk, node, flow)
    return True


def infix(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`a to b` calls `to`."""
    children = list(walk.syntax.children(node))
    if len(children) != 3:
        return False
    walk.visit(children[0], flow)
    walk.frame.calls[walk.syntax.text(children[1])] = None
    walk.visit(children[2], flow)
    return True


def entry(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`else ->` is no branch."""
    if walk.syntax.child(node, "condition") != NONE:
        return False
    walk.arm(node, flow)
    return True


def caught(walk: Walk, node: int, _flow: Flow | None) -> bool:
    syntax = walk.syntax
    named, given = syntax.child(node, "identifier"), syntax.child(node, "user_type")
    walk.frame.branches += 1
    if NONE not in (named, given):
        add_type(walk, "local", syntax.text(named), type_text(walk, given), "annotation")
    walk.arms(child for child in syntax.children(node) if child != named)
    return True


def text(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`$name` in a string is plain text to the grammar, cut after the sign."""
    syntax = walk.syntax
    start = syntax.starts[node]
    if syntax.data[start - 1 : start] != b"$" or syntax.data[start - 2 : start - 1] == b"\\":
        return False
    found = _WORD.match(syntax.text(node))
    if found is None:
        return False
    walk.frame.reads[found.group()] = None
    if flow is not None:
        flow.names.append(found.group())
        flow.text += syntax.text(node)[found.end() :]
    return True

"""Keywords and operators of Kotlin that its grammar parses as names and expressions."""

import re

from cleats.toolsets.code.analysis.languages.assignments import read_type, record_type, visit_update
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_WORD_PATTERN = re.compile(r"[A-Za-z_]\w*")


def visit_identifier(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit an identifier; some keywords are names to the grammar."""
    name, frame = walk.syntax.text(node), walk.frame
    frame.breaks += name == "break"
    frame.continues += name == "continue"
    return name in ("break", "continue", "null", "true", "false")


def visit_labeled_jump(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    text = walk.syntax.text(node)
    if not text.startswith(("break@", "continue@")):
        return False
    walk.frame.breaks += text.startswith("break@")
    walk.frame.continues += text.startswith("continue@")
    return True


def visit_increment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    text = walk.syntax.text(node)
    if not (text.startswith(("++", "--")) or text.endswith(("++", "--"))):
        return False
    visit_update(walk, node, flow)
    return True


def visit_infix_call(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `a to b`, which calls `to`."""
    children = list(walk.syntax.children(node))
    if len(children) != 3:
        return False
    walk.visit(children[0], flow)
    walk.frame.calls[walk.syntax.text(children[1])] = None
    walk.visit(children[2], flow)
    return True


def visit_when_entry(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a branch of `when`; `else ->` does not count as a branch."""
    if walk.syntax.find_child(node, "condition") != NO_NODE:
        return False
    walk.visit_arm(node, flow)
    return True


def visit_catch(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    syntax = walk.syntax
    name_node, type_node = syntax.find_child(node, "identifier"), syntax.find_child(node, "user_type")
    walk.frame.branches += 1
    if NO_NODE not in (name_node, type_node):
        record_type(walk, "local", syntax.text(name_node), read_type(walk, type_node), "annotation")
    walk.visit_arms(child for child in syntax.children(node) if child != name_node)
    return True


def visit_string_text(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Read `$name` in a string, which the grammar parses as text split after the `$`."""
    syntax = walk.syntax
    start = syntax.starts[node]
    if syntax.data[start - 1 : start] != b"$" or syntax.data[start - 2 : start - 1] == b"\\":
        return False
    match = _WORD_PATTERN.match(syntax.text(node))
    if match is None:
        return False
    walk.frame.reads[match.group()] = None
    if flow is not None:
        flow.names.append(match.group())
        flow.text += syntax.text(node)[match.end() :]
    return True

"""Names within C# expressions: patterns, `out var x`, members of a new object."""

from cleats.toolsets.code.analysis.languages.assignments import INFERRED_TYPE_WORDS, read_type, record_type
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow


def visit_inline_declaration(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a name declared inside an expression: `out var x`, `case Order x`."""
    syntax = walk.syntax
    name_node, type_node = syntax.find_child(node, "name"), syntax.find_child(node, "type")
    if name_node == NO_NODE:
        return False
    name = syntax.text(name_node)
    if _is_multiplication(syntax, node, type_node):
        names = [syntax.text(type_node).rstrip("* "), name]
        walk.frame.reads.update(dict.fromkeys(names))
        if flow is not None:
            flow.names += names
        return True
    walk.frame.writes[name] = None
    if flow is not None:
        flow.names.append(name)
    if type_node != NO_NODE:
        walk.record_uses(type_node)
        text = read_type(walk, type_node)
        if text not in INFERRED_TYPE_WORDS:
            record_type(walk, "local", name, text, "annotation")
    return True


def _is_multiplication(syntax: SyntaxTree, node: int, type_node: int) -> bool:
    """Return whether an argument `a * b` was parsed as a declaration of a pointer `b`."""
    if type_node == NO_NODE or syntax.kinds[type_node] != "pointer_type":
        return False
    argument = syntax.parents[node]
    return not syntax.data[syntax.starts[argument] : syntax.starts[node]].strip()


def visit_member_initializers(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `new { A = x }` and `p with { A = x }`, which name members and not variables."""
    syntax = walk.syntax
    children = list(syntax.children(node))
    for position, child in enumerate(children):
        next_child = children[position + 1] if position + 1 < len(children) else NO_NODE
        gap = syntax.data[syntax.ends[child] : syntax.starts[next_child]].strip()
        if next_child != NO_NODE and gap == b"=":
            walk.record_uses(child)
        else:
            walk.visit(child, flow)
    return True


def visit_subpattern(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `Length: > 3` in a pattern, which names a member."""
    children = list(walk.syntax.children(node))
    if len(children) < 2 or walk.syntax.kinds[children[0]] != "identifier":
        return False
    walk.record_uses(children[0])
    for child in children[1:]:
        walk.visit(child, flow)
    return True


def visit_named_pattern(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a pattern that has a name: `{ Length: > 3 } s`."""
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.fields[child] == "name":
            walk.frame.writes[syntax.text(child)] = None
            if flow is not None:
                flow.names.append(syntax.text(child))
        else:
            walk.visit(child, flow)
    return True


def visit_type_test(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `o is string s`, which assigns `o` to `s`."""
    syntax = walk.syntax
    value, pattern = syntax.find_child(node, "expression"), syntax.find_child(node, "pattern")
    if NO_NODE in (value, pattern):
        return False
    saved_calls, walk.calls = walk.calls, []
    walk.visit(value, value_flow := ValueFlow())
    walk.visit(pattern, pattern_flow := ValueFlow())
    walk.record_step(node, [name for name in pattern_flow.names if name in walk.frame.writes], value_flow)
    walk.calls = saved_calls
    if flow is not None:
        flow.names += value_flow.names
    return True

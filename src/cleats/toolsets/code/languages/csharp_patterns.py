"""Where C# names things within expressions: patterns, `out var x`, members of a new object."""

from cleats.toolsets.code.languages.assignments import UNTYPED, add_type, type_text
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.walk import Flow, Walk


def declared(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`out var x`, `case Order x`: a name in the midst of an expression."""
    syntax = walk.syntax
    named, type_node = syntax.child(node, "name"), syntax.child(node, "type")
    if named == NONE:
        return False
    name = syntax.text(named)
    if _is_product(syntax, node, type_node):
        names = [syntax.text(type_node).rstrip("* "), name]
        walk.frame.reads.update(dict.fromkeys(names))
        if flow is not None:
            flow.names += names
        return True
    walk.frame.writes[name] = None
    if flow is not None:
        flow.names.append(name)
    if type_node != NONE:
        walk.use(type_node)
        text = type_text(walk, type_node)
        if text not in UNTYPED:
            add_type(walk, "local", name, text, "annotation")
    return True


def _is_product(syntax: Syntax, node: int, type_node: int) -> bool:
    """`a * b` as an argument, which the grammar takes for a new pointer `b`."""
    if type_node == NONE or syntax.kinds[type_node] != "pointer_type":
        return False
    given = syntax.parents[node]
    return not syntax.data[syntax.starts[given] : syntax.starts[node]].strip()


def named(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`new { A = x }` and `p with { A = x }` name members, which are no variables."""
    syntax = walk.syntax
    children = list(syntax.children(node))
    for at, child in enumerate(children):
        following = children[at + 1] if at + 1 < len(children) else NONE
        gap = syntax.data[syntax.ends[child] : syntax.starts[following]].strip()
        if following != NONE and gap == b"=":
            walk.use(child)
        else:
            walk.visit(child, flow)
    return True


def part(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`Length: > 3` in a pattern names a member."""
    children = list(walk.syntax.children(node))
    if len(children) < 2 or walk.syntax.kinds[children[0]] != "identifier":
        return False
    walk.use(children[0])
    for child in children[1:]:
        walk.visit(child, flow)
    return True


def whole(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`{ Length: > 3 } s`: a pattern that has a name of its own."""
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.fields[child] == "name":
            walk.frame.writes[syntax.text(child)] = None
            if flow is not None:
                flow.names.append(syntax.text(child))
        else:
            walk.visit(child, flow)
    return True


def tested(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`o is string s` gives `o` to `s`."""
    syntax = walk.syntax
    value, pattern = syntax.child(node, "expression"), syntax.child(node, "pattern")
    if NONE in (value, pattern):
        return False
    saved, walk.calls = walk.calls, []
    walk.visit(value, given := Flow())
    walk.visit(pattern, matched := Flow())
    walk.step(node, [name for name in matched.names if name in walk.frame.writes], given)
    walk.calls = saved
    if flow is not None:
        flow.names += given.names
    return True

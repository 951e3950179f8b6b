"""Where Python gives values to names by `match`."""

from cleats.toolsets.code.languages.syntax import Syntax
from cleats.toolsets.code.languages.walk import Flow, Walk


def matched(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """What the patterns of a `match` name receives what is matched."""
    syntax = walk.syntax
    saved, walk.calls = walk.calls, []
    subject, names = Flow(), list[str]()
    bodies: list[int] = []
    for child in syntax.children(node):
        if syntax.fields[child] == "subject":
            walk.visit(child, subject)
        else:
            bodies.append(child)
    for body in bodies:
        for clause in syntax.children(body):
            for part in syntax.children(clause):
                if syntax.kinds[part] == "case_pattern":
                    _captured(syntax, part, names, [])
    walk.frame.writes.update(dict.fromkeys(names))
    walk.step(node, names, subject)
    walk.calls = saved
    for body in bodies:
        walk.visit(body, None)
    return True


def pattern(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """Classes and constants in a pattern are used; the rest of it is known already."""
    used: list[str] = []
    _captured(walk.syntax, node, [], used)
    walk.frame.uses.update(dict.fromkeys(used))
    return True


def _captured(syntax: Syntax, node: int, names: list[str], used: list[str]) -> None:
    """The names that a pattern gives a value to, and those that it refers to."""
    is_class = syntax.kinds[node] == "class_pattern"
    is_keyword = syntax.kinds[node] == "keyword_pattern"
    for child in syntax.children(node):
        kind, first = syntax.kinds[child], child == node + 1
        if kind == "dotted_name":
            is_new = syntax.stops[child] - child == 2 and not (is_class and first)
            (names if is_new else used).append(syntax.text(child))
        elif kind == "identifier":
            if not (is_keyword and first):
                names.append(syntax.text(child))
        else:
            _captured(syntax, child, names, used)

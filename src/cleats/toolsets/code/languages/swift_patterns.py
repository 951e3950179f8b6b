"""Swift's conditions, cases, catches and jumps, and what they give to names or take away."""

from cleats.toolsets.code.languages.assignments import add_type, infer, target, type_text
from cleats.toolsets.code.languages.syntax import NONE
from cleats.toolsets.code.languages.walk import Flow, Walk


def conditions(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`if let x = y, z {`: names, values and tests stand side by side."""
    syntax, frame = walk.syntax, walk.frame
    if syntax.kinds[node] == "while_statement":
        frame.loops += 1
    else:
        frame.branches += 1
    pending: list[str] = []
    for child in syntax.children(node):
        field, kind = syntax.fields[child], syntax.kinds[child]
        if field == "bound_identifier":
            _bind(walk, node, pending, NONE)
            pending = [syntax.text(child)]
        elif field == "condition" and kind == "pattern":
            target(walk, child, pending)
        elif field == "condition" and pending and kind != "value_binding_pattern":
            if not _is_case(walk, child):
                _bind(walk, node, pending, child)
                pending = []
        elif kind == "statements":
            _bind(walk, node, pending, NONE)
            pending = []
            walk.arm(child, None)
        elif kind not in ("value_binding_pattern", "type_annotation"):
            walk.visit(child, None)
        elif kind == "type_annotation":
            walk.use(child)
    _bind(walk, node, pending, NONE)
    return True


def _is_case(walk: Walk, node: int) -> bool:
    """`some` in `case .some(let x) = y`."""
    syntax = walk.syntax
    start = syntax.starts[node]
    is_member = syntax.data[start - 1 : start] == b"." and start > 0
    return is_member and syntax.kinds[node] == "simple_identifier"


def _bind(walk: Walk, node: int, names: list[str], value: int) -> None:
    """Give a value to names; without one, `if let x` gives `x` to itself."""
    if not names:
        return
    saved, walk.calls = walk.calls, []
    given = Flow()
    if value != NONE:
        walk.visit(value, given)
    else:
        walk.frame.reads.update(dict.fromkeys(names))
        given.names += names
    walk.frame.writes.update(dict.fromkeys(names))
    walk.step(node, names, given)
    walk.calls = saved


def matched(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """Names that a pattern binds receive what they match; cases of an enum are used."""
    syntax, frame = walk.syntax, walk.frame
    binds = any(
        syntax.kinds[at] == "value_binding_pattern" for at in range(node, syntax.stops[node])
    )
    for at in range(node, syntax.stops[node]):
        if syntax.kinds[at] in walk.language.type_names:
            frame.uses[syntax.text(at)] = None
        if syntax.kinds[at] != "simple_identifier":
            continue
        name, start = syntax.text(at), syntax.starts[at]
        if syntax.data[start - 1 : start] == b".":
            frame.uses[name] = None
        elif binds:
            frame.writes[name] = None
        else:
            frame.reads[name] = None
    return True


def cases(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`case bad(Int), worse`: what a case holds stands behind its name."""
    syntax, name = walk.syntax, ""
    for child in syntax.children(node):
        field = syntax.fields[child]
        if field == "name":
            name = syntax.text(child)
        elif field == "data_contents":
            add_type(walk, "field", name, type_text(walk, child), "annotation")
            walk.use(child)
        elif field == "raw_value":
            infer(walk, child, "field", name)
            walk.visit(child, None)
    return True


def awaited(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`await (first, second)` awaits each."""
    syntax = walk.syntax
    several = syntax.child(node, "tuple_expression")
    for child in syntax.children(several) if several != NONE else ():
        if syntax.kinds[child] == "simple_identifier":
            walk.frame.awaits[syntax.text(child)] = None
    return False


def caught(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`catch let e as E` says the type of `e`."""
    syntax = walk.syntax
    walk.frame.branches += 1
    error = syntax.child(node, "error")
    if error != NONE:
        names: list[str] = []
        target(walk, error, names)
        given = syntax.child(error, "user_type")
        for name in names if given != NONE else []:
            add_type(walk, "local", name, type_text(walk, given), "annotation")
    walk.arms(child for child in syntax.children(node) if child != error)
    return True


def thrown(walk: Walk, node: int, _flow: Flow | None) -> bool:
    syntax, language = walk.syntax, walk.language
    for child in syntax.children(node):
        kind, name = syntax.kinds[child], ""
        if kind in language.calls:
            name = walk.call(child, None)
        elif kind != "throw_keyword":
            walk.visit(child, None)
            name = syntax.text(child)
        if name.replace(".", "").isidentifier():
            walk.frame.throws[name] = None
    return True


def jump(walk: Walk, node: int, _flow: Flow | None) -> bool:
    is_break = walk.syntax.kinds[node] == "break_statement"
    walk.frame.breaks += is_break
    walk.frame.continues += not is_break
    return True


def entry(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`default:` is no branch."""
    if walk.syntax.child(node, "default_keyword") == NONE:
        return False
    walk.arm(node, flow)
    return True

"""Conditions, cases, catches and jumps of Swift, and the names that they bind."""

from cleats.toolsets.code.analysis.languages.assignments import collect_targets, infer_type, read_type, record_type
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow


def visit_conditions(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `if let x = y, z {`, where names, values and tests are siblings."""
    syntax, frame = walk.syntax, walk.frame
    if syntax.kinds[node] == "while_statement":
        frame.loops += 1
    else:
        frame.branches += 1
    pending_names: list[str] = []
    for child in syntax.children(node):
        field, kind = syntax.fields[child], syntax.kinds[child]
        if field == "bound_identifier":
            _bind_names(walk, node, pending_names, NO_NODE)
            pending_names = [syntax.text(child)]
        elif field == "condition" and kind == "pattern":
            collect_targets(walk, child, pending_names)
        elif field == "condition" and pending_names and kind != "value_binding_pattern":
            if not _is_enum_case(walk, child):
                _bind_names(walk, node, pending_names, child)
                pending_names = []
        elif kind == "statements":
            _bind_names(walk, node, pending_names, NO_NODE)
            pending_names = []
            walk.visit_arm(child, None)
        elif kind not in ("value_binding_pattern", "type_annotation"):
            walk.visit(child, None)
        elif kind == "type_annotation":
            walk.record_uses(child)
    _bind_names(walk, node, pending_names, NO_NODE)


def _is_enum_case(walk: SyntaxWalker, node: int) -> bool:
    """Return whether a name is an enum case, such as `some` in `case .some(let x) = y`."""
    syntax = walk.syntax
    start = syntax.starts[node]
    is_member = syntax.data[start - 1 : start] == b"." and start > 0
    return is_member and syntax.kinds[node] == "simple_identifier"


def _bind_names(walk: SyntaxWalker, node: int, names: list[str], value: int) -> None:
    """Assign a value to names; without a value, `if let x` assigns `x` to itself."""
    if not names:
        return
    saved_calls, walk.calls = walk.calls, []
    value_flow = ValueFlow()
    if value != NO_NODE:
        walk.visit(value, value_flow)
    else:
        walk.frame.reads.update(dict.fromkeys(names))
        value_flow.names += names
    walk.frame.writes.update(dict.fromkeys(names))
    walk.record_step(node, names, value_flow)
    walk.calls = saved_calls


def visit_switch_pattern(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Bind the names in a pattern to what they match; record enum cases as used."""
    syntax, frame = walk.syntax, walk.frame
    binds = any(syntax.kinds[descendant] == "value_binding_pattern" for descendant in range(node, syntax.stops[node]))
    for descendant in range(node, syntax.stops[node]):
        if syntax.kinds[descendant] in walk.language.type_names:
            frame.uses[syntax.text(descendant)] = None
        if syntax.kinds[descendant] != "simple_identifier":
            continue
        name, start = syntax.text(descendant), syntax.starts[descendant]
        if syntax.data[start - 1 : start] == b".":
            frame.uses[name] = None
        elif binds:
            frame.writes[name] = None
        else:
            frame.reads[name] = None


def visit_enum_cases(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `case bad(Int), worse`, where the contents of a case follow its name."""
    syntax, name = walk.syntax, ""
    for child in syntax.children(node):
        field = syntax.fields[child]
        if field == "name":
            name = syntax.text(child)
        elif field == "data_contents":
            record_type(walk, "field", name, read_type(walk, child), "annotation")
            walk.record_uses(child)
        elif field == "raw_value":
            infer_type(walk, child, "field", name)
            walk.visit(child, None)


def visit_await(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record each name in `await (first, second)` as awaited."""
    syntax = walk.syntax
    tuple_node = syntax.find_child(node, "tuple_expression")
    for child in syntax.children(tuple_node):
        if syntax.kinds[child] == "simple_identifier":
            walk.frame.awaits[syntax.text(child)] = None
    return False


def visit_catch(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Record the type of `e` in `catch let e as E`."""
    syntax = walk.syntax
    walk.frame.branches += 1
    error_node, names = syntax.find_child(node, "error"), list[str]()
    collect_targets(walk, error_node, names)
    for name in names:
        record_type(walk, "local", name, read_type(walk, syntax.find_child(error_node, "user_type")), "annotation")
    walk.visit_arms(child for child in syntax.children(node) if child != error_node)


def visit_throw(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    syntax, language = walk.syntax, walk.language
    for child in syntax.children(node):
        kind, name = syntax.kinds[child], ""
        if kind in language.calls:
            name = walk.visit_call(child, None)
        elif kind != "throw_keyword":
            walk.visit(child, None)
            name = syntax.text(child)
        if name.replace(".", "").isidentifier():
            walk.frame.throws[name] = None


def visit_switch_entry(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a switch entry; `default:` does not count as a branch."""
    if walk.syntax.find_child(node, "default_keyword") == NO_NODE:
        return False
    walk.visit_arm(node, flow)
    return True

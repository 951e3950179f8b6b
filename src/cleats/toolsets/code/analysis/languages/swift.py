"""The language table of Swift.

Its grammar gives statements and calls the same kind, so kinds are distinguished before the walk.
"""

import re

from cleats.toolsets.code.analysis.facts import TypeFact
from cleats.toolsets.code.analysis.languages import assignments, grammar_workarounds, table
from cleats.toolsets.code.analysis.languages.declarations import (
    is_constant_chunk,
    read_declaration,
    record_return_type,
)
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_TYPE_NODE_KINDS = kind_set("""user_type optional_type array_type dictionary_type function_type tuple_type metatype
    opaque_type existential_type protocol_composition_type type_annotation type_pack_expansion""")
_TRANSFER_WORDS = ("return", "throw", "break", "continue")
_BASE_KINDS = kind_set("inheritance_specifier")
_CLASS_SYNTAX = {
    word: table.DeclarationSyntax(kind, bases=_BASE_KINDS)
    for word, kind in (
        *((kind, kind) for kind in ("class", "struct", "enum")),
        ("actor", "class"),
        ("extension", "impl"),
    )
}
_FUNCTION_SYNTAX = table.DeclarationSyntax("function", inside="method", parameters=(), result=())
_MACRO_SYNTAX = table.DeclarationSyntax("macro", name=("simple_identifier",), parameters=(), result=(), body=())
_CONSTRUCTOR_SYNTAX = table.DeclarationSyntax("constructor", parameters=(), result=(), name=())
_PROPERTY_SYNTAX = table.DeclarationSyntax(
    "property", parameters=(), result=(), body=("computed_value", "willset_didset_block")
)
_SUBSCRIPT_SYNTAX = table.DeclarationSyntax("property", parameters=(), result=(), name=(), body=("computed_property",))
_LAMBDA_SYNTAX = table.DeclarationSyntax("function", inside="method", parameters=(), result=(), body=("statements",))
_CONSTANT_SYNTAX = table.DeclarationSyntax("constant", parameters=(), body=())
_BINDING_ASSIGNMENT = table.AssignmentSyntax(left="name", right="value", type="type_annotation")
_PLAIN_ASSIGNMENT = table.AssignmentSyntax(left="target", right="result")
_AUGMENTED_ASSIGNMENT = table.AssignmentSyntax(left="target", right="result", augmented=True)
_CLASS_KEYWORD_PATTERN = re.compile(rb"(?:^|\s)(class|struct|enum|extension|actor)\s*$")
_OPERATOR_NAME_PATTERN = re.compile(rb"func\s+([^\s(<\w]+|[^\s(\w]+)\s*[(<]")


def _split_kinds(syntax: SyntaxTree) -> None:
    """Split kinds that the grammar lumps together: `x[0]` and calls, jumps, parts of `Outer.Inner<Int>()`."""
    kinds, data = syntax.kinds, syntax.data
    for node, kind in enumerate(kinds):
        if kind == "call_suffix" and data[syntax.starts[node]] == ord("["):
            kinds[syntax.parents[node]] = "index_expression"
        elif kind == "control_transfer_statement":
            for word in _TRANSFER_WORDS:
                if data.startswith(word.encode(), syntax.starts[node]):
                    kinds[node] = f"{word}_statement"
        elif kind == "user_type" and kinds[syntax.parents[node]] == "constructor_expression":
            name_nodes = [child for child in syntax.children(node) if kinds[child] == "type_identifier"]
            syntax.ends[name_nodes[0]] = syntax.ends[name_nodes[-1]]


def _set_visibility(frame: Frame, parent: Frame) -> None:
    if "fileprivate" in frame.modifiers:
        frame.visibility = "private"
    elif "open" in frame.modifiers:
        frame.visibility = "public"
    elif parent.kind == "interface":
        frame.visibility = frame.visibility or parent.visibility
    if frame.visibility or frame.kind == "impl":
        return
    if parent.parent is None or parent.kind in table.TYPE_KINDS:
        inherited = parent.visibility if parent.kind == "impl" else ""
        frame.visibility = inherited or "internal"


def _visit_class(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a class, struct, enum, actor or extension, which have one kind."""
    if (name_node := walk.find_child(node, "name")) == NO_NODE:
        return False
    match = _CLASS_KEYWORD_PATTERN.search(walk.data[walk.starts[node] : walk.starts[name_node]])
    word = match.group(1).decode() if match else "class"
    if not (name := " ".join(walk.text(name_node).partition("<")[0].split())):
        return False
    frame = read_declaration(walk, node, node, _CLASS_SYNTAX[word], name)
    if word == "actor":
        frame.modifiers["actor"] = None
    return True


def _visit_function(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    name = walk.text(walk.find_child(node, "simple_identifier")).strip("`")
    if not name and (match := _OPERATOR_NAME_PATTERN.search(walk.data[walk.starts[node] : walk.ends[node]][:200])):
        name = match.group(1).decode("utf-8", "replace")
    if not name:
        return False
    is_macro = walk.kinds[node] == "macro_declaration"
    frame = read_declaration(walk, node, node, _MACRO_SYNTAX if is_macro else _FUNCTION_SYNTAX, name)
    _record_return_type(walk, frame, node)
    if (thrown_type := walk.find_child(walk.find_child(node, "throws_clause"), "type")) != NO_NODE:
        frame.throws[walk.text(thrown_type)] = None
    return True


def _visit_initializer(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    if (kind := walk.kinds[node]) == "init_declaration":
        read_declaration(walk, node, node, _CONSTRUCTOR_SYNTAX, "init")
    elif kind == "deinit_declaration":
        read_declaration(walk, node, node, _FUNCTION_SYNTAX, "deinit")
    else:
        _record_return_type(walk, read_declaration(walk, node, node, _SUBSCRIPT_SYNTAX, "subscript"), node)


def _record_return_type(walk: SyntaxWalker, frame: Frame, node: int) -> None:
    children = [child for child in walk.children(node) if walk.fields[child] != "body"]
    types = [child for child in children if walk.kinds[child] in _TYPE_NODE_KINDS]
    record_return_type(walk, frame, types[-1] if types else NO_NODE)


def _visit_parameter(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a parameter, whose name and type have the same field; callers may use another name."""
    frame = walk.frame
    name = ""
    for child in walk.children(node):
        if (kind := walk.kinds[child]) in _TYPE_NODE_KINDS:
            if name and not walk.closure_depth:
                assignments.record_type(walk, "param", name, assignments.read_type(walk, child), "annotation")
            walk.record_uses(child)
        elif walk.fields[child] == "name" or kind == "simple_identifier":
            name = walk.text(child)
    if name and not walk.closure_depth and name not in frame.params:
        frame.params.append(name)


def _visit_property(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a property; accessors, a closure or a long top-level value make it a chunk."""
    name_node, value_node = walk.find_child(node, "name"), walk.find_child(node, "value")
    name = walk.text(name_node)
    if not name.isidentifier():
        return False
    type_node = walk.find_child(node, "type_annotation")
    if walk.find_child(node, "computed_value", "willset_didset_block") != NO_NODE:
        _record_return_type(walk, read_declaration(walk, node, node, _PROPERTY_SYNTAX, name), node)
    elif walk.kinds[value_node] == "lambda_literal":
        read_declaration(walk, node, value_node, _LAMBDA_SYNTAX, name)
    elif walk.frame is walk.module and is_constant_chunk(walk, node, name):
        frame = read_declaration(walk, node, node, _CONSTANT_SYNTAX, name)
        if type_node != NO_NODE:
            frame.types[TypeFact("local", name, assignments.read_type(walk, type_node), "annotation")] = None
    else:
        assignments.visit_assignment(walk, node, flow, _BINDING_ASSIGNMENT)
    return True


def _visit_binding(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    if walk.kinds[walk.parents[node]] != "property_declaration":
        return False
    assignments.collect_targets(walk, node, [], is_written=False)
    return True


def _visit_assignment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    left_node, right_node = walk.find_child(node, "target"), walk.find_child(node, "result")
    if NO_NODE in (left_node, right_node):
        return False
    is_plain = walk.data[walk.ends[left_node] : walk.starts[right_node]].strip() == b"="
    assignments.visit_assignment(walk, node, flow, _PLAIN_ASSIGNMENT if is_plain else _AUGMENTED_ASSIGNMENT)
    return True


def _visit_statements(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit statements; a body that is one expression returns it."""
    first_child, body = node + 1, walk.parents[node]
    if first_child >= walk.stops[node] or walk.stops[first_child] != walk.stops[node] or walk.closure_depth:
        return False
    kind, body_kind = walk.kinds[first_child], walk.kinds[body]
    is_value = kind.endswith(("_expression", "_literal")) or kind == "simple_identifier"
    if not is_value or body_kind not in ("function_body", "computed_property", "computed_getter"):
        return False
    if body_kind == "function_body":
        header = walk.data[walk.starts[walk.parents[body]] : walk.starts[body]]
        if b"->" not in header:
            return False
    walk.frame.returns = True
    walk.visit_returned(first_child)
    return True


def _collect_exports(walk: SyntaxWalker) -> None:
    for frame in walk.frames:
        frame.calls.pop("defer", None)
    walk.export_public("impl")


def _visit_conditions(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `if let x = y, z {`, where names, values and tests are siblings."""
    frame = walk.frame
    if walk.kinds[node] == "while_statement":
        frame.loops += 1
    else:
        frame.branches += 1
    pending_names: list[str] = []
    for child in walk.children(node):
        field, kind = walk.fields[child], walk.kinds[child]
        if field == "bound_identifier":
            _bind_names(walk, node, pending_names, NO_NODE)
            pending_names = [walk.text(child)]
        elif field == "condition" and kind == "pattern":
            assignments.collect_targets(walk, child, pending_names)
        elif field == "condition" and pending_names and kind != "value_binding_pattern":
            # In `case .some(let x) = y`, the name `some` is an enum case.
            if kind != "simple_identifier" or walk.data[walk.starts[child] - 1] != ord("."):
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


def _bind_names(walk: SyntaxWalker, node: int, names: list[str], value: int) -> None:
    """Assign a value to names; without a value, `if let x` assigns `x` to itself."""
    if not names:
        return
    with walk.open_step(node, names) as value_flow:
        if value != NO_NODE:
            walk.visit(value, value_flow)
        else:
            walk.frame.reads.update(dict.fromkeys(names))
            value_flow.names += names
        walk.frame.writes.update(dict.fromkeys(names))


def _visit_switch_pattern(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Bind the names in a pattern to what they match; record enum cases as used."""
    frame = walk.frame
    binds = any(walk.kinds[descendant] == "value_binding_pattern" for descendant in range(node, walk.stops[node]))
    for descendant in range(node, walk.stops[node]):
        if walk.kinds[descendant] in walk.language.type_names:
            frame.uses[walk.text(descendant)] = None
        if walk.kinds[descendant] != "simple_identifier":
            continue
        name, start = walk.text(descendant), walk.starts[descendant]
        if walk.data[start - 1 : start] == b".":
            frame.uses[name] = None
        elif binds:
            frame.writes[name] = None
        else:
            frame.reads[name] = None


def _visit_enum_cases(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `case bad(Int), worse`, where the contents of a case follow its name."""
    name = ""
    for child in walk.children(node):
        if (field := walk.fields[child]) == "name":
            name = walk.text(child)
        elif field == "data_contents":
            assignments.record_type(walk, "field", name, assignments.read_type(walk, child), "annotation")
            walk.record_uses(child)
        elif field == "raw_value":
            assignments.infer_type(walk, child, "field", name)
            walk.visit(child, None)


def _visit_await(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record each name in `await (first, second)` as awaited."""
    tuple_node = walk.find_child(node, "tuple_expression")
    for child in walk.children(tuple_node):
        if walk.kinds[child] == "simple_identifier":
            walk.frame.awaits[walk.text(child)] = None
    return False


def _visit_catch(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Record the type of `e` in `catch let e as E`."""
    walk.frame.branches += 1
    error_node, names = walk.find_child(node, "error"), list[str]()
    assignments.collect_targets(walk, error_node, names)
    for name in names:
        assignments.record_type(
            walk, "local", name, assignments.read_type(walk, walk.find_child(error_node, "user_type")), "annotation"
        )
    walk.visit_arms(child for child in walk.children(node) if child != error_node)


def _visit_throw(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    language = walk.language
    for child in walk.children(node):
        kind, name = walk.kinds[child], ""
        if kind in language.calls:
            name = walk.visit_call(child, None)
        elif kind != "throw_keyword":
            walk.visit(child, None)
            name = walk.text(child)
        if name.replace(".", "").isidentifier():
            walk.frame.throws[name] = None


SWIFT = table.load_table(
    "swift",
    declares={
        "class_declaration": _CLASS_SYNTAX["class"],
        "protocol_declaration": table.DeclarationSyntax("interface", bases=_BASE_KINDS),
        "function_declaration protocol_function_declaration": _FUNCTION_SYNTAX,
        "macro_declaration": _MACRO_SYNTAX,
    },
    settle=_set_visibility,
    assigns={
        "assignment": _PLAIN_ASSIGNMENT,
        "property_declaration protocol_property_declaration": _BINDING_ASSIGNMENT,
    },
    types=_TYPE_NODE_KINDS | {"type_arguments", "type_parameters", "type_constraints", "enum_type_parameters"},
    hooks={
        "class_declaration": _visit_class,
        "function_declaration protocol_function_declaration macro_declaration": _visit_function,
        "init_declaration deinit_declaration subscript_declaration": _visit_initializer,
        "parameter lambda_parameter": _visit_parameter,
        "property_declaration": _visit_property,
        "pattern": _visit_binding,
        "assignment": _visit_assignment,
        "statements": _visit_statements,
        "throw_statement": _visit_throw,
        "enum_entry": _visit_enum_cases,
        "await_expression": _visit_await,
        "switch_pattern": _visit_switch_pattern,
        "catch_block": _visit_catch,
        "if_statement guard_statement while_statement": _visit_conditions,
    },
    prepare=_split_kinds,
    ease=grammar_workarounds.rewrite_swift,
    finish=_collect_exports,
)

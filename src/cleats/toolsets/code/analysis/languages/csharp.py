"""The language table of C#."""

import re

from cleats.toolsets.code.analysis.languages import assignments, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_PROPERTY_SYNTAX = table.DeclarationSyntax("property", result=("type",), body=("accessors", "value"))
_METHOD_SYNTAX = table.DeclarationSyntax("method", result=("type",))
_NAMESPACE_SYNTAX = table.DeclarationSyntax("namespace")
_FIELD_ASSIGNMENT = table.AssignmentSyntax(left="name", right="value", typed_field=True)
_TUPLE_ASSIGNMENT = table.AssignmentSyntax(left="tuple_pattern", right="")
_DOC_REFERENCE_PATTERN = re.compile(r'<(?:see|seealso|paramref|typeparamref)\s+\w+="([^"]*)"\s*/>')
_TYPE_ARGUMENTS_PATTERN = re.compile(r"<[^()]*>")
"""Type arguments, which a qualified name retains."""
_DOC_TAG_PATTERN = re.compile(r"</?(?:summary|remarks|para|param|returns|value|exception|c|code)\b[^>]*>")


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
    if not frame.visibility and frame.kind != "namespace":
        if parent.kind == "interface":
            frame.visibility = "public"
        elif parent.kind in table.TYPE_KINDS:
            frame.visibility = "private"
        elif parent.parent is None or parent.kind == "namespace":
            frame.visibility = "internal"
    if frame.doc:
        frame.doc = _DOC_TAG_PATTERN.sub("", _DOC_REFERENCE_PATTERN.sub(r"\1", frame.doc)).strip()
    frame.calls = {_TYPE_ARGUMENTS_PATTERN.sub("", name): None for name in frame.calls}
    frame.awaits = {name.removesuffix("().ConfigureAwait"): None for name in frame.awaits}


def _visit_file_namespace(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `namespace Shop;`, which contains everything after it."""
    if (name_node := walk.find_child(node, "name")) == NO_NODE or walk.frame is not walk.module:
        return False
    frame = read_declaration(walk, node, node, _NAMESPACE_SYNTAX, walk.text(name_node))
    frame.end = len(walk.data)
    walk.module.nested_ranges[-1] = frame.start, frame.end
    walk.frame = frame
    return True


def _visit_property(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a property; one without code is a field."""
    accessors, value = walk.find_child(node, "accessors"), walk.find_child(node, "value")
    has_code = walk.kinds[value] == "arrow_expression_clause"
    if accessors != NO_NODE:
        has_code = any(walk.find_child(accessor, "body") != NO_NODE for accessor in walk.children(accessors))
    if not has_code:
        assignments.visit_assignment(walk, node, flow, _FIELD_ASSIGNMENT)
    return not has_code


def _visit_operator(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit operators, indexers and destructors, whose name has a symbol."""
    name_node, parameters_node = walk.find_child(node, "name"), walk.find_child(node, "parameters")
    if walk.kinds[node] == "destructor_declaration" and name_node != NO_NODE:
        read_declaration(walk, node, node, _METHOD_SYNTAX, f"~{walk.text(name_node)}")
    elif walk.kinds[node] == "indexer_declaration" and parameters_node != NO_NODE:
        read_declaration(walk, node, node, _PROPERTY_SYNTAX, "this[]")
    elif parameters_node != NO_NODE:
        head = walk.data[walk.starts[node] : walk.starts[parameters_node]].decode("utf-8", "replace")
        read_declaration(walk, node, node, _METHOD_SYNTAX, f"operator {head.rpartition('operator')[2].strip()}")
    else:
        return False
    return True


def _visit_arrow_body(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    for child in walk.children(node):
        walk.visit_returned(child)


def _visit_identifier(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit an identifier; only its position distinguishes a type name from other names."""
    if walk.fields[node] != "type":
        return False
    walk.record_uses(node)
    return True


def _visit_declarator(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    if walk.find_child(node, "tuple_pattern") != NO_NODE:
        assignments.visit_assignment(walk, node, flow, _TUPLE_ASSIGNMENT)
        return True
    return assignments.record_outer_type(walk, node, flow)


def _visit_assignment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit an assignment; `{ Id = 3 }` after `new` sets a field of the new object."""
    left_node, right_node = walk.find_child(node, "left"), walk.find_child(node, "right")
    if walk.kinds[walk.parents[node]] != "initializer_expression" or NO_NODE in (left_node, right_node):
        return assignments.visit_plain_or_augmented(walk, node, flow)
    walk.record_uses(left_node)
    walk.visit(right_node, flow)
    return True


def _visit_inline_declaration(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a name declared inside an expression: `out var x`, `case Order x`."""
    name_node, type_node = walk.find_child(node, "name"), walk.find_child(node, "type")
    if name_node == NO_NODE:
        return False
    name = walk.text(name_node)
    before = walk.data[walk.starts[walk.parents[node]] : walk.starts[node]]
    if walk.kinds[type_node] == "pointer_type" and not before.strip():  # the argument `a * b`, no pointer `b`
        names = [walk.text(type_node).rstrip("* "), name]
        walk.frame.reads.update(dict.fromkeys(names))
        if flow is not None:
            flow.names += names
        return True
    walk.frame.writes[name] = None
    if flow is not None:
        flow.names.append(name)
    walk.record_uses(type_node)
    if (text := assignments.read_type(walk, type_node)) not in assignments.INFERRED_TYPE_WORDS:
        assignments.record_type(walk, "local", name, text, "annotation")
    return True


def _visit_member_initializers(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit `new { A = x }` and `p with { A = x }`, which name members and not variables."""
    children = list(walk.children(node))
    for position, child in enumerate(children):
        next_child = children[position + 1] if position + 1 < len(children) else NO_NODE
        gap = walk.data[walk.ends[child] : walk.starts[next_child]].strip()
        if next_child != NO_NODE and gap == b"=":
            walk.record_uses(child)
        else:
            walk.visit(child, flow)


def _visit_subpattern(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `Length: > 3` in a pattern, which names a member."""
    children = list(walk.children(node))
    if len(children) < 2 or walk.kinds[children[0]] != "identifier":
        return False
    walk.record_uses(children[0])
    walk.visit_all(children[1:], flow)
    return True


def _visit_named_pattern(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit a pattern that has a name: `{ Length: > 3 } s`."""
    for child in walk.children(node):
        if walk.fields[child] == "name":
            walk.frame.writes[walk.text(child)] = None
            if flow is not None:
                flow.names.append(walk.text(child))
        else:
            walk.visit(child, flow)


def _visit_type_test(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `o is string s`, which assigns `o` to `s`."""
    value, pattern = walk.find_child(node, "expression"), walk.find_child(node, "pattern")
    if NO_NODE in (value, pattern):
        return False
    names: list[str] = []
    with walk.open_step(node, names) as value_flow:
        walk.visit(value, value_flow)
        walk.visit(pattern, pattern_flow := ValueFlow())
        names += [name for name in pattern_flow.names if name in walk.frame.writes]
    if flow is not None:
        flow.names += value_flow.names
    return True


def _infer_type(syntax: SyntaxTree, node: int) -> str:
    is_array = syntax.kinds[node] == "array_creation_expression"
    return syntax.text(syntax.find_child(node, "type")) if is_array else ""


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    paths = [child for child in syntax.children(node) if syntax.fields[child] != "name"]
    return ["".join(syntax.text(path).split()) for path in paths[-1:]]


CSHARP = table.load_table(
    "csharp",
    declares={
        "namespace_declaration": _NAMESPACE_SYNTAX,
        "property_declaration event_declaration": _PROPERTY_SYNTAX,
        "variable_declarator enum_member_declaration": table.DeclarationSyntax("constant", lines=3, top=True),
    },
    settle=_adjust_declaration,
    assigns={"enum_member_declaration": _FIELD_ASSIGNMENT},
    made=_infer_type,
    imports={"using_directive": _read_imports},
    hooks={
        "file_scoped_namespace_declaration": _visit_file_namespace,
        "property_declaration": _visit_property,
        "operator_declaration conversion_operator_declaration": _visit_operator,
        "indexer_declaration destructor_declaration": _visit_operator,
        "arrow_expression_clause": _visit_arrow_body,
        "identifier": _visit_identifier,
        "typeof_expression sizeof_expression default_expression": assignments.visit_type,
        "variable_declarator": _visit_declarator,
        "assignment_expression": _visit_assignment,
        "postfix_unary_expression prefix_unary_expression": assignments.visit_increment,
        "declaration_expression declaration_pattern": _visit_inline_declaration,
        "is_pattern_expression": _visit_type_test,
        "recursive_pattern": _visit_named_pattern,
        "subpattern": _visit_subpattern,
        "anonymous_object_creation_expression with_initializer": _visit_member_initializers,
    },
    finish=lambda walk: walk.export_public(in_namespaces=True),
)

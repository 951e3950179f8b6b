"""The language table of Go."""

from cleats.toolsets.code.analysis.facts import TypeFact
from cleats.toolsets.code.analysis.languages import assignments, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_METHOD_SYNTAX = table.DeclarationSyntax("method", result=("result",))
_STRUCT_SYNTAX = table.DeclarationSyntax("struct", body=("type",))
_INTERFACE_SYNTAX = table.DeclarationSyntax("interface", body=("type",))
_EMBEDDED_TYPE_KINDS = kind_set("type_identifier qualified_type generic_type")


def _set_visibility(frame: Frame, parent: Frame) -> None:
    if parent.parent is None or parent.kind in table.TYPE_KINDS:
        is_capitalized = frame.name.rpartition(".")[2][:1].isupper()
        frame.visibility = "public" if is_capitalized else "package"


def _visit_method(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a method, which is named after the type of its receiver."""
    name_node, receivers = walk.find_child(node, "name"), walk.find_child(node, "receiver")
    if NO_NODE in (name_node, receivers) or receivers + 1 >= walk.stops[receivers]:
        return False
    receiver = receivers + 1
    type_node = walk.find_child(receiver, "type")
    if not (type_name := walk.text(type_node).strip("*() ").partition("[")[0].strip()):
        return False
    frame = read_declaration(walk, node, node, _METHOD_SYNTAX, f"{type_name}.{walk.text(name_node)}")
    if (receiver_name := walk.find_child(receiver, "name")) != NO_NODE:
        receiver_type = TypeFact(
            "param", walk.text(receiver_name), assignments.read_type(walk, type_node), "annotation"
        )
        frame.types[receiver_type] = None
    return True


def _visit_type(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a type declaration whose right side is a struct or an interface."""
    name_node, type_node = walk.find_child(node, "name"), walk.find_child(node, "type")
    kind = walk.kinds[type_node]
    if name_node == NO_NODE or kind not in ("struct_type", "interface_type"):
        return False
    row = _STRUCT_SYNTAX if kind == "struct_type" else _INTERFACE_SYNTAX
    frame = read_declaration(walk, node, node, row, walk.text(name_node))
    alias = " =" if walk.kinds[node] == "type_alias" else ""
    frame.signature += f"{alias} {row.kind}"
    return True


def _visit_interface(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit an interface; it extends the types it embeds, and a union of types is a constraint."""
    is_declared = walk.frame.kind == "interface" and walk.fields[node] == "type"
    for child in walk.children(node):
        if walk.kinds[child] in walk.language.comments:
            walk.visit(child, None)
            continue
        inner = assignments.unwrap_single(walk, child)
        if is_declared and inner != child and walk.kinds[inner] in _EMBEDDED_TYPE_KINDS:
            walk.frame.bases.append(walk.text(inner))
        name_node = walk.find_child(child, "name") if walk.kinds[child] == "method_elem" else NO_NODE
        if is_declared and name_node != NO_NODE:
            read_declaration(walk, child, child, _METHOD_SYNTAX, walk.text(name_node))
        else:
            walk.record_uses(child)


def _visit_field(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the type of a field without a name as a base, because it is embedded."""
    type_node = walk.find_child(node, "type")
    if walk.find_child(node, "name") == NO_NODE and type_node != NO_NODE and walk.frame.kind == "struct":
        walk.frame.bases.append(walk.text(type_node))
    return False


def _visit_panic(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the argument of `panic(err)` as thrown."""
    function, arguments = walk.find_child(node, "function"), walk.find_child(node, "arguments")
    if NO_NODE in (function, arguments) or walk.ends[function] - walk.starts[function] != 5:
        return False
    first_argument = arguments + 1
    if walk.text(function) != "panic" or first_argument >= walk.stops[arguments]:
        return False
    if (kind := walk.kinds[first_argument]) == "call_expression":
        thrown = walk.text(first_argument + 1)
    elif kind in ("identifier", "selector_expression"):
        thrown = walk.text(first_argument)
    else:
        thrown = _infer_type(walk, first_argument).lstrip("*")
    if thrown.replace(".", "").isidentifier():
        walk.frame.throws[thrown] = None
    return False


def _visit_conversion(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a conversion; `Map[int](xs)` looks like one to a generic type but is usually a call."""
    if walk.kinds[walk.find_child(node, "type")] == "generic_type":
        return False
    walk.visit_children(node, flow)
    return True


def _visit_keyed_element(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a field in a literal, whose name is not a variable that is read."""
    key, value = walk.find_child(node, "key"), walk.find_child(node, "value")
    if NO_NODE in (key, value) or walk.kinds[assignments.unwrap_single(walk, key)] != "identifier":
        return False
    walk.record_uses(key)
    walk.visit(value, flow)
    return True


def _infer_type(syntax: SyntaxTree, node: int) -> str:
    kind, prefix = syntax.kinds[node], ""
    if kind == "unary_expression" and syntax.data[syntax.starts[node]] == ord("&"):
        node, prefix = syntax.find_child(node, "operand"), "*"
        kind = syntax.kinds[node]
    if kind in ("composite_literal", "type_conversion_expression", "type_assertion_expression"):
        type_node = syntax.find_child(node, "type")
        is_call = kind == "type_conversion_expression" and syntax.kinds[type_node] == "generic_type"
        return prefix + syntax.text(type_node) if type_node != NO_NODE and not is_call else ""
    return ""


GO = table.load_table(
    "go",
    declares={"method_declaration": _METHOD_SYNTAX},
    settle=_set_visibility,
    made=_infer_type,
    hooks={
        "method_declaration": _visit_method,
        "type_spec type_alias": _visit_type,
        "interface_type": _visit_interface,
        "field_declaration": _visit_field,
        "call_expression": _visit_panic,
        "assignment_statement": assignments.visit_plain_or_augmented,
        "type_conversion_expression": _visit_conversion,
        "keyed_element": _visit_keyed_element,
    },
    finish=lambda walk: walk.export_public("method"),
)

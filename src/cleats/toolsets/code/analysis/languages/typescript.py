"""The language tables of TypeScript, with and without JSX: JavaScript's table with types."""

from msgspec.structs import replace

from cleats.toolsets.code.analysis.languages import assignments, grammar_workarounds, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.javascript import JAVASCRIPT
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_SHAPE_PARENT_KINDS = ("interface_declaration", "type_alias_declaration", "type_annotation")
_COMPOUND_TYPE_KINDS = ("union_type", "intersection_type", "parenthesized_type")
_METHOD_SYNTAX = table.DeclarationSyntax("method", body=())
_CONSTRUCTOR_SYNTAX = table.DeclarationSyntax("constructor", result=("type",), body=())
_FUNCTION_SYNTAX = table.DeclarationSyntax("function", body=())
_CONSTANT_SYNTAX = table.DeclarationSyntax("constant", parameters=(), result=(), body=())


def _infer_type(syntax: SyntaxTree, node: int) -> str:
    """Return the type in `<Row>x`, or the class that is called."""
    if (kind := syntax.kinds[node]) == "type_assertion":
        return syntax.text(syntax.find_child(node, "type_arguments"))[1:-1]
    function = syntax.find_child(node, "function") if kind == "call_expression" else NO_NODE
    name = syntax.text(function) if syntax.kinds[function] == "identifier" else ""
    return name if name[:1].isupper() else ""


def _visit_shape(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit an interface or a type made of objects, whose methods are declarations.

    A union of hundreds of types is hundreds of levels deep, so it is read in a loop and not recursively.
    """
    if walk.kinds[walk.parents[node]] not in _SHAPE_PARENT_KINDS:
        return False
    descendant, stop = node, walk.stops[node]
    while descendant < stop:
        if (kind := walk.kinds[descendant]) in ("interface_body", "object_type"):
            _visit_members(walk, descendant, "")
        elif kind in _COMPOUND_TYPE_KINDS:
            descendant += 1
            continue
        else:
            walk.visit(descendant, None)
        descendant = walk.stops[descendant]
    return True


def _visit_members(walk: SyntaxWalker, node: int, prefix: str) -> None:
    for child in walk.children(node):
        if (kind := walk.kinds[child]) == "method_signature":
            if name := _read_member_name(walk, child, prefix):
                read_declaration(walk, child, child, _METHOD_SYNTAX, name)
        elif kind == "property_signature":
            _visit_property_signature(walk, child, prefix)
        elif kind == "construct_signature":
            read_declaration(walk, child, child, _CONSTRUCTOR_SYNTAX, f"{prefix}new")
        elif kind in walk.language.comments:
            walk.visit(child, None)
        else:
            walk.record_uses(child)


def _read_member_name(walk: SyntaxWalker, node: int, prefix: str) -> str:
    name_node = walk.find_child(node, "name")
    return prefix + walk.text(name_node).strip("\"'")[:200] if name_node != NO_NODE else ""


def _visit_property_signature(walk: SyntaxWalker, node: int, prefix: str) -> None:
    """Visit a property; a function type makes it a method, an object type has members itself."""
    name, type_node = _read_member_name(walk, node, prefix), walk.find_child(node, "type")
    inner = type_node + 1 if type_node != NO_NODE and type_node + 1 < walk.stops[type_node] else NO_NODE
    if not name or inner == NO_NODE:
        walk.record_uses(node)
        return
    if (kind := walk.kinds[inner]) == "function_type":
        read_declaration(walk, node, inner, _METHOD_SYNTAX, name)
        return
    assignments.record_type(walk, "field", name, assignments.read_type(walk, type_node), "annotation")
    if kind == "object_type":
        _visit_members(walk, inner, f"{name}.")
    else:
        walk.record_uses(type_node)


def _visit_ambient_variable(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `declare const f: () => void`: a function or an object defined elsewhere."""
    name_node, type_node = walk.find_child(node, "name"), walk.find_child(node, "type")
    if NO_NODE in (name_node, type_node) or walk.find_child(node, "value") != NO_NODE:
        return False
    inner, start = type_node + 1, walk.starts[walk.parents[node]]
    kind = walk.kinds[inner] if inner < walk.stops[type_node] else ""
    if not walk.data.startswith(b"const", start):
        return False
    if kind == "function_type":
        read_declaration(walk, node, inner, _FUNCTION_SYNTAX, walk.text(name_node))
        return True
    if kind != "object_type" or walk.count_lines(node) < table.MIN_CONSTANT_LINES:
        return False
    read_declaration(walk, node, type_node, _CONSTANT_SYNTAX, walk.text(name_node))
    return True


TYPESCRIPT = table.load_table(
    "typescript",
    base=JAVASCRIPT,
    declares=JAVASCRIPT.declares,
    carriers={kind: row for kind, row in JAVASCRIPT.carriers.items() if kind != "field_definition"},
    modifiers=JAVASCRIPT.modifiers,
    assigns={kind: row for kind, row in JAVASCRIPT.assigns.items() if kind != "field_definition"},
    made=_infer_type,
    hooks={
        **JAVASCRIPT.hooks,
        **dict.fromkeys(("interface_body", "object_type", *_COMPOUND_TYPE_KINDS), _visit_shape),
        "variable_declarator": _visit_ambient_variable,
    },
    ease=grammar_workarounds.rewrite_typescript,
)

TSX = replace(TYPESCRIPT, id="tsx", maker="language_tsx")

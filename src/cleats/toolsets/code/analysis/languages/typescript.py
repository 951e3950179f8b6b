"""The language tables of TypeScript, with and without JSX: JavaScript's table with types."""

from msgspec.structs import replace

from cleats.toolsets.code.analysis.languages import assignments, grammar_workarounds, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.javascript import JAVASCRIPT
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_HERITAGE_KINDS = kind_set("class_heritage extends_clause implements_clause extends_type_clause")

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


TYPESCRIPT = replace(
    JAVASCRIPT,
    id="typescript",
    fallback="",
    grammar="tree_sitter_typescript",
    maker="language_typescript",
    declares={
        **JAVASCRIPT.declares,
        "class_declaration class abstract_class_declaration": table.DeclarationSyntax("class", bases=_HERITAGE_KINDS),
        "interface_declaration": table.DeclarationSyntax("interface", bases=_HERITAGE_KINDS),
        "enum_declaration": table.DeclarationSyntax("enum"),
        "type_alias_declaration": table.DeclarationSyntax("type", body=("value",)),
        "internal_module module": table.DeclarationSyntax("namespace"),
        "function_signature": table.DeclarationSyntax("function"),
        "abstract_method_signature method_signature": table.DeclarationSyntax("method"),
    },
    carriers={
        **{kind: row for kind, row in JAVASCRIPT.carriers.items() if kind != "field_definition"},
        "public_field_definition": table.CarrierSyntax("name", "value", kind="method"),
    },
    wraps=JAVASCRIPT.wraps | {"ambient_declaration"},
    parameters={"required_parameter optional_parameter": table.ParameterSyntax(name=("pattern",))},
    modifiers={
        **JAVASCRIPT.modifiers,
        "accessibility_modifier": "",
        "override_modifier": "override",
        **table.list_modifiers("abstract readonly declare"),
    },
    not_bases=kind_set("type_arguments"),
    type_names=kind_set("type_identifier nested_type_identifier"),
    transparent=JAVASCRIPT.transparent | {"as_expression", "non_null_expression", "satisfies_expression"},
    assigns={
        **{kind: row for kind, row in JAVASCRIPT.assigns.items() if kind != "field_definition"},
        "public_field_definition": table.AssignmentSyntax(left="name", right="value", typed_field=True),
    },
    types=kind_set("""type_annotation type_arguments type_parameters predefined_type union_type intersection_type
        generic_type array_type object_type literal_type function_type lookup_type tuple_type conditional_type
        index_type_query type_query type_predicate_annotation asserts_annotation interface_body"""),
    casts={"as_expression satisfies_expression": ""},
    made=_infer_type,
    hooks={
        **JAVASCRIPT.hooks,
        **dict.fromkeys(("interface_body", "object_type", *_COMPOUND_TYPE_KINDS), _visit_shape),
        "variable_declarator": _visit_ambient_variable,
    },
    ease=grammar_workarounds.rewrite_typescript,
    ignored=JAVASCRIPT.ignored | {"accessibility_modifier", "override_modifier"},
)

TSX = replace(TYPESCRIPT, id="tsx", maker="language_tsx")

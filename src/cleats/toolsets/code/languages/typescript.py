"""TypeScript, with and without JSX: JavaScript's table with types."""

from msgspec.structs import replace

from cleats.toolsets.code.languages.assignments import add_type, type_text
from cleats.toolsets.code.languages.javascript import (
    ASSIGNS,
    CARRIERS,
    DECLARES,
    JAVASCRIPT,
    MODIFIERS,
)
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import Assign, Carrier, Declares, Parameter
from cleats.toolsets.code.languages.walk import Flow, Walk

_HERITAGE = frozenset(
    {"class_heritage", "extends_clause", "implements_clause", "extends_type_clause"}
)

_SHAPES = ("interface_declaration", "type_alias_declaration")


def _made(syntax: Syntax, node: int) -> str:
    """What `<Row>x` says, or the class that is called."""
    kind = syntax.kinds[node]
    if kind == "type_assertion":
        given = syntax.child(node, "type_arguments")
        return syntax.text(given)[1:-1] if given != NONE else ""
    function = syntax.child(node, "function") if kind == "call_expression" else NONE
    if function == NONE or syntax.kinds[function] != "identifier":
        return ""
    name = syntax.text(function)
    return name if name[:1].isupper() else ""


def _fields(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """What an interface, or a type that is an object, says of its members."""
    syntax = walk.syntax
    if syntax.kinds[syntax.parents[node]] not in (
        "interface_declaration",
        "type_alias_declaration",
    ):
        return False
    for child in syntax.children(node):
        name, given = syntax.child(child, "name"), syntax.child(child, "type")
        if syntax.kinds[child] == "property_signature" and NONE not in (name, given):
            add_type(walk, "field", syntax.text(name), type_text(walk, given), "annotation")
    return False


TYPESCRIPT = replace(
    JAVASCRIPT,
    id="typescript",
    grammar="tree_sitter_typescript",
    maker="language_typescript",
    declares={
        **DECLARES,
        "class_declaration": Declares("class", bases=_HERITAGE),
        "class": Declares("class", bases=_HERITAGE),
        "abstract_class_declaration": Declares("class", bases=_HERITAGE),
        "interface_declaration": Declares("interface", bases=_HERITAGE),
        "enum_declaration": Declares("enum"),
        "type_alias_declaration": Declares("type", body=("value",)),
        "internal_module": Declares("namespace"),
        "module": Declares("namespace"),
        "function_signature": Declares("function"),
        "abstract_method_signature": Declares("method"),
    },
    carriers={
        **{kind: row for kind, row in CARRIERS.items() if kind != "field_definition"},
        "public_field_definition": Carrier("name", "value", kind="method"),
    },
    wraps=JAVASCRIPT.wraps | {"ambient_declaration"},
    parameters={
        "required_parameter": Parameter(name=("pattern",)),
        "optional_parameter": Parameter(name=("pattern",)),
    },
    modifiers={
        **MODIFIERS,
        "accessibility_modifier": "",
        "override_modifier": "override",
        "abstract": "abstract",
        "readonly": "readonly",
        "declare": "declare",
    },
    not_bases=frozenset({"type_arguments"}),
    type_names=frozenset({"type_identifier", "nested_type_identifier"}),
    transparent=JAVASCRIPT.transparent
    | {"as_expression", "non_null_expression", "satisfies_expression"},
    assigns={
        **{kind: row for kind, row in ASSIGNS.items() if kind != "field_definition"},
        "public_field_definition": Assign(left="name", right="value", typed_field=True),
    },
    types=frozenset(
        {
            "type_annotation",
            "type_arguments",
            "type_parameters",
            "predefined_type",
            "union_type",
            "intersection_type",
            "generic_type",
            "array_type",
            "object_type",
            "literal_type",
            "function_type",
            "lookup_type",
            "tuple_type",
            "conditional_type",
            "index_type_query",
            "type_query",
            "type_predicate_annotation",
            "asserts_annotation",
            "interface_body",
        }
    ),
    casts={"as_expression": "", "satisfies_expression": ""},
    made=_made,
    hooks={**JAVASCRIPT.hooks, "interface_body": _fields, "object_type": _fields},
    ignored=JAVASCRIPT.ignored | {"accessibility_modifier", "override_modifier"},
)

TSX = replace(TYPESCRIPT, id="tsx", maker="language_tsx")

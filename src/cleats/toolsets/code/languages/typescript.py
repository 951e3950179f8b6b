"""TypeScript, with and without JSX: JavaScript's table with types."""

from msgspec.structs import replace

from cleats.toolsets.code.languages import easing
from cleats.toolsets.code.languages.assignments import add_type, type_text
from cleats.toolsets.code.languages.heads import declare
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

_SHAPES = ("interface_declaration", "type_alias_declaration", "type_annotation")
_JOINTS = ("union_type", "intersection_type", "parenthesized_type")
_METHOD = Declares("method", body=())
_CONSTRUCTOR = Declares("constructor", result=("type",), body=())
_FUNCTION = Declares("function", body=())
_CONSTANT = Declares("constant", parameters=(), result=(), body=())
_CONSTANT_LINES = 3


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


def _shape(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """An interface, or a type made of objects: their methods are declarations.

    A union of hundreds is as many levels deep, so it is gone through and not down.
    """
    syntax = walk.syntax
    if syntax.kinds[syntax.parents[node]] not in _SHAPES:
        return False
    at, stop = node, syntax.stops[node]
    while at < stop:
        kind = syntax.kinds[at]
        if kind in ("interface_body", "object_type"):
            _members(walk, at, "")
        elif kind in _JOINTS:
            at += 1
            continue
        else:
            walk.visit(at, None)
        at = syntax.stops[at]
    return True


def _members(walk: Walk, node: int, prefix: str) -> None:
    syntax = walk.syntax
    for child in syntax.children(node):
        kind = syntax.kinds[child]
        if kind == "method_signature":
            if name := _named(walk, child, prefix):
                declare(walk, child, child, _METHOD, name)
        elif kind == "property_signature":
            _property(walk, child, prefix)
        elif kind == "construct_signature":
            declare(walk, child, child, _CONSTRUCTOR, f"{prefix}new")
        elif kind in walk.language.comments:
            walk.visit(child, None)
        else:
            walk.use(child)


def _named(walk: Walk, node: int, prefix: str) -> str:
    name = walk.syntax.child(node, "name")
    return prefix + walk.syntax.text(name).strip("\"'")[:200] if name != NONE else ""


def _property(walk: Walk, node: int, prefix: str) -> None:
    """One whose type is a function is a method; one that is an object has members itself."""
    syntax = walk.syntax
    name, given = _named(walk, node, prefix), syntax.child(node, "type")
    inner = given + 1 if given != NONE and given + 1 < syntax.stops[given] else NONE
    if not name or inner == NONE:
        walk.use(node)
        return
    kind = syntax.kinds[inner]
    if kind == "function_type":
        declare(walk, node, inner, _METHOD, name)
        return
    add_type(walk, "field", name, type_text(walk, given), "annotation")
    if kind == "object_type":
        _members(walk, inner, f"{name}.")
    else:
        walk.use(given)


def _ambient(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`declare const f: () => void` tells of a function that is elsewhere; so of an object."""
    syntax = walk.syntax
    name, given = syntax.child(node, "name"), syntax.child(node, "type")
    if NONE in (name, given) or syntax.child(node, "value") != NONE:
        return False
    inner, start = given + 1, syntax.starts[syntax.parents[node]]
    kind = syntax.kinds[inner] if inner < syntax.stops[given] else ""
    if not syntax.data.startswith(b"const", start):
        return False
    if kind == "function_type":
        declare(walk, node, inner, _FUNCTION, syntax.text(name))
        return True
    lines = syntax.data.count(b"\n", syntax.starts[node], syntax.ends[node]) + 1
    if kind != "object_type" or lines < _CONSTANT_LINES:
        return False
    declare(walk, node, given, _CONSTANT, syntax.text(name))
    return True


TYPESCRIPT = replace(
    JAVASCRIPT,
    id="typescript",
    fallback="",
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
        "method_signature": Declares("method"),
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
    hooks={
        **JAVASCRIPT.hooks,
        **dict.fromkeys(("interface_body", "object_type", *_JOINTS), _shape),
        "variable_declarator": _ambient,
    },
    ease=easing.typescript,
    ignored=JAVASCRIPT.ignored | {"accessibility_modifier", "override_modifier"},
)

TSX = replace(TYPESCRIPT, id="tsx", maker="language_tsx")

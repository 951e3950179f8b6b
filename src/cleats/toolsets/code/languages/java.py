"""Java."""

import re

from cleats.toolsets.code.languages import easing
from cleats.toolsets.code.languages.assignments import assign, assign_or_augment, take_outer_type
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import (
    COMPARISONS,
    TYPES,
    Assign,
    Call,
    Carrier,
    Declares,
    Language,
    Parameter,
)
from cleats.toolsets.code.languages.walk import Flow, Walk

_BASES = frozenset({"superclass", "super_interfaces", "extends_interfaces", "type_list"})
_MODULE = re.compile(r"import\s+module\s+([^;]+)")
_TESTED = Assign(left="name", right="left", type="right")
_TYPES = (
    "type_identifier",
    "scoped_type_identifier",
    "generic_type",
    "array_type",
    "integral_type",
    "floating_point_type",
    "boolean_type",
)


def _settle(frame: Frame, around: Frame) -> None:
    if frame.kind == "method" and around.around is None:
        # In a file without a class, methods belong to no type that has a name.
        frame.kind = "function"
    if frame.visibility:
        return
    if around.kind == "enum" and frame.kind == "constructor":
        frame.visibility = "private"
    elif around.kind == "interface":
        frame.visibility = "public"
    elif around.around is None or around.kind in TYPES:
        frame.visibility = "package"


def _thrown(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """What a head says it throws."""
    for child in walk.syntax.children(node):
        walk.frame.throws[walk.syntax.text(child)] = None
        walk.use(child)
    return True


def _pattern(walk: Walk, node: int, _flow: Flow | None) -> bool:
    _bind(walk, node)
    return True


def _bind(walk: Walk, node: int) -> list[str]:
    """Names in a pattern receive what they match; the one before the parentheses is a type."""
    syntax, frame = walk.syntax, walk.frame
    names: list[str] = []
    for at in range(node, syntax.stops[node]):
        if syntax.kinds[at] == "identifier":
            if syntax.kinds[syntax.parents[at]] == "record_pattern":
                frame.uses[syntax.text(at)] = None
            else:
                names.append(syntax.text(at))
        elif syntax.kinds[at] in walk.language.type_names:
            frame.uses[syntax.text(at)] = None
    frame.writes.update(dict.fromkeys(names))
    return names


def _label(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`case null, default`: the word is a name to the grammar."""
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.text(child) != "default":
            walk.visit(child, None)
    return True


def _tested(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`o instanceof String s` gives `o` to `s`; a record gives its parts."""
    syntax = walk.syntax
    if syntax.child(node, "name") != NONE:
        assign(walk, node, flow, _TESTED)
        return True
    value, pattern = syntax.child(node, "left"), syntax.child(node, "pattern")
    if NONE in (value, pattern):
        return False
    saved, walk.calls = walk.calls, []
    walk.visit(value, given := Flow())
    walk.step(node, _bind(walk, pattern), given)
    walk.calls = saved
    if flow is not None:
        flow.names += given.names
    return True


def _reference(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`Type::method` is a name."""
    name = "".join(walk.syntax.text(node).split())
    if "(" in name:
        return False
    walk.frame.reads[name] = None
    if flow is not None:
        flow.names.append(name)
    return True


def _break(walk: Walk, _node: int, _flow: Flow | None) -> bool:
    walk.frame.breaks += 1
    return True


def _continue(walk: Walk, _node: int, _flow: Flow | None) -> bool:
    walk.frame.continues += 1
    return True


def _labelled(walk: Walk, node: int, flow: Flow | None) -> bool:
    for child in walk.syntax.children(node):
        if walk.syntax.kinds[child] != "identifier":
            walk.visit(child, flow)
    return True


def _imported(syntax: Syntax, node: int) -> list[str]:
    path = syntax.child(node, "scoped_identifier", "identifier")
    if path == NONE:
        return []
    if found := _MODULE.match(syntax.text(node)):
        return ["".join(found[1].split())]
    everything = ".*" if syntax.child(node, "asterisk") != NONE else ""
    return ["".join(syntax.text(path).split()) + everything]


def _finish(walk: Walk) -> None:
    for frame in walk.frames:
        if frame.top and frame.visibility == "public":
            walk.exports[frame.name] = None


JAVA = Language(
    id="java",
    grammar="tree_sitter_java",
    declares={
        "class_declaration": Declares("class", bases=_BASES),
        "interface_declaration": Declares("interface", bases=_BASES),
        "annotation_type_declaration": Declares("interface"),
        "enum_declaration": Declares("enum", bases=_BASES),
        "record_declaration": Declares("struct", bases=_BASES),
        "method_declaration": Declares("method", result=("type",)),
        "annotation_type_element_declaration": Declares("method", result=("type",), body=()),
        "constructor_declaration": Declares("constructor", result=()),
        "compact_constructor_declaration": Declares("constructor", result=()),
    },
    carriers={"variable_declarator": Carrier("name", "value")},
    closures=frozenset({"lambda_expression"}),
    parameters={
        "formal_parameter": Parameter(),
        "spread_parameter": Parameter(name=("variable_declarator",), type=_TYPES),
    },
    decorators=frozenset({"annotation", "marker_annotation"}),
    modifiers={
        word: word
        for word in (
            "public",
            "protected",
            "private",
            "static",
            "final",
            "abstract",
            "default",
            "synchronized",
            "native",
            "sealed",
            "non-sealed",
            "strictfp",
        )
    },
    modifier_lists=frozenset({"modifiers"}),
    settle=_settle,
    doc_comments=("/*", "//"),
    void=frozenset({"void", "Void"}),
    names=frozenset({"identifier", "this", "super"}),
    type_names=frozenset({"type_identifier", "scoped_type_identifier"}),
    members={
        "field_access": ("object", "field"),
        "scoped_identifier": ("scope", "name"),
    },
    indexes={"array_access": "array"},
    calls={
        "method_invocation": Call(function=("name",), receiver=("object",)),
        "object_creation_expression": Call(function=("type",), prefix="new "),
        "explicit_constructor_invocation": Call(function=("constructor",)),
    },
    transparent=frozenset({"parenthesized_expression", "cast_expression", "generic_type"}),
    assigns={
        "assignment_expression": Assign(),
        "variable_declarator": Assign(left="name", right="value"),
        "enhanced_for_statement": Assign(left="name", right="value", loop=True),
        "resource": Assign(left="name", right="value"),
        "catch_formal_parameter": Assign(left="name", right="no value"),
        "enum_constant": Assign(left="name", right="arguments", typed_field=True),
    },
    updates=frozenset({"update_expression"}),
    types=frozenset(
        {
            "generic_type",
            "array_type",
            "annotated_type",
            "integral_type",
            "floating_point_type",
            "boolean_type",
            "void_type",
            "catch_type",
            "class_literal",
            "type_arguments",
            "type_parameters",
        }
    ),
    texts=frozenset({"string_fragment", "multiline_string_fragment"}),
    literals={
        "decimal_integer_literal": "int",
        "hex_integer_literal": "int",
        "octal_integer_literal": "int",
        "binary_integer_literal": "int",
        "decimal_floating_point_literal": "double",
        "hex_floating_point_literal": "double",
        "character_literal": "char",
        "string_literal": "String",
        "true": "boolean",
        "false": "boolean",
    },
    casts={"cast_expression": "type"},
    verdicts={"binary_expression": COMPARISONS, "unary_expression": frozenset({"!"})},
    choices={"ternary_expression": ("condition",), "switch_expression": ("condition",)},
    made=lambda _syntax, _node: "",
    returns=frozenset({"return_statement"}),
    throws=frozenset({"throw_statement"}),
    branches=frozenset({"if_statement", "ternary_expression", "catch_clause"}),
    cases=frozenset({"switch_block_statement_group", "switch_rule"}),
    loops=frozenset({"for_statement", "enhanced_for_statement", "while_statement", "do_statement"}),
    comments=frozenset({"line_comment", "block_comment"}),
    imports={"import_declaration": _imported},
    ignored=frozenset({"package_declaration"}),
    hooks={
        "throws": _thrown,
        "variable_declarator": take_outer_type,
        "assignment_expression": assign_or_augment,
        "instanceof_expression": _tested,
        "method_reference": _reference,
        "pattern": _pattern,
        "switch_label": _label,
        "break_statement": _break,
        "continue_statement": _continue,
        "labeled_statement": _labelled,
    },
    ease=easing.java,
    finish=_finish,
)

"""The language table of Java."""

import re

from cleats.toolsets.code.analysis.languages import grammar_workarounds
from cleats.toolsets.code.analysis.languages.assignments import (
    record_outer_type,
    visit_assignment,
    visit_plain_or_augmented,
)
from cleats.toolsets.code.analysis.languages.frame import Frame
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import (
    COMPARISON_OPERATORS,
    TYPE_KINDS,
    AssignmentSyntax,
    CallSyntax,
    CarrierSyntax,
    DeclarationSyntax,
    Language,
    ParameterSyntax,
)
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_BASE_KINDS = frozenset({"superclass", "super_interfaces", "extends_interfaces", "type_list"})
_IMPORT_MODULE_PATTERN = re.compile(r"import\s+module\s+([^;]+)")
_INSTANCEOF_ASSIGNMENT = AssignmentSyntax(left="name", right="left", type="right")
_TYPE_NODE_KINDS = (
    "type_identifier",
    "scoped_type_identifier",
    "generic_type",
    "array_type",
    "integral_type",
    "floating_point_type",
    "boolean_type",
)


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
    if frame.kind == "method" and parent.parent is None:
        # In a file without a class, methods do not belong to a named type.
        frame.kind = "function"
    if frame.visibility:
        return
    if parent.kind == "enum" and frame.kind == "constructor":
        frame.visibility = "private"
    elif parent.kind == "interface":
        frame.visibility = "public"
    elif parent.parent is None or parent.kind in TYPE_KINDS:
        frame.visibility = "package"


def _visit_throws_clause(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the exceptions that a method header declares."""
    for child in walk.syntax.children(node):
        walk.frame.throws[walk.syntax.text(child)] = None
        walk.record_uses(child)
    return True


def _visit_pattern(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    _bind_pattern(walk, node)
    return True


def _bind_pattern(walk: SyntaxWalker, node: int) -> list[str]:
    """Bind the names in a pattern to what they match; the name before the parentheses is a type."""
    syntax, frame = walk.syntax, walk.frame
    names: list[str] = []
    for descendant in range(node, syntax.stops[node]):
        if syntax.kinds[descendant] == "identifier":
            if syntax.kinds[syntax.parents[descendant]] == "record_pattern":
                frame.uses[syntax.text(descendant)] = None
            else:
                names.append(syntax.text(descendant))
        elif syntax.kinds[descendant] in walk.language.type_names:
            frame.uses[syntax.text(descendant)] = None
    frame.writes.update(dict.fromkeys(names))
    return names


def _visit_switch_label(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `case null, default`, where the grammar takes `default` for a name."""
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.text(child) != "default":
            walk.visit(child, None)
    return True


def _visit_instanceof(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `o instanceof String s`, which assigns `o` to `s`; a record pattern binds its parts."""
    syntax = walk.syntax
    if syntax.find_child(node, "name") != NO_NODE:
        visit_assignment(walk, node, flow, _INSTANCEOF_ASSIGNMENT)
        return True
    value, pattern = syntax.find_child(node, "left"), syntax.find_child(node, "pattern")
    if NO_NODE in (value, pattern):
        return False
    saved_calls, walk.calls = walk.calls, []
    walk.visit(value, value_flow := ValueFlow())
    walk.record_step(node, _bind_pattern(walk, pattern), value_flow)
    walk.calls = saved_calls
    if flow is not None:
        flow.names += value_flow.names
    return True


def _visit_method_reference(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `Type::method` as a name."""
    name = "".join(walk.syntax.text(node).split())
    if "(" in name:
        return False
    walk.frame.reads[name] = None
    if flow is not None:
        flow.names.append(name)
    return True


def _visit_break(walk: SyntaxWalker, _node: int, _flow: ValueFlow | None) -> bool:
    walk.frame.breaks += 1
    return True


def _visit_continue(walk: SyntaxWalker, _node: int, _flow: ValueFlow | None) -> bool:
    walk.frame.continues += 1
    return True


def _visit_labeled_statement(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    for child in walk.syntax.children(node):
        if walk.syntax.kinds[child] != "identifier":
            walk.visit(child, flow)
    return True


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    path = syntax.find_child(node, "scoped_identifier", "identifier")
    if path == NO_NODE:
        return []
    if match := _IMPORT_MODULE_PATTERN.match(syntax.text(node)):
        return ["".join(match[1].split())]
    wildcard = ".*" if syntax.find_child(node, "asterisk") != NO_NODE else ""
    return ["".join(syntax.text(path).split()) + wildcard]


def _collect_exports(walk: SyntaxWalker) -> None:
    for frame in walk.frames:
        if frame.is_top_level and frame.visibility == "public":
            walk.exports[frame.name] = None


JAVA = Language(
    id="java",
    grammar="tree_sitter_java",
    declares={
        "class_declaration": DeclarationSyntax("class", bases=_BASE_KINDS),
        "interface_declaration": DeclarationSyntax("interface", bases=_BASE_KINDS),
        "annotation_type_declaration": DeclarationSyntax("interface"),
        "enum_declaration": DeclarationSyntax("enum", bases=_BASE_KINDS),
        "record_declaration": DeclarationSyntax("struct", bases=_BASE_KINDS),
        "method_declaration": DeclarationSyntax("method", result=("type",)),
        "annotation_type_element_declaration": DeclarationSyntax("method", result=("type",), body=()),
        "constructor_declaration": DeclarationSyntax("constructor", result=()),
        "compact_constructor_declaration": DeclarationSyntax("constructor", result=()),
    },
    carriers={"variable_declarator": CarrierSyntax("name", "value")},
    closures=frozenset({"lambda_expression"}),
    parameters={
        "formal_parameter": ParameterSyntax(),
        "spread_parameter": ParameterSyntax(name=("variable_declarator",), type=_TYPE_NODE_KINDS),
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
    settle=_adjust_declaration,
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
        "method_invocation": CallSyntax(function=("name",), receiver=("object",)),
        "object_creation_expression": CallSyntax(function=("type",), prefix="new "),
        "explicit_constructor_invocation": CallSyntax(function=("constructor",)),
    },
    transparent=frozenset({"parenthesized_expression", "cast_expression", "generic_type"}),
    assigns={
        "assignment_expression": AssignmentSyntax(),
        "variable_declarator": AssignmentSyntax(left="name", right="value"),
        "enhanced_for_statement": AssignmentSyntax(left="name", right="value", loop=True),
        "resource": AssignmentSyntax(left="name", right="value"),
        "catch_formal_parameter": AssignmentSyntax(left="name", right="no value"),
        "enum_constant": AssignmentSyntax(left="name", right="arguments", typed_field=True),
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
    verdicts={"binary_expression": COMPARISON_OPERATORS, "unary_expression": frozenset({"!"})},
    choices={"ternary_expression": ("condition",), "switch_expression": ("condition",)},
    made=lambda _syntax, _node: "",
    returns=frozenset({"return_statement"}),
    throws=frozenset({"throw_statement"}),
    branches=frozenset({"if_statement", "ternary_expression", "catch_clause"}),
    cases=frozenset({"switch_block_statement_group", "switch_rule"}),
    loops=frozenset({"for_statement", "enhanced_for_statement", "while_statement", "do_statement"}),
    comments=frozenset({"line_comment", "block_comment"}),
    imports={"import_declaration": _read_imports},
    ignored=frozenset({"package_declaration"}),
    hooks={
        "throws": _visit_throws_clause,
        "variable_declarator": record_outer_type,
        "assignment_expression": visit_plain_or_augmented,
        "instanceof_expression": _visit_instanceof,
        "method_reference": _visit_method_reference,
        "pattern": _visit_pattern,
        "switch_label": _visit_switch_label,
        "break_statement": _visit_break,
        "continue_statement": _visit_continue,
        "labeled_statement": _visit_labeled_statement,
    },
    ease=grammar_workarounds.rewrite_java,
    finish=_collect_exports,
)

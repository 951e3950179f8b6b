"""The language table of Java."""

import re

from cleats.toolsets.code.analysis.languages import assignments, grammar_workarounds, table
from cleats.toolsets.code.analysis.languages.frame import Frame
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_BASE_KINDS = kind_set("superclass super_interfaces extends_interfaces type_list")
_IMPORT_MODULE_PATTERN = re.compile(r"import\s+module\s+([^;]+)")
_INSTANCEOF_ASSIGNMENT = table.AssignmentSyntax(left="name", right="left", type="right")
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
    elif parent.parent is None or parent.kind in table.TYPE_KINDS:
        frame.visibility = "package"


def _visit_throws_clause(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Record the exceptions that a method header declares."""
    for child in walk.syntax.children(node):
        walk.frame.throws[walk.syntax.text(child)] = None
        walk.record_uses(child)


def _bind_pattern(walk: SyntaxWalker, node: int, _flow: ValueFlow | None = None) -> list[str]:
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


def _visit_switch_label(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `case null, default`, where the grammar takes `default` for a name."""
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.text(child) != "default":
            walk.visit(child, None)


def _visit_instanceof(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `o instanceof String s`, which assigns `o` to `s`; a record pattern binds its parts."""
    syntax = walk.syntax
    if syntax.find_child(node, "name") != NO_NODE:
        assignments.visit_assignment(walk, node, flow, _INSTANCEOF_ASSIGNMENT)
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


def _visit_labeled_statement(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    for child in walk.syntax.children(node):
        if walk.syntax.kinds[child] != "identifier":
            walk.visit(child, flow)


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    path = syntax.find_child(node, "scoped_identifier", "identifier")
    if path == NO_NODE:
        return []
    if match := _IMPORT_MODULE_PATTERN.match(syntax.text(node)):
        return ["".join(match[1].split())]
    wildcard = ".*" if syntax.find_child(node, "asterisk") != NO_NODE else ""
    return ["".join(syntax.text(path).split()) + wildcard]


JAVA = table.Language(
    id="java",
    grammar="tree_sitter_java",
    declares={
        "class_declaration": table.DeclarationSyntax("class", bases=_BASE_KINDS),
        "interface_declaration": table.DeclarationSyntax("interface", bases=_BASE_KINDS),
        "annotation_type_declaration": table.DeclarationSyntax("interface"),
        "enum_declaration": table.DeclarationSyntax("enum", bases=_BASE_KINDS),
        "record_declaration": table.DeclarationSyntax("struct", bases=_BASE_KINDS),
        "method_declaration": table.DeclarationSyntax("method", result=("type",)),
        "annotation_type_element_declaration": table.DeclarationSyntax("method", result=("type",), body=()),
        "constructor_declaration compact_constructor_declaration": table.DeclarationSyntax("constructor", result=()),
    },
    carriers={"variable_declarator": table.CarrierSyntax("name", "value")},
    closures=kind_set("lambda_expression"),
    parameters={
        "formal_parameter": table.ParameterSyntax(),
        "spread_parameter": table.ParameterSyntax(name=("variable_declarator",), type=_TYPE_NODE_KINDS),
    },
    decorators=kind_set("annotation marker_annotation"),
    modifiers={
        word: word
        for word in kind_set("""
            public protected private static final abstract default synchronized native sealed non-sealed strictfp
        """)
    },
    modifier_lists=kind_set("modifiers"),
    settle=_adjust_declaration,
    void=kind_set("void Void"),
    names=kind_set("identifier this super"),
    type_names=kind_set("type_identifier scoped_type_identifier"),
    members={"field_access": ("object", "field"), "scoped_identifier": ("scope", "name")},
    indexes={"array_access": "array"},
    calls={
        "method_invocation": table.CallSyntax(function=("name",), receiver=("object",)),
        "object_creation_expression": table.CallSyntax(function=("type",), prefix="new "),
        "explicit_constructor_invocation": table.CallSyntax(function=("constructor",)),
    },
    transparent=kind_set("parenthesized_expression cast_expression generic_type"),
    assigns={
        "assignment_expression": table.AssignmentSyntax(),
        "variable_declarator resource": table.AssignmentSyntax(left="name", right="value"),
        "enhanced_for_statement": table.AssignmentSyntax(left="name", right="value", loop=True),
        "catch_formal_parameter": table.AssignmentSyntax(left="name", right="no value"),
        "enum_constant": table.AssignmentSyntax(left="name", right="arguments", typed_field=True),
    },
    updates=kind_set("update_expression"),
    types=kind_set("""
        generic_type array_type annotated_type integral_type floating_point_type boolean_type void_type catch_type
        class_literal type_arguments type_parameters
    """),
    texts=kind_set("string_fragment multiline_string_fragment"),
    literals={
        "decimal_integer_literal hex_integer_literal octal_integer_literal binary_integer_literal": "int",
        "decimal_floating_point_literal hex_floating_point_literal": "double",
        "character_literal": "char",
        "string_literal": "String",
        "true false": "boolean",
    },
    casts={"cast_expression": "type"},
    verdicts={"binary_expression": table.COMPARISON_OPERATORS, "unary_expression": kind_set("!")},
    choices={"ternary_expression switch_expression": ("condition",)},
    made=lambda _syntax, _node: "",
    throws=kind_set("throw_statement"),
    branches=kind_set("if_statement ternary_expression catch_clause"),
    cases=kind_set("switch_block_statement_group switch_rule"),
    loops=kind_set("for_statement enhanced_for_statement while_statement do_statement"),
    comments=kind_set("line_comment block_comment"),
    imports={"import_declaration": _read_imports},
    ignored=kind_set("package_declaration break_statement continue_statement"),
    hooks={
        "throws": _visit_throws_clause,
        "variable_declarator": assignments.record_outer_type,
        "assignment_expression": assignments.visit_plain_or_augmented,
        "instanceof_expression": _visit_instanceof,
        "method_reference": _visit_method_reference,
        "pattern": _bind_pattern,
        "switch_label": _visit_switch_label,
        "labeled_statement": _visit_labeled_statement,
    },
    ease=grammar_workarounds.rewrite_java,
    finish=SyntaxWalker.export_public,
)

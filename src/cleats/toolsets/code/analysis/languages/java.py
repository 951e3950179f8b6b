"""The language table of Java."""

import re

from cleats.toolsets.code.analysis.languages import assignments, grammar_workarounds, table
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_BASE_KINDS = kind_set("superclass super_interfaces extends_interfaces type_list")
_IMPORT_MODULE_PATTERN = re.compile(r"import\s+module\s+([^;]+)")
_INSTANCEOF_ASSIGNMENT = table.AssignmentSyntax(left="name", right="left", type="right")
_TYPE_NODE_KINDS = (
    *("type_identifier", "scoped_type_identifier", "generic_type", "array_type"),
    *("integral_type", "floating_point_type", "boolean_type"),
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
    for child in walk.children(node):
        walk.frame.throws[walk.text(child)] = None
        walk.record_uses(child)


def _bind_pattern(walk: SyntaxWalker, node: int, _flow: ValueFlow | None = None) -> list[str]:
    """Bind the names in a pattern to what they match; the name before the parentheses is a type."""
    frame = walk.frame
    names: list[str] = []
    for descendant in range(node, walk.stops[node]):
        if walk.kinds[descendant] == "identifier":
            if walk.kinds[walk.parents[descendant]] == "record_pattern":
                frame.uses[walk.text(descendant)] = None
            else:
                names.append(walk.text(descendant))
        elif walk.kinds[descendant] in walk.language.type_names:
            frame.uses[walk.text(descendant)] = None
    frame.writes.update(dict.fromkeys(names))
    return names


def _visit_switch_label(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `case null, default`, where the grammar takes `default` for a name."""
    walk.visit_all(child for child in walk.children(node) if walk.text(child) != "default")


def _visit_instanceof(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `o instanceof String s`, which assigns `o` to `s`; a record pattern binds its parts."""
    if walk.find_child(node, "name") != NO_NODE:
        assignments.visit_assignment(walk, node, flow, _INSTANCEOF_ASSIGNMENT)
        return True
    value, pattern = walk.find_child(node, "left"), walk.find_child(node, "pattern")
    if NO_NODE in (value, pattern):
        return False
    with walk.open_step(node, _bind_pattern(walk, pattern)) as value_flow:
        walk.visit(value, value_flow)
    if flow is not None:
        flow.names += value_flow.names
    return True


def _visit_method_reference(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `Type::method` as a name."""
    name = "".join(walk.text(node).split())
    if "(" in name:
        return False
    walk.record_read(name, flow)
    return True


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    if (path := syntax.find_child(node, "scoped_identifier", "identifier")) == NO_NODE:
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
    parameters={
        "formal_parameter": table.ParameterSyntax(),
        "spread_parameter": table.ParameterSyntax(name=("variable_declarator",), type=_TYPE_NODE_KINDS),
    },
    decorators=kind_set("annotation marker_annotation"),
    modifiers=table.list_modifiers(
        "public protected private static final abstract default synchronized native sealed non-sealed strictfp"
    ),
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
    types=kind_set("""generic_type array_type annotated_type integral_type floating_point_type boolean_type
        void_type catch_type class_literal type_arguments type_parameters"""),
    literals={
        "decimal_integer_literal hex_integer_literal octal_integer_literal binary_integer_literal": "int",
        "decimal_floating_point_literal hex_floating_point_literal": "double",
        "character_literal": "char",
        "string_literal": "String",
        "true false": "boolean",
    },
    casts={"cast_expression": "type"},
    choices={"ternary_expression switch_expression": ("condition",)},
    made=lambda _syntax, _node: "",
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
        "labeled_statement": lambda walk, node, flow: walk.visit_all([*walk.children(node)][1:], flow),
    },
    ease=grammar_workarounds.rewrite_java,
    finish=SyntaxWalker.export_public,
)

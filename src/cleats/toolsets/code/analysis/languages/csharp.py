"""The language table of C#."""

import re

from cleats.toolsets.code.analysis.languages.assignments import (
    record_outer_type,
    visit_assignment,
    visit_plain_or_augmented,
    visit_update,
)
from cleats.toolsets.code.analysis.languages.csharp_patterns import (
    visit_inline_declaration,
    visit_member_initializers,
    visit_named_pattern,
    visit_subpattern,
    visit_type_test,
)
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
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

_PARAMETER_LABELS = ("parameters", "parameter_list")
_BASE_KINDS = frozenset({"base_list", "primary_constructor_base_type"})
_PROPERTY_SYNTAX = DeclarationSyntax("property", result=("type",), body=("accessors", "value"))
_METHOD_SYNTAX = DeclarationSyntax("method", result=("type",))
_NAMESPACE_SYNTAX = DeclarationSyntax("namespace")
_FIELD_ASSIGNMENT = AssignmentSyntax(left="name", right="value", typed_field=True)
_TUPLE_ASSIGNMENT = AssignmentSyntax(left="tuple_pattern", right="")
_DOC_REFERENCE_PATTERN = re.compile(r'<(?:see|seealso|paramref|typeparamref)\s+\w+="([^"]*)"\s*/>')
_TYPE_ARGUMENTS_PATTERN = re.compile(r"<[^()]*>")
"""Type arguments, which a qualified name retains."""
_DOC_TAG_PATTERN = re.compile(r"</?(?:summary|remarks|para|param|returns|value|exception|c|code)\b[^>]*>")


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
    if not frame.visibility and frame.kind != "namespace":
        if parent.kind == "interface":
            frame.visibility = "public"
        elif parent.kind in TYPE_KINDS:
            frame.visibility = "private"
        elif parent.parent is None or parent.kind == "namespace":
            frame.visibility = "internal"
    if frame.doc:
        frame.doc = _DOC_TAG_PATTERN.sub("", _DOC_REFERENCE_PATTERN.sub(r"\1", frame.doc)).strip()
    frame.calls = {_TYPE_ARGUMENTS_PATTERN.sub("", name): None for name in frame.calls}
    frame.awaits = {name.removesuffix("().ConfigureAwait"): None for name in frame.awaits}


def _visit_file_namespace(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `namespace Shop;`, which contains everything after it."""
    syntax = walk.syntax
    name_node = syntax.find_child(node, "name")
    if name_node == NO_NODE or walk.frame is not walk.module:
        return False
    frame = read_declaration(walk, node, node, _NAMESPACE_SYNTAX, syntax.text(name_node))
    frame.end = len(syntax.data)
    walk.module.nested_ranges[-1] = frame.start, frame.end
    walk.frame = frame
    return True


def _visit_property(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a property; one without code is a field."""
    syntax = walk.syntax
    accessors, value = syntax.find_child(node, "accessors"), syntax.find_child(node, "value")
    has_code = value != NO_NODE and syntax.kinds[value] == "arrow_expression_clause"
    if accessors != NO_NODE:
        has_code = any(syntax.find_child(accessor, "body") != NO_NODE for accessor in syntax.children(accessors))
    if not has_code:
        visit_assignment(walk, node, flow, _FIELD_ASSIGNMENT)
    return not has_code


def _visit_operator(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit operators and indexers, whose name is a symbol."""
    syntax = walk.syntax
    parameters_node = syntax.find_child(node, "parameters")
    if parameters_node == NO_NODE:
        return False
    if syntax.kinds[node] == "indexer_declaration":
        read_declaration(walk, node, node, _PROPERTY_SYNTAX, "this[]")
        return True
    head = syntax.data[syntax.starts[node] : syntax.starts[parameters_node]].decode("utf-8", "replace")
    read_declaration(walk, node, node, _METHOD_SYNTAX, f"operator {head.rpartition('operator')[2].strip()}")
    return True


def _visit_destructor(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    name_node = walk.syntax.find_child(node, "name")
    if name_node == NO_NODE:
        return False
    read_declaration(walk, node, node, _METHOD_SYNTAX, f"~{walk.syntax.text(name_node)}")
    return True


def _visit_arrow_body(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `=> value`, a body that returns the value."""
    for child in walk.syntax.children(node):
        walk.visit_returned(child)
    return True


def _visit_identifier(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit an identifier; only its position distinguishes a type name from other names."""
    if walk.syntax.fields[node] != "type":
        return False
    walk.record_uses(node)
    return True


def _record_type_use(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    walk.record_uses(node)
    return True


def _visit_declarator(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    if walk.syntax.find_child(node, "tuple_pattern") != NO_NODE:
        visit_assignment(walk, node, flow, _TUPLE_ASSIGNMENT)
        return True
    return record_outer_type(walk, node, flow)


def _visit_assignment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit an assignment; `{ Id = 3 }` after `new` sets a field of the new object."""
    syntax = walk.syntax
    left_node, right_node = syntax.find_child(node, "left"), syntax.find_child(node, "right")
    if syntax.kinds[syntax.parents[node]] != "initializer_expression" or NO_NODE in (left_node, right_node):
        return visit_plain_or_augmented(walk, node, flow)
    walk.record_uses(left_node)
    walk.visit(right_node, flow)
    return True


def _visit_increment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `i++`, but not `-i`."""
    data, start, end = walk.syntax.data, walk.syntax.starts[node], walk.syntax.ends[node]
    if not {data[start : start + 2], data[end - 2 : end]} & {b"++", b"--"}:
        return False
    visit_update(walk, node, flow)
    return True


def _infer_type(syntax: SyntaxTree, node: int) -> str:
    is_array = syntax.kinds[node] == "array_creation_expression"
    type_node = syntax.find_child(node, "type") if is_array else NO_NODE
    return syntax.text(type_node) if type_node != NO_NODE else ""


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    paths = [child for child in syntax.children(node) if syntax.fields[child] != "name"]
    return ["".join(syntax.text(path).split()) for path in paths[-1:]]


def _collect_exports(walk: SyntaxWalker) -> None:
    for frame in walk.frames:
        in_namespace = frame.parent is not None and frame.parent.kind == "namespace"
        if (frame.is_top_level or in_namespace) and frame.visibility == "public":
            walk.exports[frame.name] = None


CSHARP = Language(
    id="csharp",
    grammar="tree_sitter_c_sharp",
    declares={
        "namespace_declaration": _NAMESPACE_SYNTAX,
        "class_declaration": DeclarationSyntax("class", parameters=_PARAMETER_LABELS, bases=_BASE_KINDS),
        "interface_declaration": DeclarationSyntax("interface", bases=_BASE_KINDS),
        "struct_declaration": DeclarationSyntax("struct", parameters=_PARAMETER_LABELS, bases=_BASE_KINDS),
        "record_declaration": DeclarationSyntax("struct", parameters=_PARAMETER_LABELS, bases=_BASE_KINDS),
        "enum_declaration": DeclarationSyntax("enum", bases=_BASE_KINDS),
        "delegate_declaration": DeclarationSyntax("type", result=("type",)),
        "method_declaration": DeclarationSyntax("method", result=("returns",)),
        "local_function_statement": DeclarationSyntax("function", result=("type",)),
        "constructor_declaration": DeclarationSyntax("constructor"),
        "property_declaration": _PROPERTY_SYNTAX,
        "event_declaration": _PROPERTY_SYNTAX,
    },
    carriers={"variable_declarator": CarrierSyntax("name", "lambda_expression")},
    closures=frozenset({"lambda_expression", "anonymous_method_expression"}),
    parameters={"parameter": ParameterSyntax()},
    decorators=frozenset({"attribute"}),
    modifiers={"modifier": ""},
    modifier_lists=frozenset({"attribute_list"}),
    not_bases=frozenset({"argument_list"}),
    settle=_adjust_declaration,
    doc_comments=("//", "/*"),
    void=frozenset({"void", "Task", "ValueTask"}),
    names=frozenset({"identifier", "this", "base", "implicit_parameter"}),
    type_names=frozenset({"qualified_name", "alias_qualified_name"}),
    members={
        "member_access_expression": ("expression", "name"),
        "conditional_access_expression": ("condition", "member_binding_expression"),
    },
    indexes={"element_access_expression": "expression"},
    calls={
        "invocation_expression": CallSyntax(),
        "object_creation_expression": CallSyntax(function=("type",), prefix="new "),
        "constructor_initializer": CallSyntax(function=("base", "this"), arguments=("argument_list",)),
    },
    keywords={"argument": ("name", "value")},
    transparent=frozenset(
        {
            "parenthesized_expression",
            "cast_expression",
            "as_expression",
            "await_expression",
            "postfix_unary_expression",
            "generic_name",
        }
    ),
    assigns={
        "assignment_expression": AssignmentSyntax(),
        "variable_declarator": AssignmentSyntax(left="name", right=""),
        "foreach_statement": AssignmentSyntax(loop=True),
        "catch_declaration": AssignmentSyntax(left="name", right="no value"),
        "from_clause": AssignmentSyntax(left="name", right="", loop=True),
        "enum_member_declaration": _FIELD_ASSIGNMENT,
    },
    targets=frozenset({"tuple_pattern"}),
    types=frozenset(
        {
            "predefined_type",
            "generic_name",
            "nullable_type",
            "array_type",
            "pointer_type",
            "tuple_type",
            "function_pointer_type",
            "implicit_type",
            "type_argument_list",
            "type_parameter_list",
            "type_parameter_constraints_clause",
            "explicit_interface_specifier",
        }
    ),
    texts=frozenset(
        {
            "string_literal_content",
            "string_content",
            "raw_string_content",
            "verbatim_string_literal",
        }
    ),
    literals={
        "integer_literal": "int",
        "real_literal": "double",
        "character_literal": "char",
        "boolean_literal": "bool",
        "string_literal": "string",
        "verbatim_string_literal": "string",
        "raw_string_literal": "string",
        "interpolated_string_expression": "string",
    },
    casts={"cast_expression": "type", "as_expression": "right"},
    verdicts={"binary_expression": COMPARISON_OPERATORS, "prefix_unary_expression": frozenset({"!"})},
    choices={"conditional_expression": ("condition",), "switch_expression": (0,)},
    made=_infer_type,
    returns=frozenset({"return_statement"}),
    throws=frozenset({"throw_statement", "throw_expression"}),
    awaits=frozenset({"await_expression"}),
    yields=frozenset({"yield_statement"}),
    branches=frozenset({"if_statement", "conditional_expression", "catch_clause"}),
    cases=frozenset({"switch_section", "switch_expression_arm"}),
    loops=frozenset({"for_statement", "foreach_statement", "while_statement", "do_statement"}),
    breaks=frozenset({"break_statement"}),
    continues=frozenset({"continue_statement"}),
    imports={"using_directive": _read_imports},
    ignored=frozenset({"extern_alias_directive", "global_attribute", "modifier", "goto_statement"}),
    tokens=frozenset({"this", "base"}),
    hooks={
        "file_scoped_namespace_declaration": _visit_file_namespace,
        "property_declaration": _visit_property,
        "operator_declaration": _visit_operator,
        "conversion_operator_declaration": _visit_operator,
        "indexer_declaration": _visit_operator,
        "destructor_declaration": _visit_destructor,
        "arrow_expression_clause": _visit_arrow_body,
        "identifier": _visit_identifier,
        **dict.fromkeys(("typeof_expression", "sizeof_expression", "default_expression"), _record_type_use),
        "variable_declarator": _visit_declarator,
        "assignment_expression": _visit_assignment,
        "postfix_unary_expression": _visit_increment,
        "prefix_unary_expression": _visit_increment,
        "declaration_expression": visit_inline_declaration,
        "declaration_pattern": visit_inline_declaration,
        "is_pattern_expression": visit_type_test,
        "recursive_pattern": visit_named_pattern,
        "subpattern": visit_subpattern,
        "anonymous_object_creation_expression": visit_member_initializers,
        "with_initializer": visit_member_initializers,
    },
    finish=_collect_exports,
)

"""The language table of C++: C with types that have methods, bases and visibility sections."""

import re

from cleats.toolsets.code.analysis.languages import assignments, c, declarators, grammar_workarounds, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.frame import Frame
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_NAMESPACE_SYNTAX = table.DeclarationSyntax("namespace")
_SECTION_WORDS = ("public", "protected", "private")
_IMPORT_PATTERN = re.compile(r"(?:export\s+)?import\s*([^\s;]+)")
_TYPED_FUNCTIONS = ("make_unique", "make_shared", "static_cast", "dynamic_cast", "reinterpret_cast")


def _set_visibility(frame: Frame, parent: Frame) -> None:
    if frame.visibility or frame.kind in ("macro", "namespace"):
        return
    if parent.kind in table.TYPE_KINDS:
        frame.visibility = "private" if parent.kind == "class" else "public"
    elif parent.kind in ("module", "namespace") and "." not in frame.name:
        frame.visibility = "private" if "static" in frame.modifiers else "public"


def _visit_section(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Apply `private:` to everything that follows."""
    word = walk.syntax.text(node).strip(": ")
    if word in _SECTION_WORDS:
        walk.frame.section_visibility = word


def _visit_namespace(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a namespace; one without a name only hides its contents."""
    syntax = walk.syntax
    name_node = syntax.find_child(node, "name")
    if name_node == NO_NODE:
        saved_visibility, walk.frame.section_visibility = walk.frame.section_visibility, "private"
        walk.visit_children(node, None)
        walk.frame.section_visibility = saved_visibility
        return
    read_declaration(walk, node, node, _NAMESPACE_SYNTAX, declarators.strip_template_arguments(syntax.text(name_node)))


def _visit_alias(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `using Row = std::vector<int>`, but not `using std::vector`."""
    return declarators.declare_alias(walk, node, walk.syntax.text(walk.syntax.find_child(node, "name")))


def _visit_member_initializer(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `: size_(size)`, which sets a member or calls the constructor of a base."""
    syntax = walk.syntax
    children = list(syntax.children(node))
    if len(children) < 2:
        return False
    saved_calls, walk.calls = walk.calls, []
    walk.visit(children[1], value := ValueFlow())
    name = declarators.strip_template_arguments(syntax.text(children[0]))
    if syntax.kinds[children[0]] == "field_identifier" and not name[:1].isupper():
        walk.frame.writes[name] = None
        walk.record_step(node, [name], value)
    else:
        walk.frame.calls[name] = None
        walk.record_step(node, [], value)
    walk.calls = saved_calls
    return True


def _visit_catch(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the type of `e` in `catch (const E& e)`."""
    syntax = walk.syntax
    parameter = syntax.find_child(syntax.find_child(node, "parameters"), "parameter_declaration")
    type_node, declarator = syntax.find_child(parameter, "type"), syntax.find_child(parameter, "declarator")
    for name in declarators.collect_declared_names(walk, declarator):
        assignments.record_type(walk, "local", name, assignments.read_type(walk, type_node), "annotation")
    return False


def _mark_coroutine(walk: SyntaxWalker, _node: int, _flow: ValueFlow | None) -> bool:
    """Mark a function that awaits as a coroutine."""
    if not walk.closure_depth:
        walk.frame.is_async = True
    return False


def _visit_qualified_name(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a qualified name; a type, or a header such as `A::operator bool()`, is not read."""
    syntax = walk.syntax
    if syntax.fields[node] == "type":
        walk.record_uses(node)
        return True
    if syntax.fields[node] != "declarator":
        return False
    walk.visit(syntax.find_child(node, "operator_cast"), None)
    return True


def _infer_type(syntax: SyntaxTree, node: int) -> str:
    if syntax.kinds[node] == "compound_literal_expression":
        return syntax.text(syntax.find_child(node, "type"))
    function = syntax.find_child(node, "function") if syntax.kinds[node] == "call_expression" else NO_NODE
    if function == NO_NODE:
        return ""
    name_part = function
    while syntax.kinds[name_part] == "qualified_identifier" and syntax.find_child(name_part, "name") != NO_NODE:
        name_part = syntax.find_child(name_part, "name")
    if syntax.kinds[name_part] == "template_function":
        name, type_node = syntax.find_child(name_part, "name"), syntax.find_child(name_part, "arguments")
        if NO_NODE not in (name, type_node) and syntax.text(name) in _TYPED_FUNCTIONS:
            return syntax.text(type_node)[1:-1]
    is_type = syntax.kinds[name_part] in ("identifier", "template_function")
    return syntax.text(function) if is_type and syntax.text(name_part)[:1].isupper() else ""


def _read_import(syntax: SyntaxTree, node: int) -> list[str]:
    """Return the module of `import std;`, which only the grammar takes for a directive."""
    match = _IMPORT_PATTERN.match(syntax.text(node))
    return [match[1].strip('<>"')] if match else []


CPP = table.Language(
    id="cpp",
    grammar="tree_sitter_cpp",
    declares={
        "function_definition": declarators.FUNCTION_SYNTAX,
        "namespace_definition": _NAMESPACE_SYNTAX,
        "concept_definition": table.DeclarationSyntax("type", body=()),
        **declarators.SPECIFIER_SYNTAX,
        **c.MACRO_SYNTAX,
    },
    carriers={"init_declarator": table.CarrierSyntax("declarator", "value")},
    closures=kind_set("lambda_expression"),
    wraps=kind_set("template_declaration declaration"),
    parameters=dict.fromkeys(
        ("parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration"),
        c.PARAMETER_SYNTAX,
    ),
    decorators=kind_set("attribute attribute_specifier"),
    modifiers={
        "storage_class_specifier virtual_specifier": "",
        "explicit_function_specifier": "explicit",
        "virtual": "virtual",
        "friend": "friend",
    },
    modifier_lists=kind_set("attribute_declaration"),
    not_bases=kind_set("access_specifier virtual"),
    settle=_set_visibility,
    void=kind_set("void"),
    names=kind_set("identifier this"),
    type_names=kind_set("type_identifier namespace_identifier field_identifier destructor_name"),
    members={"field_expression": ("argument", "field"), "qualified_identifier": ("scope", "name")},
    joints={"qualified_identifier": "::"},
    indexes={"subscript_expression": "argument"},
    calls={
        "call_expression": table.CallSyntax(),
        "new_expression": table.CallSyntax(function=("type",), prefix="new "),
    },
    transparent=kind_set("""
        parenthesized_expression pointer_expression cast_expression template_function template_method template_type
        dependent_name co_await_expression
    """),
    assigns={
        **c.ASSIGNMENT_SYNTAX,
        "for_range_loop": table.AssignmentSyntax(left="declarator", loop=True),
        "lambda_capture_initializer": table.AssignmentSyntax(),
    },
    removes=kind_set("delete_expression"),
    updates=kind_set("update_expression"),
    types=c.TYPE_NODE_KINDS
    | kind_set("""
        template_type template_argument_list template_parameter_list placeholder_type_specifier decltype
        trailing_return_type dependent_type
    """),
    texts=kind_set("string_content raw_string_content"),
    literals={**c.LITERAL_TYPES, "raw_string_literal": "char *", "lambda_expression": "lambda"},
    made=_infer_type,
    casts={"cast_expression": "type"},
    verdicts={"binary_expression": table.COMPARISON_OPERATORS, "unary_expression": kind_set("!")},
    choices={"conditional_expression": ("condition",)},
    returns=kind_set("return_statement co_return_statement"),
    throws=kind_set("throw_statement"),
    awaits=kind_set("co_await_expression"),
    yields=kind_set("co_yield_statement"),
    branches=kind_set("if_statement conditional_expression catch_clause"),
    cases=kind_set("case_statement"),
    loops=kind_set("for_statement for_range_loop while_statement do_statement"),
    imports={"preproc_include": declarators.read_include, "preproc_call": _read_import},
    ignored=kind_set("preproc_directive lambda_default_capture"),
    hooks={
        **c.NODE_HOOKS,
        "abstract_function_declarator": declarators.visit_function_declarator,
        "access_specifier": _visit_section,
        "namespace_definition": _visit_namespace,
        "qualified_identifier": _visit_qualified_name,
        "alias_declaration using_declaration": _visit_alias,
        "field_initializer": _visit_member_initializer,
        "catch_clause": _visit_catch,
        "co_await_expression co_return_statement": _mark_coroutine,
    },
    ease=grammar_workarounds.rewrite_cpp,
    finish=c.finish_file,
)

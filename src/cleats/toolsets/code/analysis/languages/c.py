"""The language table of C.

Types are recorded without the `*` of a pointer; members of a pointer are dotted as well.
"""

from cleats.toolsets.code.analysis.kinds import PROTOTYPE_MODIFIER
from cleats.toolsets.code.analysis.languages import c_preprocessor, declarators, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.frame import Frame
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_PROTOTYPE_SYNTAX = table.DeclarationSyntax("function", parameters=(), result=("type",), body=())
_TYPE_NAME_KINDS = ("type_identifier", "qualified_identifier", "template_type")


def visit_c_declaration(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit a declaration of a function or of variables."""
    if name := _read_prototype_name(walk, node):
        frame = read_declaration(walk, node, node, _PROTOTYPE_SYNTAX, name)
        frame.modifiers[PROTOTYPE_MODIFIER] = None
    else:
        declarators.visit_variables(walk, node, flow)


def _read_prototype_name(walk: SyntaxWalker, node: int) -> str:
    syntax = walk.syntax
    if walk.frame.kind not in ("module", "namespace") or walk.closure_depth:
        return ""
    declarators_found = [child for child in syntax.children(node) if syntax.fields[child] == "declarator"]
    if len(declarators_found) != 1 or not declarators.is_prototype(syntax, declarators_found[0]):
        return ""
    declarator = declarators.find_function_declarator(syntax, node)
    if NO_NODE in (declarator, syntax.find_child(node, "type")) or not _has_parameters(syntax, declarator):
        return ""
    name = declarators.read_function_name(syntax, node, declarator)
    return "" if "." in name else name


def _has_parameters(syntax: SyntaxTree, declarator: int) -> bool:
    """Return whether the parentheses contain parameters.

    `Lock lock(held);` creates a variable, but the grammar cannot know whether `held` is a type and
    takes it for a function.
    """
    parameters_node = syntax.find_child(declarator, "parameters")
    children = list(syntax.children(parameters_node))
    return not children or any(_is_parameter(syntax, child) for child in children)


def _is_parameter(syntax: SyntaxTree, node: int) -> bool:
    if not syntax.kinds[node].endswith("parameter_declaration"):
        return "variadic" in syntax.kinds[node]
    parts = list(syntax.children(node))
    return len(parts) > 1 or syntax.kinds[parts[0]] not in _TYPE_NAME_KINDS if parts else False


def finish_file(walk: SyntaxWalker) -> None:
    """Merge prototypes of functions that the file defines into their parents; add exports."""
    defined_names = {
        (defined.kind, defined.qualified_name) for defined in walk.frames if PROTOTYPE_MODIFIER not in defined.modifiers
    }
    kept_frames: list[Frame] = []
    removed_ranges: dict[Frame, set[tuple[int, int]]] = {}
    for frame in walk.frames:
        parent = frame.parent
        is_redundant = PROTOTYPE_MODIFIER in frame.modifiers and (frame.kind, frame.qualified_name) in defined_names
        if is_redundant and parent is not None:
            removed_ranges.setdefault(parent, set()).add((frame.start, frame.end))
            parent.uses.update(frame.uses)
        else:
            kept_frames.append(frame)
    walk.frames = kept_frames
    for parent, spans in removed_ranges.items():
        parent.nested_ranges = [span for span in parent.nested_ranges if span not in spans]
    walk.export_public(in_namespaces=True)


CONDITION_KINDS = ("preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef")

MACRO_SYNTAX = {
    "preproc_function_def": table.DeclarationSyntax("macro", body=("value",)),
    "preproc_def": table.DeclarationSyntax("macro", body=("value",), lines=3),
}

PARAMETER_SYNTAX = table.ParameterSyntax(name=("declarator",), default=("default_value",))

TYPE_NODE_KINDS = kind_set("""
    primitive_type sized_type_specifier type_descriptor macro_type_specifier parameter_list type_qualifier
""")

LITERAL_TYPES = {"string_literal concatenated_string": "char *", "char_literal": "char", "true false": "bool"}

ASSIGNMENT_SYNTAX = {
    "init_declarator": table.AssignmentSyntax(left="declarator", right="value", type="no type"),
    "assignment_expression": table.AssignmentSyntax(),
    "enumerator": table.AssignmentSyntax(left="name", right="value", typed_field=True),
    "preproc_def": table.AssignmentSyntax(left="name", right="value"),
}

NODE_HOOKS = {
    "function_definition": declarators.visit_function,
    "function_declarator": declarators.visit_function_declarator,
    "declaration": visit_c_declaration,
    "init_declarator": declarators.visit_initializer,
    "field_declaration": declarators.visit_fields,
    "type_definition": declarators.visit_typedef,
    "assignment_expression": declarators.visit_pointer_assignment,
    "case_statement": declarators.visit_case,
    "initializer_pair": declarators.visit_designated_initializer,
    "preproc_arg": declarators.visit_macro_body,
    **dict.fromkeys(CONDITION_KINDS, declarators.visit_preprocessor_condition),
    **dict.fromkeys(declarators.SPECIFIER_SYNTAX, declarators.visit_specifier),
}


def _set_visibility(frame: Frame, parent: Frame) -> None:
    if parent.kind == "module" and frame.kind != "macro":
        frame.visibility = "private" if "static" in frame.modifiers else "public"


C = table.Language(
    id="c",
    grammar="tree_sitter_c",
    declares={"function_definition": declarators.FUNCTION_SYNTAX, **declarators.SPECIFIER_SYNTAX, **MACRO_SYNTAX},
    parameters={"parameter_declaration": PARAMETER_SYNTAX},
    decorators=kind_set("attribute_specifier attribute"),
    modifiers={"storage_class_specifier": ""},
    modifier_lists=kind_set("attribute_declaration"),
    settle=_set_visibility,
    void=kind_set("void"),
    type_names=kind_set("type_identifier"),
    members={"field_expression": ("argument", "field")},
    indexes={"subscript_expression": "argument"},
    calls={"call_expression": table.CallSyntax()},
    transparent=kind_set("parenthesized_expression pointer_expression cast_expression"),
    assigns=ASSIGNMENT_SYNTAX,
    updates=kind_set("update_expression"),
    types=TYPE_NODE_KINDS,
    texts=kind_set("string_content"),
    literals=LITERAL_TYPES,
    made=lambda _syntax, _node: "",
    verdicts={"binary_expression": table.COMPARISON_OPERATORS, "unary_expression": kind_set("!")},
    choices={"conditional_expression": ("condition",)},
    branches=kind_set("if_statement conditional_expression"),
    cases=kind_set("case_statement"),
    loops=kind_set("for_statement while_statement do_statement"),
    imports={"preproc_include": declarators.read_include},
    ignored=kind_set("preproc_call preproc_directive"),
    ease=c_preprocessor.blank_macros,
    hooks={kind: hook for kind, hook in NODE_HOOKS.items() if kind != "class_specifier"},
    finish=finish_file,
)

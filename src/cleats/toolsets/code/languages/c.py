"""C. Types are given without the `*` of a pointer; members behind a pointer are dotted too."""

from cleats.toolsets.code.languages import c_macros, declarators, prototypes
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.table import (
    COMPARISONS,
    Assign,
    Call,
    Declares,
    Language,
    Parameter,
)

CONDITIONALS = ("preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef")

MACROS = {
    "preproc_function_def": Declares("macro", body=("value",)),
    "preproc_def": Declares("macro", body=("value",), lines=3),
}

PARAMETER = Parameter(name=("declarator",), default=("default_value",))

TYPES = frozenset(
    {
        "primitive_type",
        "sized_type_specifier",
        "type_descriptor",
        "macro_type_specifier",
        "parameter_list",
        "type_qualifier",
    }
)

LITERALS = {
    "string_literal": "char *",
    "concatenated_string": "char *",
    "char_literal": "char",
    "true": "bool",
    "false": "bool",
}

ASSIGNS = {
    "init_declarator": Assign(left="declarator", right="value", type="no type"),
    "assignment_expression": Assign(),
    "enumerator": Assign(left="name", right="value", typed_field=True),
    "preproc_def": Assign(left="name", right="value"),
}

HOOKS = {
    "function_definition": declarators.function,
    "function_declarator": declarators.parameters_of,
    "declaration": prototypes.declaration,
    "init_declarator": declarators.initialised,
    "field_declaration": declarators.fields,
    "type_definition": declarators.typedef,
    "assignment_expression": declarators.assigned,
    "case_statement": declarators.case,
    "initializer_pair": declarators.designated,
    "preproc_arg": declarators.replacement,
    **dict.fromkeys(CONDITIONALS, declarators.conditional),
    **dict.fromkeys(declarators.SPECIFIERS, declarators.specifier),
}


def _settle(frame: Frame, around: Frame) -> None:
    if around.kind == "module" and frame.kind != "macro":
        frame.visibility = "private" if "static" in frame.modifiers else "public"


C = Language(
    id="c",
    grammar="tree_sitter_c",
    declares={
        "function_definition": declarators.FUNCTION,
        **declarators.SPECIFIERS,
        **MACROS,
    },
    parameters={"parameter_declaration": PARAMETER},
    decorators=frozenset({"attribute_specifier", "attribute"}),
    modifiers={"storage_class_specifier": ""},
    modifier_lists=frozenset({"attribute_declaration"}),
    settle=_settle,
    doc_comments=("/*", "//"),
    void=frozenset({"void"}),
    type_names=frozenset({"type_identifier"}),
    members={"field_expression": ("argument", "field")},
    indexes={"subscript_expression": "argument"},
    calls={"call_expression": Call()},
    transparent=frozenset({"parenthesized_expression", "pointer_expression", "cast_expression"}),
    assigns=ASSIGNS,
    updates=frozenset({"update_expression"}),
    types=TYPES,
    texts=frozenset({"string_content"}),
    literals=LITERALS,
    made=lambda _syntax, _node: "",
    verdicts={"binary_expression": COMPARISONS, "unary_expression": frozenset({"!"})},
    choices={"conditional_expression": ("condition",)},
    returns=frozenset({"return_statement"}),
    branches=frozenset({"if_statement", "conditional_expression"}),
    cases=frozenset({"case_statement"}),
    loops=frozenset({"for_statement", "while_statement", "do_statement"}),
    breaks=frozenset({"break_statement"}),
    continues=frozenset({"continue_statement"}),
    imports={"preproc_include": declarators.included},
    ignored=frozenset({"preproc_call", "preproc_directive"}),
    ease=c_macros.without,
    hooks={kind: hook for kind, hook in HOOKS.items() if kind != "class_specifier"},
    finish=prototypes.finish,
)

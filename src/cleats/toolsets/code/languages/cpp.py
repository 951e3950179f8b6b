"""C++: C with types that have methods, bases and sections."""

import re

from cleats.toolsets.code.languages import c, declarators, easing, prototypes
from cleats.toolsets.code.languages.assignments import add_type, type_text
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.heads import declare
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import (
    COMPARISONS,
    TYPES,
    Assign,
    Call,
    Carrier,
    Declares,
    Language,
)
from cleats.toolsets.code.languages.walk import Flow, Walk

_NAMESPACE = Declares("namespace")
_SECTIONS = ("public", "protected", "private")
_IMPORT = re.compile(r"(?:export\s+)?import\s*([^\s;]+)")
_MAKERS = ("make_unique", "make_shared", "static_cast", "dynamic_cast", "reinterpret_cast")


def _settle(frame: Frame, around: Frame) -> None:
    if frame.visibility or frame.kind in ("macro", "namespace"):
        return
    if around.kind in TYPES:
        frame.visibility = "private" if around.kind == "class" else "public"
    elif around.kind in ("module", "namespace") and "." not in frame.name:
        frame.visibility = "private" if "static" in frame.modifiers else "public"


def _section(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`private:` is about all that follows."""
    word = walk.syntax.text(node).strip(": ")
    if word in _SECTIONS:
        walk.frame.section = word
    return True


def _namespace(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """One without a name is only a way to hide what is in it."""
    syntax = walk.syntax
    named = syntax.child(node, "name")
    if named == NONE:
        saved, walk.frame.section = walk.frame.section, "private"
        walk.descend(node, None)
        walk.frame.section = saved
        return True
    declare(walk, node, node, _NAMESPACE, declarators.plain_name(syntax.text(named)))
    return True


def _alias(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`using Row = std::vector<int>`, not `using std::vector`."""
    named = walk.syntax.child(node, "name")
    return declarators.alias(walk, node, walk.syntax.text(named) if named != NONE else "")


def _set_member(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`: size_(size)` gives a value to a member, or calls the constructor of a base."""
    syntax = walk.syntax
    children = list(syntax.children(node))
    if len(children) < 2:
        return False
    saved, walk.calls = walk.calls, []
    walk.visit(children[1], value := Flow())
    name = declarators.plain_name(syntax.text(children[0]))
    if syntax.kinds[children[0]] == "field_identifier" and not name[:1].isupper():
        walk.frame.writes[name] = None
        walk.step(node, [name], value)
    else:
        walk.frame.calls[name] = None
        walk.step(node, [], value)
    walk.calls = saved
    return True


def _caught(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`catch (const E& e)` says the type of `e`."""
    syntax = walk.syntax
    given = syntax.child(node, "parameters")
    caught = syntax.child(given, "parameter_declaration") if given != NONE else NONE
    if caught != NONE:
        type_node, declarator = syntax.child(caught, "type"), syntax.child(caught, "declarator")
        if NONE not in (type_node, declarator):
            for name in declarators.named_in(walk, declarator):
                add_type(walk, "local", name, type_text(walk, type_node), "annotation")
    return False


def _suspends(walk: Walk, _node: int, _flow: Flow | None) -> bool:
    """A function that awaits is a coroutine."""
    if not walk.silent:
        walk.frame.is_async = True
    return False


def _qualified(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`Desk::operator bool()` is the head of a function, not a name that is read; nor is a type."""
    syntax = walk.syntax
    if syntax.fields[node] == "type":
        walk.use(node)
        return True
    if syntax.fields[node] != "declarator":
        return False
    cast = syntax.child(node, "operator_cast")
    if cast != NONE:
        walk.visit(cast, None)
    return True


def _made(syntax: Syntax, node: int) -> str:
    if syntax.kinds[node] == "compound_literal_expression":
        given = syntax.child(node, "type")
        return syntax.text(given) if given != NONE else ""
    function = syntax.child(node, "function") if syntax.kinds[node] == "call_expression" else NONE
    if function == NONE:
        return ""
    last = function
    while syntax.kinds[last] == "qualified_identifier" and syntax.child(last, "name") != NONE:
        last = syntax.child(last, "name")
    if syntax.kinds[last] == "template_function":
        name, given = syntax.child(last, "name"), syntax.child(last, "arguments")
        if NONE not in (name, given) and syntax.text(name) in _MAKERS:
            return syntax.text(given)[1:-1]
    is_type = syntax.kinds[last] in ("identifier", "template_function")
    return syntax.text(function) if is_type and syntax.text(last)[:1].isupper() else ""


def _imported(syntax: Syntax, node: int) -> list[str]:
    """`import std;`, which is a directive only to the grammar."""
    found = _IMPORT.match(syntax.text(node))
    return [found[1].strip('<>"')] if found else []


CPP = Language(
    id="cpp",
    grammar="tree_sitter_cpp",
    declares={
        "function_definition": declarators.FUNCTION,
        "namespace_definition": _NAMESPACE,
        "concept_definition": Declares("type", body=()),
        **declarators.SPECIFIERS,
        **c.MACROS,
    },
    carriers={"init_declarator": Carrier("declarator", "value")},
    closures=frozenset({"lambda_expression"}),
    wraps=frozenset({"template_declaration", "declaration"}),
    parameters=dict.fromkeys(
        (
            "parameter_declaration",
            "optional_parameter_declaration",
            "variadic_parameter_declaration",
        ),
        c.PARAMETER,
    ),
    decorators=frozenset({"attribute", "attribute_specifier"}),
    modifiers={
        "storage_class_specifier": "",
        "explicit_function_specifier": "explicit",
        "virtual_specifier": "",
        "virtual": "virtual",
        "friend": "friend",
    },
    modifier_lists=frozenset({"attribute_declaration"}),
    not_bases=frozenset({"access_specifier", "virtual"}),
    settle=_settle,
    doc_comments=("/*", "//"),
    void=frozenset({"void"}),
    names=frozenset({"identifier", "this"}),
    type_names=frozenset(
        {"type_identifier", "namespace_identifier", "field_identifier", "destructor_name"}
    ),
    members={
        "field_expression": ("argument", "field"),
        "qualified_identifier": ("scope", "name"),
    },
    joints={"qualified_identifier": "::"},
    indexes={"subscript_expression": "argument"},
    calls={
        "call_expression": Call(),
        "new_expression": Call(function=("type",), prefix="new "),
    },
    transparent=frozenset(
        {
            "parenthesized_expression",
            "pointer_expression",
            "cast_expression",
            "template_function",
            "template_method",
            "template_type",
            "dependent_name",
            "co_await_expression",
        }
    ),
    assigns={
        **c.ASSIGNS,
        "for_range_loop": Assign(left="declarator", loop=True),
        "lambda_capture_initializer": Assign(),
    },
    removes=frozenset({"delete_expression"}),
    updates=frozenset({"update_expression"}),
    types=c.TYPES
    | {
        "template_type",
        "template_argument_list",
        "template_parameter_list",
        "placeholder_type_specifier",
        "decltype",
        "trailing_return_type",
        "dependent_type",
    },
    texts=frozenset({"string_content", "raw_string_content"}),
    literals={**c.LITERALS, "raw_string_literal": "char *", "lambda_expression": "lambda"},
    made=_made,
    casts={"cast_expression": "type"},
    verdicts={"binary_expression": COMPARISONS, "unary_expression": frozenset({"!"})},
    choices={"conditional_expression": ("condition",)},
    returns=frozenset({"return_statement", "co_return_statement"}),
    throws=frozenset({"throw_statement"}),
    awaits=frozenset({"co_await_expression"}),
    yields=frozenset({"co_yield_statement"}),
    branches=frozenset({"if_statement", "conditional_expression", "catch_clause"}),
    cases=frozenset({"case_statement"}),
    loops=frozenset({"for_statement", "for_range_loop", "while_statement", "do_statement"}),
    breaks=frozenset({"break_statement"}),
    continues=frozenset({"continue_statement"}),
    imports={"preproc_include": declarators.included, "preproc_call": _imported},
    ignored=frozenset({"preproc_directive", "lambda_default_capture"}),
    hooks={
        **c.HOOKS,
        "abstract_function_declarator": declarators.parameters_of,
        "access_specifier": _section,
        "namespace_definition": _namespace,
        "qualified_identifier": _qualified,
        "alias_declaration": _alias,
        "using_declaration": _alias,
        "field_initializer": _set_member,
        "catch_clause": _caught,
        "co_await_expression": _suspends,
        "co_return_statement": _suspends,
    },
    ease=easing.cpp,
    finish=prototypes.finish,
)

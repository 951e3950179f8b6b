"""PHP. Variables keep their `$`; members are dotted, `::` stays as it is written."""

from cleats.toolsets.code.facts import Argument
from cleats.toolsets.code.languages.assignments import take_outer_type, target
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.heads import declare, parameters
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import (
    ARITHMETIC,
    COMPARISONS,
    TYPES,
    Assign,
    Call,
    Carrier,
    Declares,
    Language,
    Parameter,
)
from cleats.toolsets.code.languages.walk import LONGEST_TEXT, Flow, Walk, unique

_BASES = frozenset({"base_clause", "class_interface_clause"})
_MADE = (
    "name",
    "qualified_name",
    "relative_scope",
    "variable_name",
    "member_access_expression",
    "scoped_property_access_expression",
)
_PROPERTY = Declares("property", parameters=(), result=("type",), body=("property_hook_list",))
_PARAMETER = Parameter(default=("default_value",))
_NUMBERS = ("int", "integer", "float", "double", "bool", "boolean")
_INTRINSICS = {
    "echo_statement": "echo",
    "print_intrinsic": "print",
    "include_expression": "include",
    "include_once_expression": "include_once",
    "require_expression": "require",
    "require_once_expression": "require_once",
    "shell_command_expression": "shell_exec",
    "exit_statement": "exit",
}
"""What is written like a statement and is a call all the same."""


def _settle(frame: Frame, around: Frame) -> None:
    if frame.kind == "method" and frame.name.lower() == "__construct":
        frame.kind = "constructor"
    if not frame.visibility and (around.around is None or around.kind in TYPES):
        frame.visibility = "public"


def _intrinsic(walk: Walk, node: int, flow: Flow | None) -> bool:
    if flow is None:
        saved, walk.calls = walk.calls, []
        _intrinsic(walk, node, value := Flow())
        walk.step(node, [], value)
        walk.calls = saved
        return True
    kind = walk.syntax.kinds[node]
    walk.descend(node, given := Flow())
    if kind.startswith(("include", "require")) and given.text:
        # `__DIR__ . "/boot.php"` is beside this file.
        beside = given.text.startswith("/") and walk.syntax.kinds[node + 1] == "binary_expression"
        walk.imports["." * beside + given.text] = None
    argument = Argument(unique(given.names), given.calls, given.text[:LONGEST_TEXT])
    walk.record_call(node, _INTRINSICS.get(kind, "echo"), [argument], flow)
    return True


def _expression(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`<?= $x ?>` is an echo."""
    start = walk.syntax.starts[node]
    if not walk.syntax.data[max(0, start - 16) : start].rstrip().endswith(b"<?="):
        return False
    return _intrinsic(walk, node, flow)


def _each(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`foreach (values as key => value)`: no field says which is which."""
    syntax = walk.syntax
    body = syntax.child(node, "body")
    heads = [
        child
        for child in syntax.children(node)
        if child != body and syntax.kinds[child] not in walk.language.comments
    ]
    walk.frame.loops += 1
    saved, walk.calls = walk.calls, []
    targets: list[str] = []
    value = Flow()
    for head in heads[:1]:
        walk.visit(head, value)
    for head in heads[1:]:
        target(walk, head, targets)
    walk.step(node, targets, value)
    walk.calls = saved
    walk.arms(child for child in syntax.children(node) if child not in heads)
    return True


def _mixed_in(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The traits that a class uses."""
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.kinds[child] in ("name", "qualified_name"):
            walk.frame.bases.append(syntax.text(child))
        walk.use(child)
    return True


def _constant(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A bare name is a constant if it is written like one."""
    name = walk.syntax.text(node)
    if name.isupper():
        walk.frame.reads[name] = None
    return False


def _imported(syntax: Syntax, node: int) -> list[str]:
    group = syntax.child(node, "body")
    before = syntax.child(node, "namespace_name") if group != NONE else NONE
    prefix = syntax.text(before) + "\\" if before != NONE else ""
    found = []
    for clause in syntax.children(group if group != NONE else node):
        named = syntax.child(clause, "name", "qualified_name", "namespace_name")
        if syntax.kinds[clause] == "namespace_use_clause" and named != NONE:
            found.append((prefix + syntax.text(named)).lstrip("\\"))
    return found


def _cast(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A number has nothing of the text it was made of."""
    given, value = walk.syntax.child(node, "type"), walk.syntax.child(node, "value")
    if NONE in (given, value) or walk.syntax.text(given).strip("() ").lower() not in _NUMBERS:
        return False
    walk.visit(value, Flow())
    return True


def _pipe(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`$x |> trim(...)` calls `trim` with `$x`."""
    syntax = walk.syntax
    left, right = syntax.child(node, "left"), syntax.child(node, "right")
    if NONE in (left, right):
        return False
    if syntax.data[syntax.ends[left] : syntax.starts[right]].strip() != b"|>":
        return False
    if syntax.kinds[right] not in walk.language.calls:
        return False
    if flow is None:
        saved, walk.calls = walk.calls, []
        _pipe(walk, node, value := Flow())
        walk.step(node, [], value)
        walk.calls = saved
        return True
    walk.visit(left, given := Flow())
    callee = walk.call(right, Flow())
    walk.calls.pop()
    argument = Argument(unique(given.names), given.calls, given.text[:LONGEST_TEXT])
    walk.record_call(node, callee, [argument], flow)
    return True


def _property(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """One with hooks has code of its own."""
    syntax = walk.syntax
    hooks, element = (
        syntax.child(node, "property_hook_list"),
        syntax.child(node, "property_element"),
    )
    named = syntax.child(element, "name") if element != NONE else NONE
    if NONE in (hooks, named):
        return False
    if not any(syntax.child(hook, "body") != NONE for hook in syntax.children(hooks)):
        return False
    declare(walk, node, node, _PROPERTY, syntax.text(named).lstrip("$"))
    return True


def _hook(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`get => x` returns `x`; `set(string $v)` names what is given."""
    syntax = walk.syntax
    given, body = syntax.child(node, "parameters"), syntax.child(node, "body")
    if given != NONE:
        parameters(walk, given, walk.frame)
    if body == NONE:
        return True
    if syntax.kinds[body] == "compound_statement":
        walk.visit(body, None)
    else:
        walk.give(body)
    return True


def _finish(walk: Walk) -> None:
    for frame in walk.frames:
        if frame.top and frame.kind != "constant":
            walk.exports[frame.name] = None


PHP = Language(
    id="php",
    grammar="tree_sitter_php",
    maker="language_php",
    declares={
        "class_declaration": Declares("class", bases=_BASES),
        "interface_declaration": Declares("interface", bases=_BASES),
        "trait_declaration": Declares("trait"),
        "enum_declaration": Declares("enum", bases=_BASES),
        "function_definition": Declares("function"),
        "method_declaration": Declares("method"),
        "assignment_expression": Declares("constant", name=("left",), lines=3, top=True),
    },
    carriers={"assignment_expression": Carrier("left", "right")},
    closures=frozenset({"anonymous_function", "arrow_function"}),
    wraps=frozenset({"expression_statement"}),
    parameters={
        "simple_parameter": _PARAMETER,
        "variadic_parameter": _PARAMETER,
        "property_promotion_parameter": _PARAMETER,
    },
    decorators=frozenset({"attribute"}),
    modifiers={
        "visibility_modifier": "",
        "static_modifier": "static",
        "abstract_modifier": "abstract",
        "final_modifier": "final",
        "readonly_modifier": "readonly",
    },
    modifier_lists=frozenset({"attribute_list", "attribute_group"}),
    settle=_settle,
    doc_comments=("/*", "//", "#"),
    void=frozenset({"void", "never"}),
    names=frozenset(
        {"variable_name", "dynamic_variable_name", "scoped_property_access_expression"}
    ),
    type_names=frozenset(
        {"name", "qualified_name", "relative_scope", "class_constant_access_expression"}
    ),
    members={
        "member_access_expression": ("object", "name"),
        "nullsafe_member_access_expression": ("object", "name"),
    },
    indexes={"subscript_expression": ""},
    calls={
        "function_call_expression": Call(),
        "member_call_expression": Call(function=("name",), receiver=("object",)),
        "nullsafe_member_call_expression": Call(function=("name",), receiver=("object",)),
        "scoped_call_expression": Call(function=("name",), receiver=("scope",), joint="::"),
        "object_creation_expression": Call(function=_MADE, prefix="new "),
    },
    keywords={"argument": ("name", "value")},
    transparent=frozenset({"parenthesized_expression", "cast_expression"}),
    assigns={
        "assignment_expression": Assign(),
        "reference_assignment_expression": Assign(),
        "augmented_assignment_expression": Assign(augmented=True),
        "static_variable_declaration": Assign(left="name", right="value"),
        "catch_clause": Assign(left="variable_name", right="no value"),
        "property_element": Assign(left="name", right="default_value", typed_field=True),
        "const_element": Assign(left="name", right="", typed_field=True),
        "enum_case": Assign(left="name", right="value", typed_field=True),
    },
    targets=frozenset({"list_literal"}),
    removes=frozenset({"unset_statement"}),
    updates=frozenset({"update_expression"}),
    types=frozenset(
        {
            "primitive_type",
            "named_type",
            "optional_type",
            "union_type",
            "intersection_type",
            "disjunctive_normal_form_type",
            "bottom_type",
            "type_list",
            "cast_type",
        }
    ),
    texts=frozenset({"string_content", "nowdoc_string"}),
    literals={
        "string": "string",
        "encapsed_string": "string",
        "heredoc": "string",
        "nowdoc": "string",
        "integer": "int",
        "float": "float",
        "boolean": "bool",
        "array_creation_expression": "array",
        "anonymous_function": "Closure",
        "arrow_function": "Closure",
    },
    verdicts={
        "binary_expression": COMPARISONS | ARITHMETIC | {"+"},
        "unary_op_expression": frozenset({"!", "+", "-", "~"}),
    },
    choices={
        "conditional_expression": ("condition",),
        "match_expression": ("condition",),
        "match_conditional_expression": ("conditional_expressions",),
    },
    made=lambda _syntax, _node: "",
    nothing=frozenset({"null"}),
    returns=frozenset({"return_statement"}),
    throws=frozenset({"throw_expression"}),
    yields=frozenset({"yield_expression"}),
    branches=frozenset(
        {"if_statement", "else_if_clause", "conditional_expression", "catch_clause"}
    ),
    cases=frozenset({"case_statement", "match_conditional_expression"}),
    defaults=frozenset({"default_statement", "match_default_expression"}),
    loops=frozenset({"for_statement", "while_statement", "do_statement"}),
    breaks=frozenset({"break_statement"}),
    continues=frozenset({"continue_statement"}),
    imports={"namespace_use_declaration": _imported},
    ignored=frozenset(
        {"namespace_name", "declare_directive", "goto_statement", "named_label_statement"}
    ),
    hooks={
        **dict.fromkeys(_INTRINSICS, _intrinsic),
        "expression_statement": _expression,
        "foreach_statement": _each,
        "use_declaration": _mixed_in,
        "property_declaration": _property,
        "property_hook": _hook,
        "cast_expression": _cast,
        "binary_expression": _pipe,
        "property_element": take_outer_type,
        "name": _constant,
    },
    finish=_finish,
)

"""Swift. Its grammar lumps statements and calls together, so kinds are told apart beforehand."""

import re

from cleats.toolsets.code.facts import Typed
from cleats.toolsets.code.languages import easing
from cleats.toolsets.code.languages.assignments import add_type, assign, target, type_text
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.heads import declare
from cleats.toolsets.code.languages.swift_patterns import (
    awaited,
    cases,
    caught,
    conditions,
    entry,
    jump,
    matched,
    thrown,
)
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import TYPES, Assign, Call, Declares, Language
from cleats.toolsets.code.languages.walk import Flow, Walk

_GIVEN_TYPES = frozenset(
    {
        "user_type",
        "optional_type",
        "array_type",
        "dictionary_type",
        "function_type",
        "tuple_type",
        "metatype",
        "opaque_type",
        "existential_type",
        "protocol_composition_type",
        "type_annotation",
        "type_pack_expansion",
    }
)
_TRANSFERS = {
    b"return": "return_statement",
    b"throw": "throw_statement",
    b"break": "break_statement",
    b"continue": "continue_statement",
}
_BASES = frozenset({"inheritance_specifier"})
_CLASSES = {
    "class": Declares("class", bases=_BASES),
    "actor": Declares("class", bases=_BASES),
    "struct": Declares("struct", bases=_BASES),
    "enum": Declares("enum", bases=_BASES),
    "extension": Declares("impl", bases=_BASES),
}
_FUNCTION = Declares("function", inside="method", parameters=(), result=())
_MACRO = Declares("macro", name=("simple_identifier",), parameters=(), result=(), body=())
_CONSTRUCTOR = Declares("constructor", parameters=(), result=(), name=())
_PROPERTY = Declares(
    "property", parameters=(), result=(), body=("computed_value", "willset_didset_block")
)
_SUBSCRIPT = Declares("property", parameters=(), result=(), name=(), body=("computed_property",))
_LAMBDA = Declares("function", inside="method", parameters=(), result=(), body=("statements",))
_CONSTANT = Declares("constant", parameters=(), body=())
_CONSTANT_LINES = 3
_BOUND = Assign(left="name", right="value", type="type_annotation")
_ASSIGNED = Assign(left="target", right="result")
_AUGMENTED = Assign(left="target", right="result", augmented=True)
_HEAD = re.compile(rb"(?:^|\s)(class|struct|enum|extension|actor)\s*$")
_OPERATOR = re.compile(rb"func\s+([^\s(<\w]+|[^\s(\w]+)\s*[(<]")


def _prepare(syntax: Syntax) -> None:
    """Make kinds and names of what the grammar has in pieces.

    `x[0]` is written like a call, `return` is one of several jumps of one kind, and each part of
    `Outer.Inner<Int>()` is a name of its own.
    """
    kinds, data = syntax.kinds, syntax.data
    for node, kind in enumerate(kinds):
        if kind == "call_suffix" and data[syntax.starts[node]] == ord("["):
            kinds[syntax.parents[node]] = "index_expression"
        elif kind == "control_transfer_statement":
            start = syntax.starts[node]
            for word, named in _TRANSFERS.items():
                if data.startswith(word, start):
                    kinds[node] = named
        elif kind == "user_type" and kinds[syntax.parents[node]] == "constructor_expression":
            named_by = [at for at in syntax.children(node) if kinds[at] == "type_identifier"]
            syntax.ends[named_by[0]] = syntax.ends[named_by[-1]]


def _settle(frame: Frame, around: Frame) -> None:
    if "fileprivate" in frame.modifiers:
        frame.visibility = "private"
    elif "open" in frame.modifiers:
        frame.visibility = "public"
    elif around.kind == "interface":
        frame.visibility = frame.visibility or around.visibility
    if frame.visibility or frame.kind == "impl":
        return
    if around.around is None or around.kind in TYPES:
        shown = around.visibility if around.kind == "impl" else ""
        frame.visibility = shown or "internal"


def _class(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """Classes, structs, enums, actors and extensions are of one kind."""
    syntax = walk.syntax
    named = syntax.child(node, "name")
    if named == NONE:
        return False
    found = _HEAD.search(syntax.data[syntax.starts[node] : syntax.starts[named]])
    word = found.group(1).decode() if found else "class"
    name = " ".join(syntax.text(named).partition("<")[0].split())
    if not name:
        return False
    frame = declare(walk, node, node, _CLASSES[word], name)
    if word == "actor":
        frame.modifiers["actor"] = None
    return True


def _function(walk: Walk, node: int, _flow: Flow | None) -> bool:
    syntax = walk.syntax
    named = syntax.child(node, "simple_identifier")
    name = syntax.text(named).strip("`") if named != NONE else ""
    if not name:
        head = syntax.data[syntax.starts[node] : syntax.ends[node]][:200]
        found = _OPERATOR.search(head)
        name = found.group(1).decode("utf-8", "replace") if found else ""
    if not name:
        return False
    is_macro = syntax.kinds[node] == "macro_declaration"
    frame = declare(walk, node, node, _MACRO if is_macro else _FUNCTION, name)
    _take_result(walk, frame, node)
    clause = syntax.child(node, "throws_clause")
    thrown = syntax.child(clause, "type") if clause != NONE else NONE
    if thrown != NONE:
        frame.throws[syntax.text(thrown)] = None
    return True


def _initialiser(walk: Walk, node: int, _flow: Flow | None) -> bool:
    kind = walk.syntax.kinds[node]
    if kind == "init_declaration":
        declare(walk, node, node, _CONSTRUCTOR, "init")
    elif kind == "deinit_declaration":
        declare(walk, node, node, _FUNCTION, "deinit")
    else:
        _take_result(walk, declare(walk, node, node, _SUBSCRIPT, "subscript"), node)
    return True


def _take_result(walk: Walk, frame: Frame, node: int) -> None:
    """The type of the result has the same field as the name."""
    syntax, result = walk.syntax, NONE
    for child in syntax.children(node):
        if syntax.kinds[child] in _GIVEN_TYPES and syntax.fields[child] != "body":
            result = child
    if result != NONE:
        frame.return_type = type_text(walk, result)
        frame.types[Typed("return", "", frame.return_type, "annotation")] = None
        frame.returns = frame.return_type not in walk.language.void


def _parameter(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The name and the type of a parameter have the same field; callers may use another name."""
    syntax, frame = walk.syntax, walk.frame
    name = ""
    for child in syntax.children(node):
        kind = syntax.kinds[child]
        if kind in _GIVEN_TYPES:
            if name and not walk.silent:
                add_type(walk, "param", name, type_text(walk, child), "annotation")
            walk.use(child)
        elif syntax.fields[child] == "name" or kind == "simple_identifier":
            name = syntax.text(child)
    if name and not walk.silent and name not in frame.params:
        frame.params.append(name)
    return True


def _property(walk: Walk, node: int, flow: Flow | None) -> bool:
    """One that has code is a chunk; so is a function that it holds, and a long one at the top."""
    syntax = walk.syntax
    named, value = syntax.child(node, "name"), syntax.child(node, "value")
    name = syntax.text(named) if named != NONE else ""
    if not name.isidentifier():
        return False
    given = syntax.child(node, "type_annotation")
    if syntax.child(node, "computed_value", "willset_didset_block") != NONE:
        _take_result(walk, declare(walk, node, node, _PROPERTY, name), node)
    elif value != NONE and syntax.kinds[value] == "lambda_literal":
        declare(walk, node, value, _LAMBDA, name)
    elif walk.frame is walk.module and _lines(syntax, node) >= _CONSTANT_LINES:
        frame = declare(walk, node, node, _CONSTANT, name)
        if given != NONE:
            frame.types[Typed("local", name, type_text(walk, given), "annotation")] = None
    else:
        assign(walk, node, flow, _BOUND)
    return True


def _lines(syntax: Syntax, node: int) -> int:
    return syntax.data.count(b"\n", syntax.starts[node], syntax.ends[node]) + 1


def _binding(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`name` in a declaration that is a chunk has been read as its name."""
    if walk.syntax.kinds[walk.syntax.parents[node]] != "property_declaration":
        return False
    target(walk, node, [], written=False)
    return True


def _assigned(walk: Walk, node: int, flow: Flow | None) -> bool:
    syntax = walk.syntax
    left, right = syntax.child(node, "target"), syntax.child(node, "result")
    if NONE in (left, right):
        return False
    is_plain = syntax.data[syntax.ends[left] : syntax.starts[right]].strip() == b"="
    assign(walk, node, flow, _ASSIGNED if is_plain else _AUGMENTED)
    return True


def _statements(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A body that is one expression returns it."""
    syntax = walk.syntax
    first, body = node + 1, syntax.parents[node]
    if first >= syntax.stops[node] or syntax.stops[first] != syntax.stops[node] or walk.silent:
        return False
    kind, around = syntax.kinds[first], syntax.kinds[body]
    is_value = kind.endswith(("_expression", "_literal")) or kind == "simple_identifier"
    if not is_value or around not in ("function_body", "computed_property", "computed_getter"):
        return False
    if around == "function_body":
        head = syntax.data[syntax.starts[syntax.parents[body]] : syntax.starts[body]]
        if b"->" not in head:
            return False
    walk.frame.returns = True
    walk.give(first)
    return True


def _imported(syntax: Syntax, node: int) -> list[str]:
    path = syntax.child(node, "identifier")
    return ["".join(syntax.text(path).split())] if path != NONE else []


def _finish(walk: Walk) -> None:
    for frame in walk.frames:
        frame.calls.pop("defer", None)
        if frame.top and frame.visibility == "public" and frame.kind != "impl":
            walk.exports[frame.name] = None


SWIFT = Language(
    id="swift",
    grammar="tree_sitter_swift",
    declares={
        "class_declaration": _CLASSES["class"],
        "protocol_declaration": Declares("interface", bases=_BASES),
        "function_declaration": _FUNCTION,
        "protocol_function_declaration": _FUNCTION,
        "macro_declaration": _MACRO,
        "typealias_declaration": Declares("type", body=()),
    },
    closures=frozenset({"lambda_literal"}),
    decorators=frozenset({"attribute"}),
    modifiers={
        "async": "async",
        "throws": "throws",
        "throws_clause": "throws",
        "visibility_modifier": "",
        "member_modifier": "",
        "property_modifier": "",
        "mutation_modifier": "",
        "inheritance_modifier": "",
        "function_modifier": "",
        "ownership_modifier": "",
        "parameter_modifier": "",
    },
    modifier_lists=frozenset({"modifiers"}),
    settle=_settle,
    doc_comments=("//", "/*"),
    void=frozenset({"Void", "()", "Never"}),
    names=frozenset({"simple_identifier", "self_expression", "super_expression"}),
    type_names=frozenset({"type_identifier"}),
    members={"navigation_expression": ("target", "suffix")},
    indexes={"index_expression": ""},
    calls={
        "call_expression": Call(
            function=(
                "simple_identifier",
                "navigation_expression",
                "call_expression",
                "index_expression",
                "self_expression",
                "super_expression",
                "prefix_expression",
                "postfix_expression",
            ),
            arguments=("call_suffix",),
        ),
        # Only where the type has arguments: `Set<String>()`.
        "constructor_expression": Call(
            function=("constructed_type",), arguments=("constructor_suffix",)
        ),
    },
    suffixes=frozenset({"call_suffix", "constructor_suffix"}),
    keywords={"value_argument": ("name", "value")},
    transparent=frozenset(
        {
            "navigation_suffix",
            "postfix_expression",
            "prefix_expression",
            "as_expression",
            "await_expression",
            "try_expression",
            "tuple_expression",
            "user_type",
        }
    ),
    assigns={
        "assignment": _ASSIGNED,
        "property_declaration": _BOUND,
        "protocol_property_declaration": _BOUND,
        "for_statement": Assign(left="item", right="collection", loop=True),
    },
    types=_GIVEN_TYPES
    | {"type_arguments", "type_parameters", "type_constraints", "enum_type_parameters"},
    texts=frozenset({"line_str_text", "multi_line_str_text", "raw_str_part"}),
    literals={
        "line_string_literal": "String",
        "multi_line_string_literal": "String",
        "raw_string_literal": "String",
        "integer_literal": "Int",
        "hex_literal": "Int",
        "real_literal": "Double",
        "boolean_literal": "Bool",
        "array_literal": "Array",
        "dictionary_literal": "Dictionary",
    },
    casts={"as_expression": ""},
    verdicts=dict.fromkeys(
        ("equality_expression", "comparison_expression", "check_expression"), frozenset()
    ),
    choices={"ternary_expression": ("condition",), "switch_statement": ("expr",)},
    nothing=frozenset({"nil_literal"}),
    returns=frozenset({"return_statement"}),
    panics=frozenset({"fatalError", "preconditionFailure"}),
    awaits=frozenset({"await_expression"}),
    branches=frozenset({"ternary_expression"}),
    arms=frozenset({"statements"}),
    cases=frozenset({"switch_entry"}),
    loops=frozenset({"for_statement", "repeat_while_statement"}),
    comments=frozenset({"comment", "multiline_comment"}),
    imports={"import_declaration": _imported},
    # Operators that are nodes; else they are the first thing in `!list.has(x)` and `try f().x`.
    unseen=frozenset({"bang", "try_operator"}),
    ignored=frozenset(
        {
            "directive",
            "statement_label",
            "availability_condition",
            "diagnostic",
            "macro_definition",
        }
    ),
    hooks={
        "class_declaration": _class,
        "function_declaration": _function,
        "protocol_function_declaration": _function,
        "macro_declaration": _function,
        "init_declaration": _initialiser,
        "deinit_declaration": _initialiser,
        "subscript_declaration": _initialiser,
        "parameter": _parameter,
        "lambda_parameter": _parameter,
        "property_declaration": _property,
        "pattern": _binding,
        "assignment": _assigned,
        "statements": _statements,
        "throw_statement": thrown,
        "break_statement": jump,
        "continue_statement": jump,
        "enum_entry": cases,
        "await_expression": awaited,
        "switch_entry": entry,
        "switch_pattern": matched,
        "catch_block": caught,
        **dict.fromkeys(("if_statement", "guard_statement", "while_statement"), conditions),
    },
    prepare=_prepare,
    ease=easing.swift,
    finish=_finish,
)

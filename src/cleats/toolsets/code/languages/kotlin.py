"""Kotlin. Its grammar has few fields, so most parts are found by kind and by place."""

from cleats.toolsets.code.facts import Typed, Where
from cleats.toolsets.code.languages import easing
from cleats.toolsets.code.languages.assignments import (
    add_type,
    assign,
    assign_or_augment,
    is_field,
    type_text,
)
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.heads import declare
from cleats.toolsets.code.languages.kotlin_words import (
    caught,
    entry,
    identifier,
    infix,
    labelled,
    text,
    unary,
)
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import (
    COMPARISONS,
    TYPES,
    Assign,
    Call,
    Declares,
    Language,
)
from cleats.toolsets.code.languages.walk import Flow, Walk

_GIVEN_TYPES = frozenset(
    {"user_type", "nullable_type", "function_type", "parenthesized_type", "non_nullable_type"}
)
_BASES = frozenset({"delegation_specifiers", "delegation_specifier", "constructor_invocation"})
_BODIES = ("class_body", "enum_class_body")
_FUNCTION = Declares("function", inside="method", parameters=(), result=(), body=("function_body",))
_CONSTRUCTOR = Declares("constructor", parameters=(), result=(), body=("block",))
_PROPERTY = Declares("property", parameters=(), result=(), body=("getter", "setter"))
_CONSTANT = Declares("constant", name=("variable_declaration",), parameters=(), body=())
_CLASSES = {
    kind: Declares(kind, parameters=(), bases=_BASES, body=_BODIES)
    for kind in ("class", "interface", "enum")
}
_ONE = Assign(left="variable_declaration", right="")
_SEVERAL = Assign(left="multi_variable_declaration", right="")
_EACH_ONE = Assign(left="variable_declaration", right="", loop=True)
_EACH_SEVERAL = Assign(left="multi_variable_declaration", right="", loop=True)
_CONSTANT_LINES = 3
_MODIFIERS = """
    public private protected internal abstract open final override sealed data inner value enum
    inline infix operator tailrec external const lateinit expect actual
"""
_SEQUENCES = frozenset({"sequence", "iterator"})
_YIELDS = frozenset({"yield", "yieldAll"})
_ANONYMOUS = ("lambda_literal", "anonymous_function")


def _settle(frame: Frame, around: Frame) -> None:
    frame.bases = [base.partition(" by ")[0] for base in frame.bases]
    if not frame.visibility and (around.around is None or around.kind in TYPES):
        frame.visibility = "public"


def _class(walk: Walk, node: int, _flow: Flow | None) -> bool:
    syntax = walk.syntax
    named = syntax.child(node, "name")
    if named == NONE:
        return False
    head = syntax.data[syntax.starts[node] : syntax.starts[named]].split()
    kind = "interface" if b"interface" in head else "enum" if b"enum" in head else "class"
    frame = declare(walk, node, node, _CLASSES[kind], syntax.text(named))
    if b"object" in head:
        frame.modifiers["static"] = None
    return True


def _companion(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """What is in a companion belongs to the class itself."""
    count = len(walk.frames)
    walk.descend(node, None)
    for frame in walk.frames[count:]:
        if frame.around is walk.frame:
            frame.modifiers["static"] = None
    return True


def _function(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A function for a type that is not its own is named after that type."""
    syntax = walk.syntax
    named = syntax.child(node, "name")
    if named == NONE:
        return False
    name, result = syntax.text(named).strip("`"), NONE
    for child in syntax.children(node):
        if syntax.kinds[child] in _GIVEN_TYPES:
            if child < named:
                name = f"{_bare(syntax.text(child))}.{name}"
            else:
                result = child
    _take_result(walk, declare(walk, node, node, _FUNCTION, name), result)
    return True


def _bare(text: str) -> str:
    return text.partition("<")[0].strip("()? ")


def _take_result(walk: Walk, frame: Frame, result: int) -> None:
    if result != NONE:
        frame.return_type = type_text(walk, result)
        frame.types[Typed("return", "", frame.return_type, "annotation")] = None
        frame.returns = frame.return_type not in walk.language.void


def _constructor(walk: Walk, node: int, _flow: Flow | None) -> bool:
    declare(walk, node, node, _CONSTRUCTOR, "constructor")
    return True


def _parameters(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The default of a parameter stands beside it, or in it where a class has parameters."""
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.kinds[child] in ("parameter", "class_parameter"):
            _parameter(walk, child)
        else:
            walk.visit(child, None)
    return True


def _parameter(walk: Walk, node: int) -> None:
    syntax, frame = walk.syntax, walk.frame
    named = syntax.child(node, "identifier")
    name = syntax.text(named) if named != NONE else ""
    head = syntax.data[syntax.starts[node] : syntax.starts[named]].split() if name else []
    for child in syntax.children(node):
        if syntax.kinds[child] in _GIVEN_TYPES and name and not walk.silent:
            add_type(walk, "param", name, type_text(walk, child), "annotation")
            if b"val" in head or b"var" in head:
                add_type(walk, "field", name, type_text(walk, child), "annotation")
        if child != named:
            walk.visit(child, None)
    if name and not walk.silent and name not in frame.params:
        frame.params.append(name)


def _body(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`= x` returns `x`."""
    syntax = walk.syntax
    first = node + 1
    if first >= syntax.stops[node] or syntax.kinds[first] == "block":
        return False
    if not walk.silent:
        walk.frame.returns = True
    walk.give(first)
    return True


def _property(walk: Walk, node: int, flow: Flow | None) -> bool:
    """One that has code is a chunk; so is a function that it holds, and a long one at the top."""
    syntax = walk.syntax
    one = syntax.child(node, "variable_declaration")
    named = syntax.child(one, "identifier") if one != NONE else NONE
    if named == NONE:
        assign(walk, node, flow, _SEVERAL)
        return True
    name = syntax.text(named)
    function = syntax.child(node, *_ANONYMOUS)
    if syntax.child(node, "getter", "setter") != NONE:
        owner = next((at for at in syntax.children(node) if syntax.kinds[at] in _GIVEN_TYPES), NONE)
        if owner != NONE:
            name = f"{_bare(syntax.text(owner))}.{name}"
        frame = declare(walk, node, node, _PROPERTY, name)
        if owner != NONE:
            frame.types = {each: None for each in frame.types if each.where != "local"}
        _take_result(walk, frame, syntax.child(one, *_GIVEN_TYPES))
    elif function != NONE:
        frame = declare(walk, node, function, _FUNCTION, name)
        frame.signature = frame.signature.partition("{")[0].rstrip(" =")
    elif walk.frame is walk.module and _lines(syntax, node) >= _CONSTANT_LINES:
        declare(walk, node, node, _CONSTANT, name)
    else:
        _note_type(walk, one, name)
        assign(walk, node, flow, _ONE)
    return True


def _lines(syntax: Syntax, node: int) -> int:
    return syntax.data.count(b"\n", syntax.starts[node], syntax.ends[node]) + 1


def _note_type(walk: Walk, node: int, name: str) -> None:
    given = walk.syntax.child(node, *_GIVEN_TYPES)
    if given != NONE:
        where: Where = "field" if is_field(walk, name) else "local"
        add_type(walk, where, name, type_text(walk, given), "annotation")


def _accessor(walk: Walk, node: int, _flow: Flow | None) -> bool:
    body = walk.syntax.child(node, "function_body")
    if body != NONE:
        walk.visit(body, None)
    return True


def _for(walk: Walk, node: int, flow: Flow | None) -> bool:
    several = walk.syntax.child(node, "multi_variable_declaration") != NONE
    walk.frame.loops += 1
    assign(walk, node, flow, _EACH_SEVERAL if several else _EACH_ONE)
    return True


def _imported(syntax: Syntax, node: int) -> list[str]:
    path = syntax.child(node, "qualified_identifier", "identifier")
    if path == NONE:
        return []
    everything = ".*" if syntax.text(node).rstrip().endswith("*") else ""
    return ["".join(syntax.text(path).split()) + everything]


def _finish(walk: Walk) -> None:
    """`x.await()` awaits `x`; a call that takes a function beside its arguments is one call.

    What yields in a builder of sequences is a generator.
    """
    for frame in walk.frames:
        frame.calls = {name.removesuffix("()"): None for name in frame.calls}
        for name in frame.calls:
            if name.endswith(".await"):
                frame.awaits[name.removesuffix(".await").removesuffix("()")] = None
        if not _SEQUENCES.isdisjoint(frame.calls) and not _YIELDS.isdisjoint(frame.calls):
            frame.is_generator = True
        if frame.top and frame.visibility == "public":
            walk.exports[frame.name] = None


KOTLIN = Language(
    id="kotlin",
    grammar="tree_sitter_kotlin",
    declares={
        **dict.fromkeys(("class_declaration", "object_declaration"), _CLASSES["class"]),
        "function_declaration": _FUNCTION,
        "secondary_constructor": _CONSTRUCTOR,
        "property_declaration": _CONSTANT,
        "type_alias": Declares("type", name=("type",), body=()),
    },
    closures=frozenset(_ANONYMOUS),
    decorators=frozenset({"annotation"}),
    modifiers={
        "suspend": "async",
        **{word: word for word in _MODIFIERS.split()},
    },
    modifier_lists=frozenset(
        {
            "modifiers",
            "class_modifier",
            "function_modifier",
            "inheritance_modifier",
            "member_modifier",
            "platform_modifier",
            "property_modifier",
            "visibility_modifier",
        }
    ),
    not_bases=frozenset({"value_arguments"}),
    settle=_settle,
    doc_comments=("/*", "//"),
    void=frozenset({"Unit", "Nothing"}),
    names=frozenset({"identifier", "this_expression", "super_expression"}),
    members={"navigation_expression": ("", "")},
    indexes={"index_expression": ""},
    calls={
        "call_expression": Call(
            function=("identifier", "navigation_expression", "call_expression", "index_expression"),
            arguments=("value_arguments",),
        )
    },
    keywords={"value_argument": ("identifier", "no field")},
    transparent=frozenset({"parenthesized_expression", "unary_expression", "as_expression"}),
    assigns={
        "assignment": Assign(),
        "property_declaration": _ONE,
        "enum_entry": Assign(left="identifier", right="value_arguments", typed_field=True),
    },
    targets=frozenset({"multi_variable_declaration"}),
    types=_GIVEN_TYPES | {"type_arguments", "type_parameters", "type_constraints"},
    texts=frozenset({"string_content"}),
    literals={
        "string_literal": "String",
        "multiline_string_literal": "String",
        "character_literal": "Char",
        "number_literal": "Int",
        "float_literal": "Double",
    },
    casts={"as_expression": ""},
    verdicts={
        "binary_expression": COMPARISONS,
        "in_expression": frozenset(),
        "is_expression": frozenset(),
        "unary_expression": frozenset({"!"}),
    },
    choices={"if_expression": ("condition",), "when_expression": ("when_subject",)},
    nothing=frozenset({"label"}),
    returns=frozenset({"return_expression"}),
    throws=frozenset({"throw_expression"}),
    branches=frozenset({"if_expression"}),
    arms=frozenset({"block"}),
    cases=frozenset({"when_entry"}),
    loops=frozenset({"while_statement", "do_while_statement"}),
    comments=frozenset({"line_comment", "block_comment"}),
    imports={"import": _imported},
    ignored=frozenset({"package_header", "label", "lambda_parameters"}),
    hooks={
        "class_declaration": _class,
        "object_declaration": _class,
        "companion_object": _companion,
        "function_declaration": _function,
        "secondary_constructor": _constructor,
        "function_value_parameters": _parameters,
        "class_parameters": _parameters,
        "function_body": _body,
        "property_declaration": _property,
        "getter": _accessor,
        "setter": _accessor,
        "for_statement": _for,
        "assignment": assign_or_augment,
        "identifier": identifier,
        "labeled_expression": labelled,
        "unary_expression": unary,
        "infix_expression": infix,
        "when_entry": entry,
        "catch_block": caught,
        "string_content": text,
    },
    ease=easing.kotlin,
    unwrap=easing.kotlin_annotations,
    finish=_finish,
)

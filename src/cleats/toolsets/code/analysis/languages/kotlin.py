"""The language table of Kotlin. Its grammar has few fields, so most parts are found by kind."""

from cleats.toolsets.code.analysis.facts import TypeFact, TypePosition
from cleats.toolsets.code.analysis.languages import grammar_workarounds
from cleats.toolsets.code.analysis.languages.assignments import (
    is_field,
    read_type,
    record_type,
    visit_assignment,
    visit_plain_or_augmented,
)
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.frame import Frame
from cleats.toolsets.code.analysis.languages.kotlin_words import (
    visit_catch,
    visit_identifier,
    visit_increment,
    visit_infix_call,
    visit_labeled_jump,
    visit_string_text,
    visit_when_entry,
)
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import (
    COMPARISON_OPERATORS,
    TYPE_KINDS,
    AssignmentSyntax,
    CallSyntax,
    DeclarationSyntax,
    Language,
)
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_TYPE_NODE_KINDS = frozenset({"user_type", "nullable_type", "function_type", "parenthesized_type", "non_nullable_type"})
_BASE_KINDS = frozenset({"delegation_specifiers", "delegation_specifier", "constructor_invocation"})
_BODY_KINDS = ("class_body", "enum_class_body")
_FUNCTION_SYNTAX = DeclarationSyntax("function", inside="method", parameters=(), result=(), body=("function_body",))
_CONSTRUCTOR_SYNTAX = DeclarationSyntax("constructor", parameters=(), result=(), body=("block",))
_PROPERTY_SYNTAX = DeclarationSyntax("property", parameters=(), result=(), body=("getter", "setter"))
_CONSTANT_SYNTAX = DeclarationSyntax("constant", name=("variable_declaration",), parameters=(), body=())
_CLASS_SYNTAX = {
    kind: DeclarationSyntax(kind, parameters=(), bases=_BASE_KINDS, body=_BODY_KINDS)
    for kind in ("class", "interface", "enum")
}
_SINGLE_ASSIGNMENT = AssignmentSyntax(left="variable_declaration", right="")
_MULTI_ASSIGNMENT = AssignmentSyntax(left="multi_variable_declaration", right="")
_SINGLE_LOOP_ASSIGNMENT = AssignmentSyntax(left="variable_declaration", right="", loop=True)
_MULTI_LOOP_ASSIGNMENT = AssignmentSyntax(left="multi_variable_declaration", right="", loop=True)
_MIN_CONSTANT_LINES = 3
_MODIFIER_WORDS = """
    public private protected internal abstract open final override sealed data inner value enum
    inline infix operator tailrec external const lateinit expect actual
"""
_SEQUENCE_BUILDERS = frozenset({"sequence", "iterator"})
_YIELD_FUNCTIONS = frozenset({"yield", "yieldAll"})
_CLOSURE_KINDS = ("lambda_literal", "anonymous_function")


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
    frame.bases = [base.partition(" by ")[0] for base in frame.bases]
    if not frame.visibility and (parent.parent is None or parent.kind in TYPE_KINDS):
        frame.visibility = "public"


def _visit_class(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    syntax = walk.syntax
    name_node = syntax.find_child(node, "name")
    if name_node == NO_NODE:
        return False
    header_words = syntax.data[syntax.starts[node] : syntax.starts[name_node]].split()
    kind = "interface" if b"interface" in header_words else "enum" if b"enum" in header_words else "class"
    frame = read_declaration(walk, node, node, _CLASS_SYNTAX[kind], syntax.text(name_node))
    if b"object" in header_words:
        frame.modifiers["static"] = None
    return True


def _visit_companion(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a companion object, whose members belong to the class itself."""
    frame_count = len(walk.frames)
    walk.visit_children(node, None)
    for frame in walk.frames[frame_count:]:
        if frame.parent is walk.frame:
            frame.modifiers["static"] = None
    return True


def _visit_function(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a function; an extension function is named after the type that it extends."""
    syntax = walk.syntax
    name_node = syntax.find_child(node, "name")
    if name_node == NO_NODE:
        return False
    name, result_node = syntax.text(name_node).strip("`"), NO_NODE
    for child in syntax.children(node):
        if syntax.kinds[child] in _TYPE_NODE_KINDS:
            if child < name_node:
                name = f"{_strip_type_arguments(syntax.text(child))}.{name}"
            else:
                result_node = child
    _record_return_type(walk, read_declaration(walk, node, node, _FUNCTION_SYNTAX, name), result_node)
    return True


def _strip_type_arguments(text: str) -> str:
    return text.partition("<")[0].strip("()? ")


def _record_return_type(walk: SyntaxWalker, frame: Frame, result_node: int) -> None:
    if result_node != NO_NODE:
        frame.return_type = read_type(walk, result_node)
        frame.types[TypeFact("return", "", frame.return_type, "annotation")] = None
        frame.returns = frame.return_type not in walk.language.void


def _visit_constructor(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    read_declaration(walk, node, node, _CONSTRUCTOR_SYNTAX, "constructor")
    return True


def _visit_parameters(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit parameters; a default follows its parameter, but is inside it for class parameters."""
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.kinds[child] in ("parameter", "class_parameter"):
            _read_parameter(walk, child)
        else:
            walk.visit(child, None)
    return True


def _read_parameter(walk: SyntaxWalker, node: int) -> None:
    syntax, frame = walk.syntax, walk.frame
    name_node = syntax.find_child(node, "identifier")
    name = syntax.text(name_node) if name_node != NO_NODE else ""
    header_words = syntax.data[syntax.starts[node] : syntax.starts[name_node]].split() if name else []
    for child in syntax.children(node):
        if syntax.kinds[child] in _TYPE_NODE_KINDS and name and not walk.closure_depth:
            record_type(walk, "param", name, read_type(walk, child), "annotation")
            if b"val" in header_words or b"var" in header_words:
                record_type(walk, "field", name, read_type(walk, child), "annotation")
        if child != name_node:
            walk.visit(child, None)
    if name and not walk.closure_depth and name not in frame.params:
        frame.params.append(name)


def _visit_function_body(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a function body; `= x` returns `x`."""
    syntax = walk.syntax
    first_child = node + 1
    if first_child >= syntax.stops[node] or syntax.kinds[first_child] == "block":
        return False
    if not walk.closure_depth:
        walk.frame.returns = True
    walk.visit_returned(first_child)
    return True


def _visit_property(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a property; accessors, a closure or a long top-level value make it a chunk."""
    syntax = walk.syntax
    variable_node = syntax.find_child(node, "variable_declaration")
    name_node = syntax.find_child(variable_node, "identifier") if variable_node != NO_NODE else NO_NODE
    if name_node == NO_NODE:
        visit_assignment(walk, node, flow, _MULTI_ASSIGNMENT)
        return True
    name = syntax.text(name_node)
    function = syntax.find_child(node, *_CLOSURE_KINDS)
    if syntax.find_child(node, "getter", "setter") != NO_NODE:
        receiver_type = next(
            (child for child in syntax.children(node) if syntax.kinds[child] in _TYPE_NODE_KINDS), NO_NODE
        )
        if receiver_type != NO_NODE:
            name = f"{_strip_type_arguments(syntax.text(receiver_type))}.{name}"
        frame = read_declaration(walk, node, node, _PROPERTY_SYNTAX, name)
        if receiver_type != NO_NODE:
            frame.types = {typed: None for typed in frame.types if typed.where != "local"}
        _record_return_type(walk, frame, syntax.find_child(variable_node, *_TYPE_NODE_KINDS))
    elif function != NO_NODE:
        frame = read_declaration(walk, node, function, _FUNCTION_SYNTAX, name)
        frame.signature = frame.signature.partition("{")[0].rstrip(" =")
    elif walk.frame is walk.module and _count_lines(syntax, node) >= _MIN_CONSTANT_LINES:
        read_declaration(walk, node, node, _CONSTANT_SYNTAX, name)
    else:
        _record_variable_type(walk, variable_node, name)
        visit_assignment(walk, node, flow, _SINGLE_ASSIGNMENT)
    return True


def _count_lines(syntax: SyntaxTree, node: int) -> int:
    return syntax.data.count(b"\n", syntax.starts[node], syntax.ends[node]) + 1


def _record_variable_type(walk: SyntaxWalker, node: int, name: str) -> None:
    type_node = walk.syntax.find_child(node, *_TYPE_NODE_KINDS)
    if type_node != NO_NODE:
        where: TypePosition = "field" if is_field(walk, name) else "local"
        record_type(walk, where, name, read_type(walk, type_node), "annotation")


def _visit_accessor(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    body = walk.syntax.find_child(node, "function_body")
    if body != NO_NODE:
        walk.visit(body, None)
    return True


def _visit_for(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    is_multi = walk.syntax.find_child(node, "multi_variable_declaration") != NO_NODE
    walk.frame.loops += 1
    visit_assignment(walk, node, flow, _MULTI_LOOP_ASSIGNMENT if is_multi else _SINGLE_LOOP_ASSIGNMENT)
    return True


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    path = syntax.find_child(node, "qualified_identifier", "identifier")
    if path == NO_NODE:
        return []
    wildcard = ".*" if syntax.text(node).rstrip().endswith("*") else ""
    return ["".join(syntax.text(path).split()) + wildcard]


def _finish_file(walk: SyntaxWalker) -> None:
    """Normalise calls, mark awaits and generators, and collect the exports.

    `x.await()` awaits `x`; a call with a trailing function is one call; a function that yields in a
    sequence builder is a generator.
    """
    for frame in walk.frames:
        frame.calls = {name.removesuffix("()"): None for name in frame.calls}
        for name in frame.calls:
            if name.endswith(".await"):
                frame.awaits[name.removesuffix(".await").removesuffix("()")] = None
        if not _SEQUENCE_BUILDERS.isdisjoint(frame.calls) and not _YIELD_FUNCTIONS.isdisjoint(frame.calls):
            frame.is_generator = True
        if frame.is_top_level and frame.visibility == "public":
            walk.exports[frame.name] = None


KOTLIN = Language(
    id="kotlin",
    grammar="tree_sitter_kotlin",
    declares={
        **dict.fromkeys(("class_declaration", "object_declaration"), _CLASS_SYNTAX["class"]),
        "function_declaration": _FUNCTION_SYNTAX,
        "secondary_constructor": _CONSTRUCTOR_SYNTAX,
        "property_declaration": _CONSTANT_SYNTAX,
        "type_alias": DeclarationSyntax("type", name=("type",), body=()),
    },
    closures=frozenset(_CLOSURE_KINDS),
    decorators=frozenset({"annotation"}),
    modifiers={
        "suspend": "async",
        **{word: word for word in _MODIFIER_WORDS.split()},
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
    settle=_adjust_declaration,
    doc_comments=("/*", "//"),
    void=frozenset({"Unit", "Nothing"}),
    names=frozenset({"identifier", "this_expression", "super_expression"}),
    members={"navigation_expression": ("", "")},
    indexes={"index_expression": ""},
    calls={
        "call_expression": CallSyntax(
            function=("identifier", "navigation_expression", "call_expression", "index_expression"),
            arguments=("value_arguments",),
        )
    },
    keywords={"value_argument": ("identifier", "no field")},
    transparent=frozenset({"parenthesized_expression", "unary_expression", "as_expression"}),
    assigns={
        "assignment": AssignmentSyntax(),
        "property_declaration": _SINGLE_ASSIGNMENT,
        "enum_entry": AssignmentSyntax(left="identifier", right="value_arguments", typed_field=True),
    },
    targets=frozenset({"multi_variable_declaration"}),
    types=_TYPE_NODE_KINDS | {"type_arguments", "type_parameters", "type_constraints"},
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
        "binary_expression": COMPARISON_OPERATORS,
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
    imports={"import": _read_imports},
    ignored=frozenset({"package_header", "label", "lambda_parameters"}),
    hooks={
        "class_declaration": _visit_class,
        "object_declaration": _visit_class,
        "companion_object": _visit_companion,
        "function_declaration": _visit_function,
        "secondary_constructor": _visit_constructor,
        "function_value_parameters": _visit_parameters,
        "class_parameters": _visit_parameters,
        "function_body": _visit_function_body,
        "property_declaration": _visit_property,
        "getter": _visit_accessor,
        "setter": _visit_accessor,
        "for_statement": _visit_for,
        "assignment": visit_plain_or_augmented,
        "identifier": visit_identifier,
        "labeled_expression": visit_labeled_jump,
        "unary_expression": visit_increment,
        "infix_expression": visit_infix_call,
        "when_entry": visit_when_entry,
        "catch_block": visit_catch,
        "string_content": visit_string_text,
    },
    ease=grammar_workarounds.rewrite_kotlin,
    unwrap=grammar_workarounds.unwrap_kotlin_annotations,
    finish=_finish_file,
)

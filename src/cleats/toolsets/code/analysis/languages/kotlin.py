"""The language table of Kotlin. Its grammar has few fields, so most parts are found by kind."""

import re

from cleats.toolsets.code.analysis.languages import assignments, grammar_workarounds, table
from cleats.toolsets.code.analysis.languages.declarations import (
    is_constant_chunk,
    read_declaration,
    record_return_type,
    visit_static_members,
)
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_TYPE_NODE_KINDS = kind_set("user_type nullable_type function_type parenthesized_type non_nullable_type")
_BASE_KINDS = kind_set("delegation_specifiers delegation_specifier constructor_invocation")
_BODY_KINDS = ("class_body", "enum_class_body")
_FUNCTION_SYNTAX = table.DeclarationSyntax(
    "function", inside="method", parameters=(), result=(), body=("function_body",)
)
_CONSTRUCTOR_SYNTAX = table.DeclarationSyntax("constructor", parameters=(), result=(), body=("block",))
_PROPERTY_SYNTAX = table.DeclarationSyntax("property", parameters=(), result=(), body=("getter", "setter"))
_CONSTANT_SYNTAX = table.DeclarationSyntax("constant", name=("variable_declaration",), parameters=(), body=())
_CLASS_SYNTAX = {
    kind: table.DeclarationSyntax(kind, parameters=(), bases=_BASE_KINDS, body=_BODY_KINDS)
    for kind in ("class", "interface", "enum")
}
_SINGLE_ASSIGNMENT = table.AssignmentSyntax(left="variable_declaration", right="")
_MULTI_ASSIGNMENT = table.AssignmentSyntax(left="multi_variable_declaration", right="")
_SINGLE_LOOP_ASSIGNMENT = table.AssignmentSyntax(left="variable_declaration", right="", loop=True)
_MULTI_LOOP_ASSIGNMENT = table.AssignmentSyntax(left="multi_variable_declaration", right="", loop=True)
_WORD_PATTERN = re.compile(r"[A-Za-z_]\w*")
_SEQUENCE_BUILDERS = kind_set("sequence iterator")
_YIELD_FUNCTIONS = kind_set("yield yieldAll")
_CLOSURE_KINDS = ("lambda_literal", "anonymous_function")


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
    frame.bases = [base.partition(" by ")[0] for base in frame.bases]
    if not frame.visibility and (parent.parent is None or parent.kind in table.TYPE_KINDS):
        frame.visibility = "public"


def _visit_class(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    if (name_node := walk.find_child(node, "name")) == NO_NODE:
        return False
    header_words = walk.data[walk.starts[node] : walk.starts[name_node]].split()
    kind = "interface" if b"interface" in header_words else "enum" if b"enum" in header_words else "class"
    frame = read_declaration(walk, node, node, _CLASS_SYNTAX[kind], walk.text(name_node))
    if b"object" in header_words:
        frame.modifiers["static"] = None
    return True


def _visit_function(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a function; an extension function is named after the type that it extends."""
    if (name_node := walk.find_child(node, "name")) == NO_NODE:
        return False
    name, result_node = walk.text(name_node).strip("`"), NO_NODE
    for child in (child for child in walk.children(node) if walk.kinds[child] in _TYPE_NODE_KINDS):
        if child < name_node:
            name = f"{_strip_type_arguments(walk.text(child))}.{name}"
        else:
            result_node = child
    record_return_type(walk, read_declaration(walk, node, node, _FUNCTION_SYNTAX, name), result_node)
    return True


def _strip_type_arguments(text: str) -> str:
    return text.partition("<")[0].strip("()? ")


def _visit_parameters(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit parameters; a default follows its parameter, but is inside it for class parameters."""
    for child in walk.children(node):
        if walk.kinds[child] in ("parameter", "class_parameter"):
            _read_parameter(walk, child)
        else:
            walk.visit(child, None)


def _read_parameter(walk: SyntaxWalker, node: int) -> None:
    frame = walk.frame
    name_node = walk.find_child(node, "identifier")
    name = walk.text(name_node)
    header_words = walk.data[walk.starts[node] : walk.starts[name_node]].split() if name else []
    for child in walk.children(node):
        if walk.kinds[child] in _TYPE_NODE_KINDS and name and not walk.closure_depth:
            assignments.record_type(walk, "param", name, assignments.read_type(walk, child), "annotation")
            if b"val" in header_words or b"var" in header_words:
                assignments.record_type(walk, "field", name, assignments.read_type(walk, child), "annotation")
        if child != name_node:
            walk.visit(child, None)
    if name and not walk.closure_depth and name not in frame.params:
        frame.params.append(name)


def _visit_function_body(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a function body; `= x` returns `x`."""
    first_child = node + 1
    if first_child >= walk.stops[node] or walk.kinds[first_child] == "block":
        return False
    if not walk.closure_depth:
        walk.frame.returns = True
    walk.visit_returned(first_child)
    return True


def _visit_property(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit a property; accessors, a closure or a long top-level value make it a chunk."""
    variable_node = walk.find_child(node, "variable_declaration")
    if (name_node := walk.find_child(variable_node, "identifier")) == NO_NODE:
        assignments.visit_assignment(walk, node, flow, _MULTI_ASSIGNMENT)
        return
    name = walk.text(name_node)
    function = walk.find_child(node, *_CLOSURE_KINDS)
    if walk.find_child(node, "getter", "setter") != NO_NODE:
        receiver_type = next((child for child in walk.children(node) if walk.kinds[child] in _TYPE_NODE_KINDS), NO_NODE)
        if receiver_type != NO_NODE:
            name = f"{_strip_type_arguments(walk.text(receiver_type))}.{name}"
        frame = read_declaration(walk, node, node, _PROPERTY_SYNTAX, name)
        if receiver_type != NO_NODE:
            frame.types = {typed: None for typed in frame.types if typed.where != "local"}
        record_return_type(walk, frame, walk.find_child(variable_node, *_TYPE_NODE_KINDS))
    elif function != NO_NODE:
        frame = read_declaration(walk, node, function, _FUNCTION_SYNTAX, name)
        frame.signature = frame.signature.partition("{")[0].rstrip(" =")
    elif walk.frame is walk.module and is_constant_chunk(walk, node, name):
        read_declaration(walk, node, node, _CONSTANT_SYNTAX, name)
    else:
        assignments.record_variable_type(walk, name, walk.find_child(variable_node, *_TYPE_NODE_KINDS))
        assignments.visit_assignment(walk, node, flow, _SINGLE_ASSIGNMENT)


def _visit_for(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    is_multi = walk.find_child(node, "multi_variable_declaration") != NO_NODE
    walk.frame.loops += 1
    assignments.visit_assignment(walk, node, flow, _MULTI_LOOP_ASSIGNMENT if is_multi else _SINGLE_LOOP_ASSIGNMENT)


def _visit_keyword(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `break`, `continue@label` and other keywords, which are names to the grammar."""
    name = walk.text(node).partition("@")[0]
    walk.frame.breaks += name == "break"
    walk.frame.continues += name == "continue"
    return name in ("break", "continue", "null", "true", "false")


def _visit_infix_call(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `a to b`, which calls `to`."""
    children = list(walk.children(node))
    if len(children) != 3:
        return False
    walk.visit(children[0], flow)
    walk.frame.calls[walk.text(children[1])] = None
    walk.visit(children[2], flow)
    return True


def _visit_catch(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    name_node, type_node = walk.find_child(node, "identifier"), walk.find_child(node, "user_type")
    walk.frame.branches += 1
    if NO_NODE not in (name_node, type_node):
        assignments.record_type(
            walk, "local", walk.text(name_node), assignments.read_type(walk, type_node), "annotation"
        )
    walk.visit_arms(child for child in walk.children(node) if child != name_node)


def _visit_string_text(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Read `$name` in a string, which the grammar parses as text split after the `$`."""
    start = walk.starts[node]
    if walk.data[start - 1 : start] != b"$" or walk.data[start - 2 : start - 1] == b"\\":
        return False
    if (match := _WORD_PATTERN.match(walk.text(node))) is None:
        return False
    walk.record_read(match.group(), flow)
    if flow is not None:
        flow.text += walk.text(node)[match.end() :]
    return True


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    if (path := syntax.find_child(node, "qualified_identifier", "identifier")) == NO_NODE:
        return []
    wildcard = ".*" if syntax.text(node).rstrip().endswith("*") else ""
    return ["".join(syntax.text(path).split()) + wildcard]


def _finish_file(walk: SyntaxWalker) -> None:
    """Normalise calls, mark awaits and generators, and collect the exports.

    `x.await()` awaits `x`; a call with a trailing function is one call; a function that yields in a sequence builder is
    a generator.
    """
    for frame in walk.frames:
        frame.calls = {name.removesuffix("()"): None for name in frame.calls}
        for name in frame.calls:
            if name.endswith(".await"):
                frame.awaits[name.removesuffix(".await").removesuffix("()")] = None
        if not _SEQUENCE_BUILDERS.isdisjoint(frame.calls) and not _YIELD_FUNCTIONS.isdisjoint(frame.calls):
            frame.is_generator = True
    walk.export_public()


KOTLIN = table.load_table(
    "kotlin",
    declares={
        "class_declaration object_declaration": _CLASS_SYNTAX["class"],
        "function_declaration": _FUNCTION_SYNTAX,
        "property_declaration": _CONSTANT_SYNTAX,
    },
    settle=_adjust_declaration,
    assigns={"property_declaration": _SINGLE_ASSIGNMENT},
    types=_TYPE_NODE_KINDS | {"type_arguments", "type_parameters", "type_constraints"},
    imports={"import": _read_imports},
    hooks={
        "class_declaration object_declaration": _visit_class,
        "companion_object": visit_static_members,
        "function_declaration": _visit_function,
        "secondary_constructor": lambda walk, node, _flow: read_declaration(
            walk, node, node, _CONSTRUCTOR_SYNTAX, "constructor"
        ),
        "function_value_parameters class_parameters": _visit_parameters,
        "function_body": _visit_function_body,
        "property_declaration": _visit_property,
        "getter setter": lambda walk, node, _flow: walk.visit(walk.find_child(node, "function_body"), None),
        "for_statement": _visit_for,
        "assignment": assignments.visit_plain_or_augmented,
        "identifier labeled_expression": _visit_keyword,
        "unary_expression": assignments.visit_increment,
        "infix_expression": _visit_infix_call,
        "catch_block": _visit_catch,
        "string_content": _visit_string_text,
    },
    ease=grammar_workarounds.rewrite_kotlin,
    unwrap=grammar_workarounds.unwrap_kotlin_annotations,
    finish=_finish_file,
)

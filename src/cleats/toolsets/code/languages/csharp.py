"""C#."""

import re

from cleats.toolsets.code.languages.assignments import (
    assign,
    assign_or_augment,
    take_outer_type,
    update,
)
from cleats.toolsets.code.languages.csharp_patterns import declared, named, part, tested, whole
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
    Parameter,
)
from cleats.toolsets.code.languages.walk import Flow, Walk

_PARAMETERS = ("parameters", "parameter_list")
_BASES = frozenset({"base_list", "primary_constructor_base_type"})
_PROPERTY = Declares("property", result=("type",), body=("accessors", "value"))
_METHOD = Declares("method", result=("type",))
_NAMESPACE = Declares("namespace")
_FIELD = Assign(left="name", right="value", typed_field=True)
_TUPLE = Assign(left="tuple_pattern", right="")
_REFERENCE = re.compile(r'<(?:see|seealso|paramref|typeparamref)\s+\w+="([^"]*)"\s*/>')
_GIVEN = re.compile(r"<[^()]*>")
"""What a name is generic over, which a qualified one keeps."""
_TAG = re.compile(r"</?(?:summary|remarks|para|param|returns|value|exception|c|code)\b[^>]*>")


def _settle(frame: Frame, around: Frame) -> None:
    if not frame.visibility and frame.kind != "namespace":
        if around.kind == "interface":
            frame.visibility = "public"
        elif around.kind in TYPES:
            frame.visibility = "private"
        elif around.around is None or around.kind == "namespace":
            frame.visibility = "internal"
    if frame.doc:
        frame.doc = _TAG.sub("", _REFERENCE.sub(r"\1", frame.doc)).strip()
    frame.calls = {_GIVEN.sub("", name): None for name in frame.calls}
    frame.awaits = {name.removesuffix("().ConfigureAwait"): None for name in frame.awaits}


def _namespace(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`namespace Shop;` is around all that follows it."""
    syntax = walk.syntax
    named = syntax.child(node, "name")
    if named == NONE or walk.frame is not walk.module:
        return False
    frame = declare(walk, node, node, _NAMESPACE, syntax.text(named))
    frame.end = len(syntax.data)
    walk.module.inner[-1] = frame.start, frame.end
    walk.frame = frame
    return True


def _property(walk: Walk, node: int, flow: Flow | None) -> bool:
    """One without code of its own is a field."""
    syntax = walk.syntax
    accessors, value = syntax.child(node, "accessors"), syntax.child(node, "value")
    has_code = value != NONE and syntax.kinds[value] == "arrow_expression_clause"
    if accessors != NONE:
        has_code = any(syntax.child(each, "body") != NONE for each in syntax.children(accessors))
    if not has_code:
        assign(walk, node, flow, _FIELD)
    return not has_code


def _operator(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """Operators and indexers, whose name is a sign."""
    syntax = walk.syntax
    listed = syntax.child(node, "parameters")
    if listed == NONE:
        return False
    if syntax.kinds[node] == "indexer_declaration":
        declare(walk, node, node, _PROPERTY, "this[]")
        return True
    head = syntax.data[syntax.starts[node] : syntax.starts[listed]].decode("utf-8", "replace")
    declare(walk, node, node, _METHOD, f"operator {head.rpartition('operator')[2].strip()}")
    return True


def _destructor(walk: Walk, node: int, _flow: Flow | None) -> bool:
    named = walk.syntax.child(node, "name")
    if named == NONE:
        return False
    declare(walk, node, node, _METHOD, f"~{walk.syntax.text(named)}")
    return True


def _arrow(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`=> value` is a body that returns it."""
    for child in walk.syntax.children(node):
        walk.give(child)
    return True


def _name(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """Names of types are names like any other, but for their place."""
    if walk.syntax.fields[node] != "type":
        return False
    walk.use(node)
    return True


def _used(walk: Walk, node: int, _flow: Flow | None) -> bool:
    walk.use(node)
    return True


def _declarator(walk: Walk, node: int, flow: Flow | None) -> bool:
    if walk.syntax.child(node, "tuple_pattern") != NONE:
        assign(walk, node, flow, _TUPLE)
        return True
    return take_outer_type(walk, node, flow)


def _assigned(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`{ Id = 3 }` after `new` sets a field of the new object, not a variable."""
    syntax = walk.syntax
    left, right = syntax.child(node, "left"), syntax.child(node, "right")
    if syntax.kinds[syntax.parents[node]] != "initializer_expression" or NONE in (left, right):
        return assign_or_augment(walk, node, flow)
    walk.use(left)
    walk.visit(right, flow)
    return True


def _counted(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`i++`, not `-i`."""
    data, start, end = walk.syntax.data, walk.syntax.starts[node], walk.syntax.ends[node]
    if not {data[start : start + 2], data[end - 2 : end]} & {b"++", b"--"}:
        return False
    update(walk, node, flow)
    return True


def _made(syntax: Syntax, node: int) -> str:
    is_array = syntax.kinds[node] == "array_creation_expression"
    given = syntax.child(node, "type") if is_array else NONE
    return syntax.text(given) if given != NONE else ""


def _imported(syntax: Syntax, node: int) -> list[str]:
    paths = [child for child in syntax.children(node) if syntax.fields[child] != "name"]
    return ["".join(syntax.text(path).split()) for path in paths[-1:]]


def _finish(walk: Walk) -> None:
    for frame in walk.frames:
        in_namespace = frame.around is not None and frame.around.kind == "namespace"
        if (frame.top or in_namespace) and frame.visibility == "public":
            walk.exports[frame.name] = None


CSHARP = Language(
    id="csharp",
    grammar="tree_sitter_c_sharp",
    declares={
        "namespace_declaration": _NAMESPACE,
        "class_declaration": Declares("class", parameters=_PARAMETERS, bases=_BASES),
        "interface_declaration": Declares("interface", bases=_BASES),
        "struct_declaration": Declares("struct", parameters=_PARAMETERS, bases=_BASES),
        "record_declaration": Declares("struct", parameters=_PARAMETERS, bases=_BASES),
        "enum_declaration": Declares("enum", bases=_BASES),
        "delegate_declaration": Declares("type", result=("type",)),
        "method_declaration": Declares("method", result=("returns",)),
        "local_function_statement": Declares("function", result=("type",)),
        "constructor_declaration": Declares("constructor"),
        "property_declaration": _PROPERTY,
        "event_declaration": _PROPERTY,
    },
    carriers={"variable_declarator": Carrier("name", "lambda_expression")},
    closures=frozenset({"lambda_expression", "anonymous_method_expression"}),
    parameters={"parameter": Parameter()},
    decorators=frozenset({"attribute"}),
    modifiers={"modifier": ""},
    modifier_lists=frozenset({"attribute_list"}),
    not_bases=frozenset({"argument_list"}),
    settle=_settle,
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
        "invocation_expression": Call(),
        "object_creation_expression": Call(function=("type",), prefix="new "),
        "constructor_initializer": Call(function=("base", "this"), arguments=("argument_list",)),
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
        "assignment_expression": Assign(),
        "variable_declarator": Assign(left="name", right=""),
        "foreach_statement": Assign(loop=True),
        "catch_declaration": Assign(left="name", right="no value"),
        "from_clause": Assign(left="name", right="", loop=True),
        "enum_member_declaration": _FIELD,
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
    verdicts={"binary_expression": COMPARISONS, "prefix_unary_expression": frozenset({"!"})},
    choices={"conditional_expression": ("condition",), "switch_expression": (0,)},
    made=_made,
    returns=frozenset({"return_statement"}),
    throws=frozenset({"throw_statement", "throw_expression"}),
    awaits=frozenset({"await_expression"}),
    yields=frozenset({"yield_statement"}),
    branches=frozenset({"if_statement", "conditional_expression", "catch_clause"}),
    cases=frozenset({"switch_section", "switch_expression_arm"}),
    loops=frozenset({"for_statement", "foreach_statement", "while_statement", "do_statement"}),
    breaks=frozenset({"break_statement"}),
    continues=frozenset({"continue_statement"}),
    imports={"using_directive": _imported},
    ignored=frozenset({"extern_alias_directive", "global_attribute", "modifier", "goto_statement"}),
    tokens=frozenset({"this", "base"}),
    hooks={
        "file_scoped_namespace_declaration": _namespace,
        "property_declaration": _property,
        "operator_declaration": _operator,
        "conversion_operator_declaration": _operator,
        "indexer_declaration": _operator,
        "destructor_declaration": _destructor,
        "arrow_expression_clause": _arrow,
        "identifier": _name,
        **dict.fromkeys(("typeof_expression", "sizeof_expression", "default_expression"), _used),
        "variable_declarator": _declarator,
        "assignment_expression": _assigned,
        "postfix_unary_expression": _counted,
        "prefix_unary_expression": _counted,
        "declaration_expression": declared,
        "declaration_pattern": declared,
        "is_pattern_expression": tested,
        "recursive_pattern": whole,
        "subpattern": part,
        "anonymous_object_creation_expression": named,
        "with_initializer": named,
    },
    finish=_finish,
)

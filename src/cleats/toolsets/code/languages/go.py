"""Go."""

from cleats.toolsets.code.facts import Typed
from cleats.toolsets.code.languages.assignments import assign_or_augment, sole, type_text
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

_FUNCTION = Declares("function", result=("result",))
_METHOD = Declares("method", result=("result",))
_STRUCT = Declares("struct", body=("type",))
_INTERFACE = Declares("interface", body=("type",))
_EMBEDDED = frozenset({"type_identifier", "qualified_type", "generic_type"})


def _settle(frame: Frame, around: Frame) -> None:
    if around.around is None or around.kind in TYPES:
        capital = frame.name.rpartition(".")[2][:1].isupper()
        frame.visibility = "public" if capital else "package"


def _method(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A method is named after the type of its receiver."""
    syntax = walk.syntax
    named, receivers = syntax.child(node, "name"), syntax.child(node, "receiver")
    if NONE in (named, receivers) or receivers + 1 >= syntax.stops[receivers]:
        return False
    receiver = receivers + 1
    type_node = syntax.child(receiver, "type")
    bare = (
        syntax.text(type_node).strip("*() ").partition("[")[0].strip() if type_node != NONE else ""
    )
    if not bare:
        return False
    frame = declare(walk, node, node, _METHOD, f"{bare}.{syntax.text(named)}")
    name = syntax.child(receiver, "name")
    if name != NONE:
        known = Typed("param", syntax.text(name), type_text(walk, type_node), "annotation")
        frame.types[known] = None
    return True


def _type(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """Structs and interfaces are types whose right side says so."""
    syntax = walk.syntax
    named, given = syntax.child(node, "name"), syntax.child(node, "type")
    kind = syntax.kinds[given] if given != NONE else ""
    if named == NONE or kind not in ("struct_type", "interface_type"):
        return False
    row = _STRUCT if kind == "struct_type" else _INTERFACE
    frame = declare(walk, node, node, row, syntax.text(named))
    alias = " =" if syntax.kinds[node] == "type_alias" else ""
    frame.signature += f"{alias} {row.kind}"
    return True


def _interface(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """What an interface embeds it extends; a union of types is a constraint."""
    syntax = walk.syntax
    is_declared = walk.frame.kind == "interface" and syntax.fields[node] == "type"
    for child in syntax.children(node):
        if syntax.kinds[child] in walk.language.comments:
            walk.visit(child, None)
            continue
        inner = sole(walk, child)
        if is_declared and inner != child and syntax.kinds[inner] in _EMBEDDED:
            walk.frame.bases.append(syntax.text(inner))
        named = syntax.child(child, "name") if syntax.kinds[child] == "method_elem" else NONE
        if is_declared and named != NONE:
            declare(walk, child, child, _METHOD, syntax.text(named))
        else:
            walk.use(child)
    return True


def _field(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A field without a name embeds its type."""
    syntax = walk.syntax
    type_node = syntax.child(node, "type")
    if syntax.child(node, "name") == NONE and type_node != NONE and walk.frame.kind == "struct":
        walk.frame.bases.append(syntax.text(type_node))
    return False


def _called(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`panic(err)` throws `err`."""
    syntax = walk.syntax
    function, arguments = syntax.child(node, "function"), syntax.child(node, "arguments")
    if NONE in (function, arguments) or syntax.ends[function] - syntax.starts[function] != 5:
        return False
    first = arguments + 1
    if syntax.text(function) != "panic" or first >= syntax.stops[arguments]:
        return False
    kind = syntax.kinds[first]
    thrown = ""
    if kind == "call_expression":
        thrown = syntax.text(first + 1)
    elif kind in ("identifier", "selector_expression"):
        thrown = syntax.text(first)
    else:
        thrown = _made(syntax, first).lstrip("*")
    if thrown and thrown.replace(".", "").isidentifier():
        walk.frame.throws[thrown] = None
    return False


def _converted(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`Map[int](xs)` looks like a conversion to a generic type, and is a call more often."""
    type_node = walk.syntax.child(node, "type")
    if type_node != NONE and walk.syntax.kinds[type_node] == "generic_type":
        return False
    walk.descend(node, flow)
    return True


def _element(walk: Walk, node: int, flow: Flow | None) -> bool:
    """The name of a field in a literal is not a variable that is read."""
    syntax = walk.syntax
    key, value = syntax.child(node, "key"), syntax.child(node, "value")
    if NONE in (key, value) or syntax.kinds[sole(walk, key)] != "identifier":
        return False
    walk.use(key)
    walk.visit(value, flow)
    return True


def _made(syntax: Syntax, node: int) -> str:
    kind, prefix = syntax.kinds[node], ""
    if kind == "unary_expression" and syntax.data[syntax.starts[node]] == ord("&"):
        node, prefix = syntax.child(node, "operand"), "*"
        kind = syntax.kinds[node] if node != NONE else ""
    if kind in ("composite_literal", "type_conversion_expression", "type_assertion_expression"):
        given = syntax.child(node, "type")
        is_call = kind == "type_conversion_expression" and syntax.kinds[given] == "generic_type"
        return prefix + syntax.text(given) if given != NONE and not is_call else ""
    return ""


def _imported(syntax: Syntax, node: int) -> list[str]:
    path = syntax.child(node, "path")
    return [syntax.text(path).strip('"`')] if path != NONE else []


def _finish(walk: Walk) -> None:
    for frame in walk.frames:
        if frame.top and frame.visibility == "public" and frame.kind != "method":
            walk.exports[frame.name] = None


GO = Language(
    id="go",
    grammar="tree_sitter_go",
    declares={
        "function_declaration": _FUNCTION,
        "method_declaration": _METHOD,
        "func_literal": _FUNCTION,
        "type_spec": Declares("type", body=()),
        "type_alias": Declares("type", body=()),
        "var_spec": Declares("constant", lines=3, top=True),
        "const_spec": Declares("constant", lines=3, top=True),
    },
    carriers={
        "short_var_declaration": Carrier("left", "right"),
        "var_spec": Carrier("name", "value"),
    },
    closures=frozenset({"func_literal"}),
    wraps=frozenset({"type_declaration", "var_declaration", "var_spec_list", "const_declaration"}),
    parameters={
        "parameter_declaration": Parameter(),
        "variadic_parameter_declaration": Parameter(),
    },
    settle=_settle,
    doc_comments=("//", "/*"),
    type_names=frozenset({"type_identifier", "qualified_type"}),
    members={"selector_expression": ("operand", "field")},
    indexes={"index_expression": "operand"},
    calls={
        "call_expression": Call(),
        "type_conversion_expression": Call(function=("type",), arguments=("operand",)),
    },
    transparent=frozenset(
        {
            "parenthesized_expression",
            "type_assertion_expression",
            "unary_expression",
            "generic_type",
        }
    ),
    assigns={
        "assignment_statement": Assign(),
        "short_var_declaration": Assign(),
        "var_spec": Assign(left="name", right="value"),
        "const_spec": Assign(left="name", right="value"),
        "range_clause": Assign(loop=True),
        "receive_statement": Assign(),
        "type_switch_statement": Assign(left="alias", right="value"),
        "field_declaration": Assign(left="name", right="no value", typed_field=True),
    },
    updates=frozenset({"inc_statement", "dec_statement"}),
    types=frozenset(
        {
            "pointer_type",
            "slice_type",
            "array_type",
            "implicit_length_array_type",
            "map_type",
            "channel_type",
            "function_type",
            "generic_type",
            "parenthesized_type",
            "type_arguments",
            "type_parameter_list",
            "parameter_list",
        }
    ),
    texts=frozenset({"interpreted_string_literal_content", "raw_string_literal_content"}),
    literals={
        "interpreted_string_literal": "string",
        "raw_string_literal": "string",
        "int_literal": "int",
        "float_literal": "float64",
        "imaginary_literal": "complex128",
        "rune_literal": "rune",
        "true": "bool",
        "false": "bool",
        "func_literal": "func",
    },
    made=_made,
    lists=frozenset({"expression_list", "literal_element", "type_elem"}),
    nothing=frozenset({"nil"}),
    verdicts={"binary_expression": COMPARISONS, "unary_expression": frozenset({"!"})},
    returns=frozenset({"return_statement"}),
    panics=frozenset({"panic"}),
    branches=frozenset({"if_statement"}),
    cases=frozenset({"expression_case", "type_case", "communication_case"}),
    defaults=frozenset({"default_case"}),
    loops=frozenset({"for_statement"}),
    breaks=frozenset({"break_statement"}),
    continues=frozenset({"continue_statement"}),
    imports={"import_spec": _imported},
    ignored=frozenset({"package_clause"}),
    hooks={
        "method_declaration": _method,
        "type_spec": _type,
        "type_alias": _type,
        "interface_type": _interface,
        "field_declaration": _field,
        "call_expression": _called,
        "assignment_statement": assign_or_augment,
        "type_conversion_expression": _converted,
        "keyed_element": _element,
    },
    finish=_finish,
)

"""Rust."""

from cleats.toolsets.code.languages import easing
from cleats.toolsets.code.languages.assignments import add_type, assign, type_text
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.heads import declare
from cleats.toolsets.code.languages.rust_macros import invoke, read_tokens
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

_IMPL = Declares("impl", bases=frozenset({"trait"}), name=("type",))
_UNNAMED = ("array_type", "tuple_type", "unit_type")
_STATEMENTS = ("_statement", "_item", "_declaration", "_definition", "_comment")
_MAKERS = ("new", "default", "with_", "from", "open", "create")
_MADE_BY_MACROS = {"vec": "Vec", "format": "String"}


def _settle(frame: Frame, around: Frame) -> None:
    words = [word for word in frame.modifiers if word.startswith("pub")]
    if words:
        frame.visibility = "public" if words[0] == "pub" else "internal"
    elif around.kind == "trait" or (around.kind == "impl" and around.bases):
        frame.visibility = "public"
    elif around.around is None or around.kind in TYPES or around.kind == "namespace":
        frame.visibility = "" if frame.kind == "impl" else "private"
    if frame.kind == "method" and frame.name == "new" and around.kind == "impl":
        frame.kind = "constructor"


def _impl(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A block is named after its type, without what the type is generic over."""
    syntax = walk.syntax
    given = syntax.child(node, "type")
    while given != NONE and syntax.kinds[given] in ("reference_type", "pointer_type"):
        given = syntax.child(given, "type")
    is_list = given != NONE and (syntax.has(given, b",") or syntax.has(given, b";"))
    if given != NONE and syntax.kinds[given] in _UNNAMED and is_list:
        declare(walk, node, node, _IMPL, " ".join(syntax.text(given).split())[:200])
        return True
    text = syntax.text(given).partition("<")[0] if given != NONE else ""
    words = [word for word in text.strip("&*() ").replace("(", " ").split() if _names_type(word)]
    if not words:
        return False
    declare(walk, node, node, _IMPL, words[0].rpartition("::")[2])
    return True


def _names_type(word: str) -> bool:
    """Not what is said of a reference: `&'a mut (dyn Read + Send)` is a `Read`."""
    return word not in ("mut", "const", "dyn") and not word.startswith("'")


def _module(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`mod store;` is in another file."""
    syntax = walk.syntax
    named = syntax.child(node, "name")
    if syntax.child(node, "body") != NONE or named == NONE:
        return False
    walk.imports[syntax.text(named)] = None
    return True


def _places(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The fields of a tuple have numbers for names; they are all the head of a struct says."""
    syntax = walk.syntax
    parent = syntax.parents[node]
    variant = syntax.child(parent, "name") if syntax.kinds[parent] == "enum_variant" else NONE
    owner = syntax.text(variant) if variant != NONE else ""
    types = [child for child in syntax.children(node) if syntax.fields[child] == "type"]
    for place, child in enumerate(types):
        add_type(walk, "field", owner or str(place), type_text(walk, child), "annotation")
    if not owner and walk.frame.kind == "struct":
        walk.frame.signature += " ".join(syntax.text(node).split())
    return False


def _type(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The type that an implementation gives to a name of its trait is no declaration."""
    if walk.frame.kind != "impl":
        return False
    walk.use(node)
    return True


def _body(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The last expression of a function is what it returns."""
    syntax = walk.syntax
    around = syntax.kinds[syntax.parents[node]]
    if around not in ("function_item", "closure_expression"):
        return False
    children = list(syntax.children(node))
    for child in children[:-1]:
        walk.visit(child, None)
    for last in children[-1:]:
        if _is_statement(syntax, last):
            walk.visit(last, None)
            continue
        if around == "closure_expression" and not walk.silent:
            walk.frame.returns = True
        walk.give(last)
    return True


def _is_statement(syntax: Syntax, node: int) -> bool:
    if syntax.kinds[node] == "expression_statement":
        return syntax.data[syntax.ends[node] - 1] == ord(";")
    return syntax.kinds[node].endswith(_STATEMENTS)


def _statement(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The value of `f();` goes nowhere, wherever it stands."""
    if not _is_statement(walk.syntax, node):
        return False
    walk.descend(node, None)
    return True


def _if(walk: Walk, node: int, flow: Flow | None) -> bool:
    """An `if` that is a value has arms all the same."""
    if flow is None:
        return False
    syntax = walk.syntax
    walk.frame.branches += 1
    for child in syntax.children(node):
        if syntax.fields[child] in ("consequence", "alternative"):
            walk.arm(child, flow)
        else:
            walk.visit(child, None)
    return True


def _match(walk: Walk, node: int, flow: Flow | None) -> bool:
    """What is matched goes to the names in the patterns."""
    syntax = walk.syntax
    value, body = syntax.child(node, "value"), syntax.child(node, "body")
    if NONE in (value, body):
        return False
    patterns = [syntax.child(arm, "pattern") for arm in syntax.children(body)]
    _bind_all(walk, node, value, [pattern for pattern in patterns if pattern != NONE])
    walk.visit(body, flow)
    return True


def _pattern(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """The names have been given their values; what is left is the condition."""
    condition = walk.syntax.child(node, "condition")
    if condition != NONE:
        walk.visit(condition, None)
    return True


def _condition(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`if let Some(x) = y`."""
    syntax = walk.syntax
    value, pattern = syntax.child(node, "value"), syntax.child(node, "pattern")
    if NONE in (value, pattern):
        return False
    targets = _bind_all(walk, node, value, [pattern])
    if flow is not None:
        flow.names += targets
    return True


def _bind_all(walk: Walk, node: int, value: int, patterns: list[int]) -> list[str]:
    saved, walk.calls = walk.calls, []
    walk.visit(value, given := Flow())
    targets: list[str] = []
    for pattern in patterns:
        _bind(walk, pattern, targets)
    walk.frame.writes.update(dict.fromkeys(targets))
    walk.step(node, targets, given)
    walk.calls = saved
    return targets


def _bind(walk: Walk, node: int, into: list[str]) -> None:
    syntax = walk.syntax
    kind = syntax.kinds[node]
    if syntax.fields[node] in ("type", "condition"):
        if syntax.fields[node] == "type":
            walk.use(node)
    elif kind in ("identifier", "shorthand_field_identifier"):
        name = syntax.text(node)
        if name[:1].isupper():
            walk.frame.uses[name] = None
        else:
            into.append(name)
    elif kind == "scoped_identifier":
        walk.frame.uses["".join(syntax.text(node).split())] = None
    else:
        for child in syntax.children(node):
            _bind(walk, child, into)


def _constant(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`const _: () = …;` has no name worth one."""
    if walk.syntax.child(node, "value") == NONE:
        walk.use(node)
        return True
    if walk.frame.kind in TYPES:
        assign(walk, node, flow, Assign(left="name", right="value", typed_field=True))
        return True
    return False


def _made(syntax: Syntax, node: int) -> str:
    kind = syntax.kinds[node]
    if kind == "struct_expression":
        return syntax.text(node + 1)
    if kind == "macro_invocation":
        return _MADE_BY_MACROS.get(syntax.text(node + 1), "")
    function = syntax.child(node, "function") if kind == "call_expression" else NONE
    if function == NONE or syntax.kinds[function] not in ("identifier", "scoped_identifier"):
        return ""
    path, _, last = syntax.text(function).rpartition("::")
    if not path:
        return last if last[:1].isupper() and last not in ("Some", "Ok", "Err") else ""
    return path if path.rpartition("::")[2][:1].isupper() and last.startswith(_MAKERS) else ""


def _imported(syntax: Syntax, node: int) -> list[str]:
    argument = syntax.child(node, "argument")
    return _paths(syntax, argument, "") if argument != NONE else []


def _paths(syntax: Syntax, node: int, prefix: str) -> list[str]:
    """Every path of a tree of imports, in full."""
    kind = syntax.kinds[node]
    if kind == "use_list":
        return [path for child in syntax.children(node) for path in _paths(syntax, child, prefix)]
    if kind == "scoped_use_list":
        path, inner = syntax.child(node, "path"), syntax.child(node, "list")
        before = f"{prefix}{syntax.text(path)}::" if path != NONE else prefix
        return _paths(syntax, inner, before) if inner != NONE else []
    if kind == "use_as_clause":
        node = node + 1
    if kind.endswith("_comment"):
        return []
    text = "".join(syntax.text(node).split())
    return [prefix.removesuffix("::")] if text == "self" and prefix else [prefix + text]


def _crate(syntax: Syntax, node: int) -> list[str]:
    named = syntax.child(node, "name")
    return [syntax.text(named)] if named != NONE else []


def _finish(walk: Walk) -> None:
    for frame in walk.frames:
        if frame.top and frame.visibility == "public" and frame.kind != "impl":
            walk.exports[frame.name] = None


RUST = Language(
    id="rust",
    grammar="tree_sitter_rust",
    declares={
        "function_item": Declares("function", inside="method"),
        "function_signature_item": Declares("function", inside="method"),
        "struct_item": Declares("struct"),
        "union_item": Declares("struct"),
        "enum_item": Declares("enum"),
        "trait_item": Declares("trait", bases=frozenset({"bounds"})),
        "impl_item": _IMPL,
        "mod_item": Declares("namespace"),
        "type_item": Declares("type", body=()),
        "const_item": Declares("constant", lines=3, top=True),
        "static_item": Declares("constant", lines=3, top=True),
        "macro_definition": Declares("macro", body=("macro_rule",)),
    },
    carriers={"let_declaration": Carrier("pattern", "value")},
    closures=frozenset({"closure_expression"}),
    parameters={"parameter": Parameter(name=("pattern",))},
    decorators=frozenset({"attribute_item"}),
    modifiers={
        "visibility_modifier": "",
        "async": "async",
        "const": "const",
        "unsafe": "unsafe",
        "extern_modifier": "extern",
    },
    modifier_lists=frozenset({"function_modifiers"}),
    not_bases=frozenset({"lifetime"}),
    settle=_settle,
    doc_comments=("///", "// ", "/*"),
    void=frozenset({"()", "!"}),
    names=frozenset({"identifier", "self", "shorthand_field_identifier"}),
    type_names=frozenset({"type_identifier", "scoped_type_identifier", "crate", "super"}),
    members={"field_expression": ("value", "field"), "scoped_identifier": ("path", "name")},
    joints={"scoped_identifier": "::"},
    indexes={"index_expression": ""},
    calls={"call_expression": Call()},
    transparent=frozenset(
        {
            "parenthesized_expression",
            "reference_expression",
            "unary_expression",
            "try_expression",
            "await_expression",
            "type_cast_expression",
            "generic_function",
            "generic_type",
            "generic_type_with_turbofish",
        }
    ),
    assigns={
        "let_declaration": Assign(left="pattern", right="value"),
        "assignment_expression": Assign(),
        "compound_assignment_expr": Assign(augmented=True),
        "for_expression": Assign(left="pattern", right="value", loop=True),
        "const_item": Assign(left="name", right="value"),
        "static_item": Assign(left="name", right="value"),
        "field_declaration": Assign(left="name", right="no value", typed_field=True),
        "enum_variant": Assign(left="name", right="value", typed_field=True),
    },
    targets=frozenset({"tuple_pattern", "struct_pattern", "tuple_struct_pattern", "slice_pattern"}),
    types=frozenset(
        {
            "generic_type",
            "reference_type",
            "pointer_type",
            "array_type",
            "tuple_type",
            "function_type",
            "unit_type",
            "never_type",
            "primitive_type",
            "abstract_type",
            "dynamic_type",
            "bounded_type",
            "bracketed_type",
            "qualified_type",
            "type_arguments",
            "type_parameters",
            "where_clause",
            "associated_type",
        }
    ),
    texts=frozenset({"string_content"}),
    literals={
        "string_literal": "&str",
        "raw_string_literal": "&str",
        "char_literal": "char",
        "integer_literal": "integer",
        "float_literal": "float",
        "boolean_literal": "bool",
        "array_expression": "array",
        "tuple_expression": "tuple",
    },
    made=_made,
    nothing=frozenset({"unit_expression"}),
    casts={"type_cast_expression": "type"},
    verdicts={"binary_expression": COMPARISONS, "unary_expression": frozenset({"!"})},
    returns=frozenset({"return_expression"}),
    awaits=frozenset({"await_expression"}),
    branches=frozenset({"if_expression"}),
    cases=frozenset({"match_arm"}),
    loops=frozenset({"for_expression", "while_expression", "loop_expression"}),
    breaks=frozenset({"break_expression"}),
    continues=frozenset({"continue_expression"}),
    comments=frozenset({"line_comment", "block_comment"}),
    imports={"use_declaration": _imported, "extern_crate_declaration": _crate},
    ignored=frozenset({"inner_attribute_item", "visibility_modifier", "lifetime", "label"}),
    hooks={
        "impl_item": _impl,
        "mod_item": _module,
        "type_item": _type,
        "const_item": _constant,
        "block": _body,
        "expression_statement": _statement,
        "if_expression": _if,
        "match_expression": _match,
        "match_pattern": _pattern,
        "let_condition": _condition,
        "macro_invocation": invoke,
        "token_tree": read_tokens,
        "ordered_field_declaration_list": _places,
    },
    unwrap=easing.rust,
    finish=_finish,
)

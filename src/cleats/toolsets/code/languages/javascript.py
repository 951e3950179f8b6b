"""JavaScript, and what TypeScript shares with it."""

from cleats.toolsets.code.languages import jsx
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.javascript_patterns import destructured, handed
from cleats.toolsets.code.languages.membership import membership
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
from cleats.toolsets.code.languages.walk import Flow, Walk

LONGEST_KEY = 30
"""Characters of a key that tell what an object is."""

_EXPORTS = ("module.exports.", "exports.")
_PREFIXES = (*_EXPORTS, "this.")
_WHOLE = ("module.exports", "exports")


def begin(walk: Walk, head: int, frame: Frame) -> None:
    """`exports.f = …` and `this.f = …` are about `f`; a class that is exported has its own name."""
    if frame.name in _WHOLE:
        own = walk.syntax.child(head, "name")
        if own == NONE:
            return
        name = walk.syntax.text(own)
        walk.exports[name] = frame.modifiers["export"] = None
    else:
        prefix = next((prefix for prefix in _PREFIXES if frame.name.startswith(prefix)), "")
        if not prefix:
            return
        name = frame.name.removeprefix(prefix)
        if prefix in _EXPORTS:
            frame.modifiers["export"] = None
    frame.qualified = frame.qualified.removesuffix(frame.name) + name
    frame.name = name


def settle(frame: Frame, around: Frame) -> None:
    """Visibility by `#`, `_`, `export` and place; constructors and accessors."""
    if frame.kind == "method":
        if frame.name == "constructor":
            frame.kind = "constructor"
        elif "get" in frame.modifiers or "set" in frame.modifiers:
            frame.kind = "property"
    if ".prototype." in frame.name and frame.kind == "function":
        frame.kind = "method"
    if not frame.visibility:
        frame.visibility = _visibility(frame, around)


def _visibility(frame: Frame, around: Frame) -> str:
    if frame.name.startswith("#"):
        return "private"
    if around.kind in TYPES:
        return "protected" if frame.name.startswith("_") else "public"
    if "export" in frame.modifiers or frame.kind in ("method", "property", "constructor"):
        return "public"
    if around.kind == "namespace":
        return "public" if _is_ambient(around) else "internal"
    return "internal" if frame.top else ""


def _is_ambient(frame: Frame | None) -> bool:
    """Whether it is in `declare namespace`, where everything is exported."""
    while frame is not None and "declare" not in frame.modifiers:
        frame = frame.around
    return frame is not None


def imported(syntax: Syntax, node: int) -> list[str]:
    """The module of an `import`."""
    source = syntax.child(node, "source")
    if source == NONE:
        clause = syntax.child(node, "import_require_clause")
        source = syntax.child(clause, "source") if clause != NONE else NONE
    return [syntax.text(source).strip("\"'`")] if source != NONE else []


def exported(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`export { a as b }`, `export * from`: names and modules that no declaration shows."""
    syntax = walk.syntax
    walk.imports.update(dict.fromkeys(imported(syntax, node)))
    clause = syntax.child(node, "export_clause")
    whole = syntax.child(node, "namespace_export")
    if whole != NONE and (named := syntax.last(whole)) != NONE:
        walk.exports[syntax.text(named).strip("\"'")] = None
    if clause == NONE:
        return syntax.child(node, "source") != NONE
    for specifier in syntax.children(clause):
        named = syntax.child(specifier, "alias")
        if named == NONE:
            named = syntax.child(specifier, "name")
        if named != NONE:
            walk.exports[syntax.text(named).strip("\"'")] = None
    return True


def called(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`require("x")` and `import("x")` import."""
    syntax = walk.syntax
    function = syntax.child(node, "function")
    if function == NONE or syntax.ends[function] - syntax.starts[function] > 7:
        return False
    if syntax.text(function) not in ("require", "import"):
        return False
    arguments = syntax.child(node, "arguments")
    first = arguments + 1
    if arguments == NONE or first >= syntax.stops[arguments]:
        return False
    if syntax.kinds[first] == "string":
        walk.imports[syntax.text(first).strip("\"'`")] = None
    return False


def assigned(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`module.exports = { a, b }` exports."""
    if walk.frame is not walk.module:
        return False
    syntax = walk.syntax
    left, right = syntax.child(node, "left"), syntax.child(node, "right")
    if NONE in (left, right):
        return False
    name = syntax.text(left)
    if name == "module.exports":
        _export_value(walk, right)
    elif name.startswith(_EXPORTS):
        walk.exports[name.rpartition(".")[2]] = None
    return False


def _export_value(walk: Walk, node: int) -> None:
    syntax = walk.syntax
    if syntax.kinds[node] == "identifier":
        walk.exports[syntax.text(node)] = None
    elif syntax.kinds[node] == "object":
        for child in syntax.children(node):
            named = syntax.child(child, "key", "name")
            if named != NONE or syntax.kinds[child] == "shorthand_property_identifier":
                walk.exports[syntax.text(child if named == NONE else named).strip("\"'")] = None


def literal(walk: Walk, node: int, flow: Flow | None) -> bool:
    """An object is told from a text by its brace and its first key: `{$where:`."""
    if flow is None or flow.names or flow.calls or flow.text[:1] not in ("", "{"):
        return False
    syntax = walk.syntax
    first = node + 1
    if first < syntax.stops[node] and syntax.kinds[first] == "pair":
        flow.text += "{" + syntax.text(first + 1)[:LONGEST_KEY].strip("\"'") + ":"
    else:
        flow.text += "{"
    return False


def removed(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """`delete o.p` changes `o` in place."""
    syntax = walk.syntax
    operand = syntax.child(node, "argument")
    if operand == NONE or syntax.child(node, "delete") == NONE:
        return False
    path = walk.path(operand, Flow())
    walk.frame.writes[path] = walk.frame.mutates[path] = None
    return True


def finish(walk: Walk) -> None:
    """What is exported is public, and what is declared with `export` is exported."""
    for frame in walk.frames:
        if frame.top:
            if "export" in frame.modifiers:
                walk.exports["default" if "default" in frame.modifiers else frame.name] = None
            elif frame.name in walk.exports and frame.visibility == "internal":
                frame.visibility = "public"


MODIFIERS = {
    "async": "async",
    "*": "generator",
    "static": "static",
    "get": "get",
    "set": "set",
    "export": "export",
    "default": "default",
    "const": "const",
}

DECLARES = {
    "function_declaration": Declares("function"),
    "generator_function_declaration": Declares("function"),
    "class_declaration": Declares("class", bases=frozenset({"class_heritage"})),
    "class": Declares("class", bases=frozenset({"class_heritage"})),
    "method_definition": Declares("method"),
    "variable_declarator": Declares("constant", lines=3, top=True),
}

CARRIERS = {
    "export_statement": Carrier("default", "value"),
    "variable_declarator": Carrier("name", "value"),
    "field_definition": Carrier("property", "value", kind="method"),
    "pair": Carrier("key", "value", kind="method", lines=3),
    "assignment_expression": Carrier("left", "right"),
}

HOOKS = {
    "object": literal,
    "variable_declarator": destructured,
    "arrow_function": handed,
    "function_expression": handed,
    "export_statement": exported,
    "call_expression": called,
    "assignment_expression": assigned,
    "unary_expression": removed,
    "binary_expression": membership,
    "jsx_opening_element": jsx.element,
    "jsx_self_closing_element": jsx.element,
    "jsx_closing_element": jsx.closed,
}

ASSIGNS = {
    "assignment_expression": Assign(),
    "augmented_assignment_expression": Assign(augmented=True),
    "variable_declarator": Assign(left="name", right="value"),
    "field_definition": Assign(left="property", right="value", typed_field=True),
    "assignment_pattern": Assign(),
    "object_assignment_pattern": Assign(),
    "for_in_statement": Assign(loop=True),
    "catch_clause": Assign(left="parameter", right="no value"),
}

LITERALS = {
    "string": "string",
    "template_string": "string",
    "number": "number",
    "true": "boolean",
    "false": "boolean",
    "array": "Array",
    "object": "Object",
    "regex": "RegExp",
    "null": "null",
    "undefined": "undefined",
    "arrow_function": "Function",
    "function_expression": "Function",
}

JAVASCRIPT = Language(
    id="javascript",
    grammar="tree_sitter_javascript",
    declares=DECLARES,
    carriers=CARRIERS,
    closures=frozenset({"arrow_function", "function_expression", "generator_function"}),
    wraps=frozenset(
        {"export_statement", "lexical_declaration", "variable_declaration", "expression_statement"}
    ),
    parameters={"assignment_pattern": Parameter(name=("left",), default=("right",))},
    decorators=frozenset({"decorator"}),
    modifiers=MODIFIERS,
    begin=begin,
    settle=settle,
    doc_comments=("/*", "//"),
    void=frozenset({"void", "undefined", "never", "Promise<void>"}),
    names=frozenset(
        {
            "identifier",
            "this",
            "super",
            "import",
            "shorthand_property_identifier",
            "shorthand_property_identifier_pattern",
            "private_property_identifier",
        }
    ),
    members={"member_expression": ("object", "property")},
    indexes={"subscript_expression": "object"},
    calls={
        "call_expression": Call(),
        "new_expression": Call(function=("constructor",), prefix="new "),
    },
    transparent=frozenset({"parenthesized_expression", "await_expression"}),
    assigns=ASSIGNS,
    targets=frozenset({"object_pattern", "array_pattern", "rest_pattern", "assignment_pattern"}),
    updates=frozenset({"update_expression"}),
    texts=frozenset({"string_fragment"}),
    literals=LITERALS,
    classes={"regex": "RegExp"},
    nothing=frozenset({"undefined"}),
    verdicts={
        "binary_expression": COMPARISONS | ARITHMETIC,
        "unary_expression": frozenset({"!", "typeof", "void", "+", "-", "~"}),
    },
    choices={"ternary_expression": ("condition",)},
    returns=frozenset({"return_statement"}),
    throws=frozenset({"throw_statement"}),
    awaits=frozenset({"await_expression"}),
    yields=frozenset({"yield_expression"}),
    branches=frozenset({"if_statement", "ternary_expression", "switch_case", "catch_clause"}),
    arms=frozenset({"switch_default"}),
    loops=frozenset({"for_statement", "for_in_statement", "while_statement", "do_statement"}),
    breaks=frozenset({"break_statement"}),
    continues=frozenset({"continue_statement"}),
    comments=frozenset({"comment", "html_comment"}),
    imports={"import_statement": imported},
    ignored=frozenset({"statement_identifier", "optional_chain", "hash_bang_line"}),
    tokens=frozenset({"delete"}),
    hooks=HOOKS,
    fallback="tsx",
    finish=finish,
)

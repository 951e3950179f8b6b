"""The language table of JavaScript, and the parts that TypeScript shares with it."""

from itertools import islice

from cleats.toolsets.code.analysis.languages import assignments, javascript_patterns, table
from cleats.toolsets.code.analysis.languages.frame import Frame
from cleats.toolsets.code.analysis.languages.javascript_patterns import visit_callback, visit_destructuring
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

MAX_KEY_CHARS = 30
"""Characters of the first key, by which an object literal is identified."""

_EXPORT_PREFIXES = ("module.exports.", "exports.")
_OWNER_PREFIXES = (*_EXPORT_PREFIXES, "this.")
_MODULE_EXPORT_NAMES = ("module.exports", "exports")


def adjust_name(walk: SyntaxWalker, header: int, frame: Frame) -> None:
    """Name `exports.f = …` and `this.f = …` after `f`, and an exported class after itself."""
    if frame.name in _MODULE_EXPORT_NAMES:
        name_node = walk.syntax.find_child(header, "name")
        if name_node == NO_NODE:
            return
        name = walk.syntax.text(name_node)
        walk.exports[name] = frame.modifiers["export"] = None
    else:
        prefix = next((prefix for prefix in _OWNER_PREFIXES if frame.name.startswith(prefix)), "")
        if not prefix:
            return
        name = frame.name.removeprefix(prefix)
        if prefix in _EXPORT_PREFIXES:
            frame.modifiers["export"] = None
    frame.qualified_name = frame.qualified_name.removesuffix(frame.name) + name
    frame.name = name


def adjust_declaration(frame: Frame, parent: Frame) -> None:
    """Set the visibility by `#`, `_`, `export` and location; detect constructors and accessors."""
    if frame.kind == "method":
        if frame.name == "constructor":
            frame.kind = "constructor"
        elif "get" in frame.modifiers or "set" in frame.modifiers:
            frame.kind = "property"
    if ".prototype." in frame.name and frame.kind == "function":
        frame.kind = "method"
    if not frame.visibility:
        frame.visibility = _derive_visibility(frame, parent)


def _derive_visibility(frame: Frame, parent: Frame) -> str:
    if frame.name.startswith("#"):
        return "private"
    if parent.kind in table.TYPE_KINDS:
        return "protected" if frame.name.startswith("_") else "public"
    if "export" in frame.modifiers or frame.kind in ("method", "property", "constructor"):
        return "public"
    if parent.kind == "namespace":
        return "public" if _is_ambient(parent) else "internal"
    return "internal" if frame.is_top_level else ""


def _is_ambient(frame: Frame | None) -> bool:
    """Return whether a frame is in `declare namespace`, where everything is exported."""
    while frame is not None and "declare" not in frame.modifiers:
        frame = frame.parent
    return frame is not None


def read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    """Return the module of an `import`."""
    source = syntax.find_child(node, "source")
    if source == NO_NODE:
        source = syntax.find_child(syntax.find_child(node, "import_require_clause"), "source")
    return [syntax.text(source).strip("\"'`")] if source != NO_NODE else []


def visit_export(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `export { a as b }` and `export * from`: names and modules without a declaration."""
    syntax = walk.syntax
    walk.imports.update(dict.fromkeys(read_imports(syntax, node)))
    clause = syntax.find_child(node, "export_clause")
    namespace_node = syntax.find_child(node, "namespace_export")
    if (name_node := syntax.last_child(namespace_node)) != NO_NODE:
        walk.exports[syntax.text(name_node).strip("\"'")] = None
    if clause == NO_NODE:
        return syntax.find_child(node, "source") != NO_NODE
    for specifier in syntax.children(clause):
        name_node = syntax.find_child(specifier, "alias")
        if name_node == NO_NODE:
            name_node = syntax.find_child(specifier, "name")
        if name_node != NO_NODE:
            walk.exports[syntax.text(name_node).strip("\"'")] = None
    return True


def visit_import_call(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the module of `require("x")` and `import("x")`."""
    syntax = walk.syntax
    function = syntax.find_child(node, "function")
    # The length first: the text of a long chain would be copied for each of its calls.
    if syntax.ends[function] - syntax.starts[function] < 8 and syntax.text(function) in ("require", "import"):
        for argument in islice(syntax.children(syntax.find_child(node, "arguments")), 1):
            if syntax.kinds[argument] == "string":
                walk.imports[syntax.text(argument).strip("\"'`")] = None
    return False


def visit_exports_assignment(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the exports of `module.exports = { a, b }`."""
    if walk.frame is not walk.module:
        return False
    syntax = walk.syntax
    left_node, right_node = syntax.find_child(node, "left"), syntax.find_child(node, "right")
    if NO_NODE in (left_node, right_node):
        return False
    name = syntax.text(left_node)
    if name == "module.exports":
        _export_value(walk, right_node)
    elif name.startswith(_EXPORT_PREFIXES):
        walk.exports[name.rpartition(".")[2]] = None
    return False


def _export_value(walk: SyntaxWalker, node: int) -> None:
    syntax = walk.syntax
    if syntax.kinds[node] == "identifier":
        walk.exports[syntax.text(node)] = None
    elif syntax.kinds[node] == "object":
        for child in syntax.children(node):
            name_node = syntax.find_child(child, "key", "name")
            if name_node != NO_NODE or syntax.kinds[child] == "shorthand_property_identifier":
                walk.exports[syntax.text(child if name_node == NO_NODE else name_node).strip("\"'")] = None


def visit_object_literal(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Add the brace and first key of an object to the text, to mark it as one: `{$where:`."""
    if flow is None or flow.names or flow.calls or flow.text[:1] not in ("", "{"):
        return False
    syntax = walk.syntax
    first = node + 1
    if first < syntax.stops[node] and syntax.kinds[first] == "pair":
        flow.text += "{" + syntax.text(first + 1)[:MAX_KEY_CHARS].strip("\"'") + ":"
    else:
        flow.text += "{"
    return False


def visit_delete(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `delete o.p`, which changes `o` in place."""
    syntax = walk.syntax
    operand = syntax.find_child(node, "argument")
    if operand == NO_NODE or syntax.find_child(node, "delete") == NO_NODE:
        return False
    dotted_name = walk.read_name(operand, ValueFlow())
    walk.frame.writes[dotted_name] = walk.frame.mutates[dotted_name] = None
    return True


def collect_exports(walk: SyntaxWalker) -> None:
    """Make exported names public, and export declarations marked with `export`."""
    for frame in walk.frames:
        if frame.is_top_level:
            if "export" in frame.modifiers:
                walk.exports["default" if "default" in frame.modifiers else frame.name] = None
            elif frame.name in walk.exports and frame.visibility == "internal":
                frame.visibility = "public"


MODIFIER_WORDS = {
    "async": "async",
    "*": "generator",
    "static": "static",
    "get": "get",
    "set": "set",
    "export": "export",
    "default": "default",
    "const": "const",
}

DECLARATION_SYNTAX = {
    "function_declaration generator_function_declaration": table.DeclarationSyntax("function"),
    "class_declaration class": table.DeclarationSyntax("class", bases=kind_set("class_heritage")),
    "method_definition": table.DeclarationSyntax("method"),
    "variable_declarator": table.DeclarationSyntax("constant", lines=3, top=True),
}

CARRIER_SYNTAX = {
    "export_statement": table.CarrierSyntax("default", "value"),
    "variable_declarator": table.CarrierSyntax("name", "value"),
    "field_definition": table.CarrierSyntax("property", "value", kind="method"),
    "pair": table.CarrierSyntax("key", "value", kind="method", lines=3),
    "assignment_expression": table.CarrierSyntax("left", "right"),
}

NODE_HOOKS = {
    "object": visit_object_literal,
    "variable_declarator": visit_destructuring,
    "arrow_function function_expression": visit_callback,
    "export_statement": visit_export,
    "call_expression": visit_import_call,
    "assignment_expression": visit_exports_assignment,
    "unary_expression": visit_delete,
    "binary_expression": assignments.visit_membership,
    "jsx_opening_element jsx_self_closing_element": javascript_patterns.visit_element,
}

ASSIGNMENT_SYNTAX = {
    "assignment_expression assignment_pattern object_assignment_pattern": table.AssignmentSyntax(),
    "augmented_assignment_expression": table.AssignmentSyntax(augmented=True),
    "variable_declarator": table.AssignmentSyntax(left="name", right="value"),
    "field_definition": table.AssignmentSyntax(left="property", right="value", typed_field=True),
    "for_in_statement": table.AssignmentSyntax(loop=True),
    "catch_clause": table.AssignmentSyntax(left="parameter", right="no value"),
}

LITERAL_TYPES = {
    "string template_string": "string",
    "number": "number",
    "true false": "boolean",
    "array": "Array",
    "object": "Object",
    "regex": "RegExp",
    "null": "null",
    "undefined": "undefined",
    "arrow_function function_expression": "Function",
}

JAVASCRIPT = table.Language(
    id="javascript",
    grammar="tree_sitter_javascript",
    declares=DECLARATION_SYNTAX,
    carriers=CARRIER_SYNTAX,
    closures=kind_set("arrow_function function_expression generator_function"),
    wraps=kind_set("export_statement lexical_declaration variable_declaration expression_statement"),
    parameters={"assignment_pattern": table.ParameterSyntax(name=("left",), default=("right",))},
    decorators=kind_set("decorator"),
    modifiers=MODIFIER_WORDS,
    begin=adjust_name,
    settle=adjust_declaration,
    void=kind_set("void undefined never Promise<void>"),
    names=kind_set("""
        identifier this super import shorthand_property_identifier shorthand_property_identifier_pattern
        private_property_identifier
    """),
    members={"member_expression": ("object", "property")},
    indexes={"subscript_expression": "object"},
    calls={
        "call_expression": table.CallSyntax(),
        "new_expression": table.CallSyntax(function=("constructor",), prefix="new "),
    },
    transparent=kind_set("parenthesized_expression await_expression"),
    assigns=ASSIGNMENT_SYNTAX,
    targets=kind_set("object_pattern array_pattern rest_pattern assignment_pattern"),
    updates=kind_set("update_expression"),
    texts=kind_set("string_fragment"),
    literals=LITERAL_TYPES,
    classes={"regex": "RegExp"},
    nothing=kind_set("undefined"),
    verdicts={
        "binary_expression": table.COMPARISON_OPERATORS | table.ARITHMETIC_OPERATORS,
        "unary_expression": kind_set("! typeof void + - ~"),
    },
    choices={"ternary_expression": ("condition",)},
    throws=kind_set("throw_statement"),
    awaits=kind_set("await_expression"),
    yields=kind_set("yield_expression"),
    branches=kind_set("if_statement ternary_expression switch_case catch_clause"),
    arms=kind_set("switch_default"),
    loops=kind_set("for_statement for_in_statement while_statement do_statement"),
    comments=kind_set("comment html_comment"),
    imports={"import_statement": read_imports},
    ignored=kind_set("statement_identifier optional_chain hash_bang_line jsx_closing_element"),
    tokens=kind_set("delete"),
    hooks=NODE_HOOKS,
    fallback="tsx",
    finish=collect_exports,
)

"""The language table of JavaScript, and the parts that TypeScript shares with it."""

from itertools import islice

from cleats.toolsets.code.analysis.languages import assignments, javascript_patterns, table
from cleats.toolsets.code.analysis.languages.javascript_patterns import visit_callback, visit_destructuring
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

MAX_KEY_CHARS = 30
"""Characters of the first key, by which an object literal is identified."""

_EXPORT_PREFIXES = ("module.exports.", "exports.")
_OWNER_PREFIXES = (*_EXPORT_PREFIXES, "this.")
_MODULE_EXPORT_NAMES = ("module.exports", "exports")


def _adjust_name(walk: SyntaxWalker, header: int, frame: Frame) -> None:
    """Name `exports.f = …` and `this.f = …` after `f`, and an exported class after itself."""
    if frame.name in _MODULE_EXPORT_NAMES:
        if (name_node := walk.find_child(header, "name")) == NO_NODE:
            return
        name = walk.text(name_node)
        walk.exports[name] = frame.modifiers["export"] = None
    else:
        prefix = next((prefix for prefix in _OWNER_PREFIXES if frame.name.startswith(prefix)), "")
        if not prefix:
            return
        name = frame.name.removeprefix(prefix)
        if prefix in _EXPORT_PREFIXES:
            frame.modifiers["export"] = None
    frame.rename(name)


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
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
    if (source := syntax.find_child(node, "source")) == NO_NODE:
        source = syntax.find_child(syntax.find_child(node, "import_require_clause"), "source")
    return [syntax.text(source).strip("\"'`")] if source != NO_NODE else []


def _visit_export(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `export { a as b }` and `export * from`: names and modules without a declaration."""
    walk.imports.update(dict.fromkeys(read_imports(walk, node)))
    clause = walk.find_child(node, "export_clause")
    namespace_node = walk.find_child(node, "namespace_export")
    if (name_node := walk.last_child(namespace_node)) != NO_NODE:
        walk.exports[walk.text(name_node).strip("\"'")] = None
    if clause == NO_NODE:
        return walk.find_child(node, "source") != NO_NODE
    for specifier in walk.children(clause):
        if (name_node := walk.find_child(specifier, "alias")) == NO_NODE:
            name_node = walk.find_child(specifier, "name")
        if name_node != NO_NODE:
            walk.exports[walk.text(name_node).strip("\"'")] = None
    return True


def _visit_import_call(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the module of `require("x")` and `import("x")`."""
    function = walk.find_child(node, "function")
    # The length first: the text of a long chain would be copied for each of its calls.
    if walk.ends[function] - walk.starts[function] < 8 and walk.text(function) in ("require", "import"):
        for argument in islice(walk.children(walk.find_child(node, "arguments")), 1):
            if walk.kinds[argument] == "string":
                walk.imports[walk.text(argument).strip("\"'`")] = None
    return False


def _visit_exports_assignment(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the exports of `module.exports = { a, b }`."""
    if walk.frame is not walk.module:
        return False
    left_node, right_node = walk.find_child(node, "left"), walk.find_child(node, "right")
    if NO_NODE in (left_node, right_node):
        return False
    if (name := walk.text(left_node)) == "module.exports":
        _export_value(walk, right_node)
    elif name.startswith(_EXPORT_PREFIXES):
        walk.exports[name.rpartition(".")[2]] = None
    return False


def _export_value(walk: SyntaxWalker, node: int) -> None:
    if walk.kinds[node] == "identifier":
        walk.exports[walk.text(node)] = None
    elif walk.kinds[node] == "object":
        for child in walk.children(node):
            name_node = walk.find_child(child, "key", "name")
            if name_node != NO_NODE or walk.kinds[child] == "shorthand_property_identifier":
                walk.exports[walk.text(child if name_node == NO_NODE else name_node).strip("\"'")] = None


def _visit_object_literal(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Add the brace and first key of an object to the text, to mark it as one: `{$where:`."""
    if flow is None or flow.names or flow.calls or flow.text[:1] not in ("", "{"):
        return False
    first = node + 1
    if first < walk.stops[node] and walk.kinds[first] == "pair":
        flow.text += "{" + walk.text(first + 1)[:MAX_KEY_CHARS].strip("\"'") + ":"
    else:
        flow.text += "{"
    return False


def _visit_delete(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `delete o.p`, which changes `o` in place."""
    operand = walk.find_child(node, "argument")
    if operand == NO_NODE or walk.find_child(node, "delete") == NO_NODE:
        return False
    dotted_name = walk.read_name(operand, ValueFlow())
    walk.frame.writes[dotted_name] = walk.frame.mutates[dotted_name] = None
    return True


def _collect_exports(walk: SyntaxWalker) -> None:
    """Make exported names public, and export declarations marked with `export`."""
    for frame in walk.frames:
        if frame.is_top_level:
            if "export" in frame.modifiers:
                walk.exports["default" if "default" in frame.modifiers else frame.name] = None
            elif frame.name in walk.exports and frame.visibility == "internal":
                frame.visibility = "public"


JAVASCRIPT = table.load_table(
    "javascript",
    begin=_adjust_name,
    settle=_adjust_declaration,
    imports={"import_statement": read_imports},
    hooks={
        "object": _visit_object_literal,
        "variable_declarator": visit_destructuring,
        "arrow_function function_expression": visit_callback,
        "export_statement": _visit_export,
        "call_expression": _visit_import_call,
        "assignment_expression": _visit_exports_assignment,
        "unary_expression": _visit_delete,
        "binary_expression": assignments.visit_membership,
        "jsx_opening_element jsx_self_closing_element": javascript_patterns.visit_element,
    },
    finish=_collect_exports,
)

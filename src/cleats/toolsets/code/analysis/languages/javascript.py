"""The language table of JavaScript, and the parts that TypeScript shares with it.

`const { a } = x` reads `x.a`. The parameters of a function that is passed to a call receive what
the call passes, which is written `{}`: in `xs.map((x) => …)` the name `x` has the value
`xs.map().{}`, in `app.get("/", ({ query }) => …)` the name `query` has the value
`app.get().{}.query`.
"""

import re
from collections.abc import Iterator
from itertools import islice

from cleats.toolsets.code.analysis.facts import DataFlowStep
from cleats.toolsets.code.analysis.languages import assignments, table
from cleats.toolsets.code.analysis.languages.assignments import visit_assignment
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
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


CALLBACK_ARGUMENT = "{}"
ELEMENT_CALLBACK_METHODS = kind_set("map flatMap forEach filter reduce some every find each then")
"""Methods that pass the object they are called on, or its elements, to a function."""
MAX_CALLEE_BYTES = 120
"""Bytes of a callee with the arguments in it; longer chains are skipped."""

_INNERMOST_ARGUMENTS_PATTERN = re.compile(r"\([^()]*\)|\s+|[?!](?=\.)")
_DOTTED_NAME_PATTERN = re.compile(r"[\w$][\w$.\x00]*")


def visit_destructuring(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `const { a, b: { c } } = x`, where every name receives its own part of the value."""
    if (pattern := node + 1) == walk.stops[node] or walk.kinds[pattern] != "object_pattern":
        return False
    steps = walk.frame.steps
    step_count = len(steps)
    visit_assignment(walk, node, flow)
    # Only the last step: the defaults in the pattern are recorded before it.
    last_step = steps[-1] if len(steps) > step_count else None
    if last_step is not None and last_step.targets and len(last_step.names) == 1 and not last_step.calls:
        steps.pop()
        _record_pattern(walk, pattern, last_step.names[0])
    return True


def visit_callback(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record what the parameters of a closure receive, if it is passed to a call."""
    if (parameters_node := walk.find_child(node, "parameters", "parameter")) == NO_NODE:
        return False
    names, patterns = _split_parameters(walk, parameters_node)
    callee = _read_receiving_callee(walk, node)
    if names and callee.rpartition(".")[2] in ELEMENT_CALLBACK_METHODS:
        _record_step(walk, parameters_node, names, f"{callee}().{CALLBACK_ARGUMENT}")
    for pattern in patterns:
        _record_pattern(walk, pattern, f"{callee}().{CALLBACK_ARGUMENT}" if callee else CALLBACK_ARGUMENT)
    return False


def _split_parameters(syntax: SyntaxTree, node: int) -> tuple[list[str], list[int]]:
    if syntax.kinds[node] == "identifier":
        return [syntax.text(node)], []
    names: list[str] = []
    patterns: list[int] = []
    for child in syntax.children(node):
        # TypeScript wraps the name or the pattern in a separate node.
        pattern_node = syntax.find_child(child, "pattern") if syntax.fields[child] != "pattern" else NO_NODE
        parameter = child if pattern_node == NO_NODE else pattern_node
        if syntax.kinds[parameter] == "assignment_pattern":
            parameter += 1
        if syntax.kinds[parameter] == "identifier":
            names.append(syntax.text(parameter))
        elif syntax.kinds[parameter] == "object_pattern":
            patterns.append(parameter)
    return names, patterns


def _read_receiving_callee(syntax: SyntaxTree, node: int) -> str:
    """Return the callee that receives a function, without arguments; empty if it is not a name."""
    parent = syntax.parents[node]
    if syntax.kinds[parent] == "arguments":
        callee_node = syntax.find_child(syntax.parents[parent], "function")
    elif syntax.kinds[parent] == "pair":
        callee_node = syntax.find_child(parent, "key")
    else:
        return ""
    if callee_node == NO_NODE or syntax.ends[callee_node] - syntax.starts[callee_node] > MAX_CALLEE_BYTES:
        return ""
    text = syntax.text(callee_node)
    if not text.isidentifier():
        previous = ""
        while text != previous:
            previous = text
            text = _INNERMOST_ARGUMENTS_PATTERN.sub(lambda match: "\x00" if match[0][0] == "(" else "", text)
        if not _DOTTED_NAME_PATTERN.fullmatch(text):
            return ""
    return text.replace("\x00", "()")


def _record_pattern(walk: SyntaxWalker, pattern: int, value: str) -> None:
    for name, part in _iter_pattern_names(walk, pattern, value):
        _record_step(walk, pattern, [name], part)


def _record_step(walk: SyntaxWalker, node: int, names: list[str], value: str) -> None:
    line = walk.line_number(walk.starts[node])
    walk.frame.steps.append(DataFlowStep(line, names, [value], [], [], "", walk.block_number))


def _iter_pattern_names(syntax: SyntaxTree, node: int, value: str) -> Iterator[tuple[str, str]]:
    """Yield every name in a pattern with the part of the value that it receives."""
    if (kind := syntax.kinds[node]) in ("identifier", "shorthand_property_identifier_pattern"):
        yield syntax.text(node), value
    elif kind in ("assignment_pattern", "object_assignment_pattern"):
        yield from _iter_pattern_names(syntax, node + 1, value)
    elif kind == "object_pattern":
        for child in syntax.children(node):
            yield from _iter_property_names(syntax, child, value)
    elif kind in ("array_pattern", "rest_pattern"):
        inner = f"{value}[]" if kind == "array_pattern" else value
        for child in syntax.children(node):
            yield from _iter_pattern_names(syntax, child, inner)


def _iter_property_names(syntax: SyntaxTree, node: int, value: str) -> Iterator[tuple[str, str]]:
    if (kind := syntax.kinds[node]) == "pair_pattern":
        key, inner = syntax.find_child(node, "key"), syntax.find_child(node, "value")
        if NO_NODE in (key, inner):
            return
        name = syntax.text(key).strip("\"'")
        part = f"{value}.{name}" if name.isidentifier() else f"{value}[]"
        yield from _iter_pattern_names(syntax, inner, part)
    elif kind == "rest_pattern":
        yield from _iter_pattern_names(syntax, node, value)
    else:
        name_node = node + 1 if kind == "object_assignment_pattern" else node
        yield from _iter_pattern_names(syntax, name_node, f"{value}.{syntax.text(name_node)}")


def visit_element(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit an element: `<Row id={a}/>` calls `Row`, `<b title={a}/>` assigns to `b.title`."""
    if flow is None:
        walk.visit_as_statement(visit_element, node)
        return
    name = walk.text(walk.find_child(node, "name"))  # empty for a fragment
    if name[:1].isupper() or "." in name:
        attributes = [walk.read_argument(value, key) for key, value in _iter_attributes(walk, node)]
        walk.record_call(node, name, attributes, flow)
    else:
        _record_attributes(walk, node, name)


def _record_attributes(walk: SyntaxWalker, node: int, tag: str) -> None:
    for name, value in _iter_attributes(walk, node):
        saved_calls, walk.calls = walk.calls, []
        walk.visit(value, flow := ValueFlow())
        if flow.names or flow.calls:
            walk.record_step(value, [f"{tag}.{name}"], flow)
        walk.calls = saved_calls


def _iter_attributes(walk: SyntaxWalker, node: int) -> Iterator[tuple[str, int]]:
    for child in walk.children(node):
        if walk.kinds[child] == "jsx_expression":  # {...spread}
            yield "", child
        elif walk.kinds[child] == "jsx_attribute":
            name, value = child + 1, walk.stops[child + 1]
            if value < walk.stops[child]:
                yield walk.text(name), value


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
        "jsx_opening_element jsx_self_closing_element": visit_element,
    },
    finish=_collect_exports,
)

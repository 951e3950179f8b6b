"""The language table of PHP.

Variables keep their `$`; members are dotted, `::` stays as written.
"""

from cleats.toolsets.code.analysis.languages import assignments, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration, read_parameters
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_PROPERTY_SYNTAX = table.DeclarationSyntax("property", parameters=(), result=("type",), body=("property_hook_list",))
_NUMBER_TYPES = ("int", "integer", "float", "double", "bool", "boolean")
_INTRINSIC_NAMES = {
    "echo_statement": "echo",
    "print_intrinsic": "print",
    "include_expression": "include",
    "include_once_expression": "include_once",
    "require_expression": "require",
    "require_once_expression": "require_once",
    "shell_command_expression": "shell_exec",
    "exit_statement": "exit",
}
"""Statements and expressions that are recorded as calls, and their callees."""


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
    if frame.kind == "method" and frame.name.lower() == "__construct":
        frame.kind = "constructor"
    if not frame.visibility and (parent.parent is None or parent.kind in table.TYPE_KINDS):
        frame.visibility = "public"


def _visit_intrinsic(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    if flow is None:
        walk.visit_as_statement(_visit_intrinsic, node)
        return
    kind = walk.kinds[node]
    walk.visit_children(node, argument_flow := ValueFlow())
    if kind.startswith(("include", "require")) and argument_flow.text:
        # `__DIR__ . "/boot.php"` is in the folder of this file.
        is_relative = argument_flow.text.startswith("/") and walk.kinds[node + 1] == "binary_expression"
        walk.imports["." * is_relative + argument_flow.text] = None
    walk.record_call(node, _INTRINSIC_NAMES.get(kind, "echo"), [argument_flow.to_argument()], flow)


def _visit_short_echo(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `<?= $x ?>`, which is an echo."""
    start = walk.starts[node]
    if not walk.data[max(0, start - 16) : start].rstrip().endswith(b"<?="):
        return False
    _visit_intrinsic(walk, node, flow)
    return True


def _visit_foreach(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `foreach (values as key => value)`, whose parts have no fields."""
    body = walk.find_child(node, "body")
    header_nodes = [
        child for child in walk.children(node) if child != body and walk.kinds[child] not in walk.language.comments
    ]
    walk.frame.loops += 1
    targets: list[str] = []
    with walk.open_step(node, targets) as value:
        for header_node in header_nodes[:1]:
            walk.visit(header_node, value)
        for header_node in header_nodes[1:]:
            assignments.collect_targets(walk, header_node, targets)
    walk.visit_arms(child for child in walk.children(node) if child not in header_nodes)


def _visit_trait_use(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    for child in walk.children(node):
        if walk.kinds[child] in ("name", "qualified_name"):
            walk.frame.bases.append(walk.text(child))
        walk.record_uses(child)


def _visit_name(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record a bare name in capital letters as a constant that is read."""
    name = walk.text(node)
    if name.isupper():
        walk.frame.reads[name] = None
    return False


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    group_node = syntax.find_child(node, "body")
    prefix_node = syntax.find_child(node, "namespace_name") if group_node != NO_NODE else NO_NODE
    prefix = syntax.text(prefix_node) + "\\" if prefix_node != NO_NODE else ""
    imports = []
    for clause in syntax.children(group_node if group_node != NO_NODE else node):
        name_node = syntax.find_child(clause, "name", "qualified_name", "namespace_name")
        if syntax.kinds[clause] == "namespace_use_clause" and name_node != NO_NODE:
            imports.append((prefix + syntax.text(name_node)).lstrip("\\"))
    return imports


def _visit_cast(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a cast to a number, into which no text flows."""
    type_node, value_node = walk.find_child(node, "type"), walk.find_child(node, "value")
    if NO_NODE in (type_node, value_node) or walk.text(type_node).strip("() ").lower() not in _NUMBER_TYPES:
        return False
    walk.visit(value_node, ValueFlow())
    return True


def _visit_pipe(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `$x |> trim(...)`, which calls `trim` with `$x`."""
    left_node, right_node = walk.find_child(node, "left"), walk.find_child(node, "right")
    operator = walk.data[walk.ends[left_node] : walk.starts[right_node]].strip()
    if left_node == NO_NODE or operator != b"|>" or walk.kinds[right_node] not in walk.language.calls:
        return False
    if flow is None:
        walk.visit_as_statement(_visit_pipe, node)
        return True
    walk.visit(left_node, argument_flow := ValueFlow())
    callee = walk.visit_call(right_node, ValueFlow())
    walk.calls.pop()
    walk.record_call(node, callee, [argument_flow.to_argument()], flow)
    return True


def _visit_property(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    hooks = walk.find_child(node, "property_hook_list")
    name_node = walk.find_child(walk.find_child(node, "property_element"), "name")
    has_code = any(walk.find_child(hook, "body") != NO_NODE for hook in walk.children(hooks))
    if name_node == NO_NODE or not has_code:
        return False
    read_declaration(walk, node, node, _PROPERTY_SYNTAX, walk.text(name_node).lstrip("$"))
    return True


def _visit_property_hook(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a hook: `get => x` returns `x`; `set(string $v)` has a parameter."""
    parameters_node, body = walk.find_child(node, "parameters"), walk.find_child(node, "body")
    read_parameters(walk, parameters_node, walk.frame)
    if walk.kinds[body] == "compound_statement":
        walk.visit(body, None)
    elif body != NO_NODE:
        walk.visit_returned(body)


def _collect_exports(walk: SyntaxWalker) -> None:
    for frame in walk.frames:
        if frame.is_top_level and frame.kind != "constant":
            walk.exports[frame.name] = None


PHP = table.load_table(
    "php",
    settle=_adjust_declaration,
    made=lambda _syntax, _node: "",
    imports={"namespace_use_declaration": _read_imports},
    hooks={
        **dict.fromkeys(_INTRINSIC_NAMES, _visit_intrinsic),
        "expression_statement": _visit_short_echo,
        "foreach_statement": _visit_foreach,
        "use_declaration": _visit_trait_use,
        "property_declaration": _visit_property,
        "property_hook": _visit_property_hook,
        "cast_expression": _visit_cast,
        "binary_expression": _visit_pipe,
        "property_element": assignments.record_outer_type,
        "name": _visit_name,
    },
    finish=_collect_exports,
)

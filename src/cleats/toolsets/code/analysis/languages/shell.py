"""The language table of shell scripts: commands are calls, variables are named without the `$`.

Positional and special parameters keep it (`$1`, `$@`), since a number or a symbol alone is not a
name.
"""

from cleats.toolsets.code.analysis.facts import CallArgument
from cleats.toolsets.code.analysis.languages.assignments import visit_assignment
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import AssignmentSyntax, load_table
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_SOURCE_COMMANDS = ("source", ".")
_READ_COMMANDS = ("read", "mapfile", "readarray")
_JUMP_COMMANDS = ("break", "continue", "return", ":")
_EXPANSION_KINDS = ("simple_expansion", "expansion", "string")
_AUGMENTED_ASSIGNMENT = AssignmentSyntax(left="name", right="value", augmented=True)
_ARITHMETIC_ASSIGNMENT = AssignmentSyntax()
_ARITHMETIC_UPDATE = AssignmentSyntax(augmented=True)
_ARITHMETIC_COMPARISONS = (b"==", b"!=", b"<=", b">=")


def _visit_command(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    if flow is None:
        walk.visit_as_statement(_visit_command, node)
        return
    callee = ""
    arguments: list[CallArgument] = []
    words: list[str] = []
    for child in walk.children(node):
        if (field := walk.fields[child]) == "name":
            callee = _read_command_name(walk, child, flow)
        elif field == "argument":
            arguments.append(walk.read_argument(child))
            words.append(walk.text(child))
        else:
            walk.visit(child, None if walk.kinds[child] == "variable_assignment" else flow)
    if callee in _JUMP_COMMANDS:
        walk.frame.breaks += callee == "break"
        walk.frame.continues += callee == "continue"
        return
    if callee in _SOURCE_COMMANDS and words:
        walk.imports[words[0].strip("\"'")] = None
    elif callee in _READ_COMMANDS:
        walk.frame.writes.update(dict.fromkeys(filter(str.isidentifier, words)))
    walk.record_call(node, callee, arguments, flow)


def _read_command_name(walk: SyntaxWalker, node: int, flow: ValueFlow) -> str:
    """Return the name of a command; empty if a variable expands to it, which is then read."""
    if node + 1 < walk.stops[node] and walk.kinds[node + 1] != "word":
        walk.visit(node, flow)
        return ""
    return walk.text(node)


def _visit_expansion(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `$1` and `$@`, which keep their `$`."""
    name_node = node + 1
    if name_node >= walk.stops[node]:
        return False
    name = walk.text(name_node)
    if walk.kinds[name_node] != "special_variable_name" and not name.isdigit():
        return False
    walk.record_read(f"${name}", flow)
    walk.visit_all((child for child in walk.children(node) if child != name_node), flow)
    return True


def _visit_assignment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    name_node, value_node = walk.find_child(node, "name"), walk.find_child(node, "value")
    if name_node == NO_NODE:
        return False
    end = walk.starts[value_node] if value_node != NO_NODE else walk.ends[node]
    if walk.data[walk.ends[name_node] : end].strip().startswith(b"+="):
        visit_assignment(walk, node, flow, _AUGMENTED_ASSIGNMENT)
        return True
    source_name = _read_expanded_name(walk, value_node) if value_node != NO_NODE else ""
    if source_name and walk.kinds[name_node] == "variable_name":
        walk.frame.aliases[f"{walk.text(name_node)}={source_name}"] = None
    return False


def _read_expanded_name(syntax: SyntaxTree, node: int) -> str:
    """Return the variable that an expansion consists of: `$x`, `${x}`, `"$x"`."""
    text = syntax.text(node).strip('"')
    while syntax.kinds[node] in _EXPANSION_KINDS and syntax.stops[node] > node + 1:
        node += 1
    name = syntax.text(node)
    is_variable = syntax.kinds[node] == "variable_name" and name.isidentifier()
    return name if is_variable and text in (f"${name}", f"${{{name}}}") else ""


def _visit_arithmetic(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `((x += 1))`; in a test `=` compares."""
    left_node, right_node = walk.find_child(node, "left"), walk.find_child(node, "right")
    if NO_NODE in (left_node, right_node) or walk.kinds[left_node] not in ("variable_name", "subscript"):
        return False
    operator = walk.data[walk.ends[left_node] : walk.starts[right_node]].strip()
    if not operator.endswith(b"=") or operator in _ARITHMETIC_COMPARISONS:
        return False
    visit_assignment(walk, node, flow, _ARITHMETIC_ASSIGNMENT if operator == b"=" else _ARITHMETIC_UPDATE)
    return True


def _visit_declaration(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `local x`, which assigns nothing, and `export x`, which exports it."""
    first_word = walk.data[walk.starts[node] : walk.ends[node]].split(None, 1)[:1]
    is_exported = first_word == [b"export"]
    for child in walk.children(node):
        kind = walk.kinds[child]
        name_node = walk.find_child(child, "name") if kind == "variable_assignment" else child
        is_name = name_node != NO_NODE and walk.kinds[name_node] in ("variable_name", "word")
        if is_exported and is_name and not walk.text(name_node).startswith("-"):
            walk.exports[walk.text(name_node)] = None
        if kind == "variable_name" and is_exported:
            walk.frame.reads[walk.text(child)] = None
        elif kind != "variable_name":
            walk.visit(child, None)


def _visit_if(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `if` and `elif`; the commands after `then` do not always run."""
    outer_block = walk.block_number
    walk.frame.branches += 1
    for child in walk.children(node):
        if (kind := walk.kinds[child]) == "then":
            walk.frame.blocks += 1
            walk.block_number = walk.frame.blocks
        elif kind in ("elif_clause", "else_clause"):
            walk.block_number = outer_block
            walk.visit_arms([child])
        else:
            walk.visit(child, None)
    walk.block_number = outer_block


def _visit_case_item(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a case item; `*)` is the default."""
    first_child = node + 1
    if first_child >= walk.stops[node] or walk.text(first_child) != "*":
        return False
    walk.visit_arm(node, flow)
    return True


def _visit_raw_string(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    if flow is not None:
        flow.text += walk.text(node)[1:-1][:120]


SHELL = load_table(
    "shell",
    hooks={
        "command": _visit_command,
        "simple_expansion expansion": _visit_expansion,
        "variable_assignment": _visit_assignment,
        "binary_expression": _visit_arithmetic,
        "declaration_command": _visit_declaration,
        "if_statement elif_clause": _visit_if,
        "case_item": _visit_case_item,
        "raw_string": _visit_raw_string,
    },
)

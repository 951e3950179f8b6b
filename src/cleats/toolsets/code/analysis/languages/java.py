"""The language table of Java."""

import re

from cleats.toolsets.code.analysis.languages import assignments, grammar_workarounds, table
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_IMPORT_MODULE_PATTERN = re.compile(r"import\s+module\s+([^;]+)")
_INSTANCEOF_ASSIGNMENT = table.AssignmentSyntax(left="name", right="left", type="right")


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
    if frame.kind == "method" and parent.parent is None:
        # In a file without a class, methods do not belong to a named type.
        frame.kind = "function"
    if frame.visibility:
        return
    if parent.kind == "enum" and frame.kind == "constructor":
        frame.visibility = "private"
    elif parent.kind == "interface":
        frame.visibility = "public"
    elif parent.parent is None or parent.kind in table.TYPE_KINDS:
        frame.visibility = "package"


def _visit_throws_clause(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    for child in walk.children(node):
        walk.frame.throws[walk.text(child)] = None
        walk.record_uses(child)


def _bind_pattern(walk: SyntaxWalker, node: int, _flow: ValueFlow | None = None) -> list[str]:
    """Bind the names in a pattern to what they match; the name before the parentheses is a type."""
    frame = walk.frame
    names: list[str] = []
    for descendant in range(node, walk.stops[node]):
        if walk.kinds[descendant] == "identifier":
            if walk.kinds[walk.parents[descendant]] == "record_pattern":
                frame.uses[walk.text(descendant)] = None
            else:
                names.append(walk.text(descendant))
        elif walk.kinds[descendant] in walk.language.type_names:
            frame.uses[walk.text(descendant)] = None
    frame.writes.update(dict.fromkeys(names))
    return names


def _visit_switch_label(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit `case null, default`, where the grammar takes `default` for a name."""
    walk.visit_all(child for child in walk.children(node) if walk.text(child) != "default")


def _visit_instanceof(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `o instanceof String s`, which assigns `o` to `s`; a record pattern binds its parts."""
    if walk.find_child(node, "name") != NO_NODE:
        assignments.visit_assignment(walk, node, flow, _INSTANCEOF_ASSIGNMENT)
        return True
    value, pattern = walk.find_child(node, "left"), walk.find_child(node, "pattern")
    if NO_NODE in (value, pattern):
        return False
    with walk.open_step(node, _bind_pattern(walk, pattern)) as value_flow:
        walk.visit(value, value_flow)
    if flow is not None:
        flow.names += value_flow.names
    return True


def _visit_method_reference(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `Type::method` as a name."""
    name = "".join(walk.text(node).split())
    if "(" in name:
        return False
    walk.record_read(name, flow)
    return True


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    if (path := syntax.find_child(node, "scoped_identifier", "identifier")) == NO_NODE:
        return []
    if match := _IMPORT_MODULE_PATTERN.match(syntax.text(node)):
        return ["".join(match[1].split())]
    wildcard = ".*" if syntax.find_child(node, "asterisk") != NO_NODE else ""
    return ["".join(syntax.text(path).split()) + wildcard]


JAVA = table.load_table(
    "java",
    settle=_adjust_declaration,
    made=lambda _syntax, _node: "",
    imports={"import_declaration": _read_imports},
    hooks={
        "throws": _visit_throws_clause,
        "variable_declarator": assignments.record_outer_type,
        "assignment_expression": assignments.visit_plain_or_augmented,
        "instanceof_expression": _visit_instanceof,
        "method_reference": _visit_method_reference,
        "pattern": _bind_pattern,
        "switch_label": _visit_switch_label,
        "labeled_statement": lambda walk, node, flow: walk.visit_all([*walk.children(node)][1:], flow),
    },
    ease=grammar_workarounds.rewrite_java,
    finish=SyntaxWalker.export_public,
)

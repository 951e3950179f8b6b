"""Value assignments: their targets, aliases, and the types that they reveal."""

from cleats.toolsets.code.analysis.facts import Invocation, TypeFact, TypeOrigin, TypePosition
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE
from cleats.toolsets.code.analysis.languages.table import TYPE_KINDS, AssignmentSyntax
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

MAX_TYPE_CHARS = 200
"""Characters of a type that are kept; object types in TypeScript can fill pages."""

INFERRED_TYPE_WORDS = ("var", "auto")
"""Words in the position of a type that leave the type to the value."""


def visit_assignment(
    walk: SyntaxWalker, node: int, flow: ValueFlow | None, row: AssignmentSyntax | None = None
) -> None:
    """Visit an assignment: its value, targets and type, then everything else in the node.

    Pass a row where the kind alone does not determine how the value is assigned.
    """
    row = row or walk.language.assigns[walk.kinds[node]]
    left_nodes, right_node, type_node, other_nodes = _split_assignment(walk, node, row)
    saved_calls, walk.calls = walk.calls, []
    value = ValueFlow()
    if right_node != NO_NODE:
        walk.visit(right_node, value)
    targets: list[str] = []
    for left_node in left_nodes:
        if row.typed_field:
            targets.append(walk.text(left_node))
        else:
            collect_targets(walk, left_node, targets, is_written=right_node != NO_NODE)
    if row.augmented:
        walk.frame.reads.update(dict.fromkeys(targets))
        value.names += targets
    _record_types(walk, row, targets, right_node, type_node)
    if right_node != NO_NODE and targets:
        walk.record_step(node, targets, value)
        _record_alias(walk, row, targets, right_node)
    walk.calls = saved_calls
    if flow is not None:
        flow.names += targets
    if other_nodes:
        walk.visit_arms(other_nodes)


_AUGMENTED_ASSIGNMENT = AssignmentSyntax(augmented=True)


def visit_plain_or_augmented(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `+=` in grammars where `=` and `+=` have the same kind. A hook."""
    left_node, right_node = walk.find_child(node, "left"), walk.find_child(node, "right")
    if NO_NODE in (left_node, right_node):
        return False
    if walk.data[walk.ends[left_node] : walk.starts[right_node]].strip() == b"=":
        return False
    visit_assignment(walk, node, flow, _AUGMENTED_ASSIGNMENT)
    return True


def record_outer_type(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record the type in grammars where it is written once, before all of its names. A hook."""
    name_node, type_node = walk.find_child(node, "name"), walk.find_child(walk.parents[node], "type")
    if name_node != NO_NODE:
        record_variable_type(walk, walk.text(name_node), type_node)
    return False


def _split_assignment(walk: SyntaxWalker, node: int, row: AssignmentSyntax) -> tuple[list[int], int, int, list[int]]:
    language, types = walk.language, walk.language.types
    kinds, fields, stops = walk.kinds, walk.fields, walk.stops
    left_label, right_label = row.left, row.right
    left_nodes: list[int] = []
    other_nodes: list[int] = []
    right_node = type_node = NO_NODE
    child, stop = node + 1, stops[node]
    while child < stop:
        field, kind = fields[child], kinds[child]
        if left_label in (field, kind):
            left_nodes.append(child)
        elif right_node == NO_NODE and right_label and right_label in (field, kind):
            right_node = child
        elif field == row.type or kind in types:
            type_node = child
        elif (
            right_node == NO_NODE
            and not right_label
            and not (kind in language.comments or kind in language.modifier_lists or kind in language.ignored)
        ):
            right_node = child
        else:
            other_nodes.append(child)
        child = stops[child]
    return left_nodes, right_node, type_node, other_nodes


def collect_targets(walk: SyntaxWalker, node: int, targets: list[str], *, is_written: bool = True) -> None:
    """Collect every name in a pattern that receives a value."""
    language, frame = walk.language, walk.frame
    kind = walk.kinds[node]
    if walk.fields[node] == "type" or kind in language.types:
        walk.record_uses(node)
    elif walk.fields[node] == "size":
        walk.visit(node, None)
    elif kind in language.names:
        name = walk.text(node)
        targets.append(name)
        if is_written:
            frame.writes[name] = None
    elif kind in language.members or kind in language.indexes:
        name = walk.read_name(node, ValueFlow())
        targets.append(name)
        if is_written:
            frame.writes[name] = frame.mutates[name] = None
    elif kind in language.assigns:
        _collect_default_targets(walk, node, targets)
    elif kind in language.calls:
        walk.visit_call(node, None)
    else:
        for child in walk.children(node):
            collect_targets(walk, child, targets, is_written=is_written)


def _collect_default_targets(walk: SyntaxWalker, node: int, targets: list[str]) -> None:
    row = walk.language.assigns[walk.kinds[node]]
    left_nodes, right_node, _type_node, _others = _split_assignment(walk, node, row)
    for left_node in left_nodes:
        collect_targets(walk, left_node, targets)
    if right_node != NO_NODE:
        walk.visit(right_node, ValueFlow())


def visit_type(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Record the names in a type as used."""
    walk.record_uses(node)


def visit_update(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit an update such as `i++`."""
    targets: list[str] = []
    collect_targets(walk, node, targets)
    walk.frame.reads.update(dict.fromkeys(targets))
    if flow is not None:
        flow.names += targets


def visit_increment(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit `i++`, but not `-i`, in grammars where both have the same kind. A hook."""
    data, start, end = walk.data, walk.starts[node], walk.ends[node]
    if not {data[start : start + 2], data[end - 2 : end]} & {b"++", b"--"}:
        return False
    visit_update(walk, node, flow)
    return True


def unwrap_single(walk: SyntaxWalker, node: int) -> int:
    """Return the only element of a list of one; any other node itself."""
    if walk.kinds[node] in walk.language.lists and node + 1 < walk.stops[node]:
        return node + 1 if walk.stops[node + 1] == walk.stops[node] else node
    return node


def _record_alias(walk: SyntaxWalker, row: AssignmentSyntax, targets: list[str], right_node: int) -> None:
    if row.augmented or row.loop or len(targets) != 1:
        return
    right_node = unwrap_single(walk, right_node)
    kind, language = walk.kinds[right_node], walk.language
    if kind in language.names or kind in language.members:
        name = "".join(walk.text(right_node).split())
        for separator in ("?.", "?->", "->"):
            name = name.replace(separator, ".")
        if not {"(", "[", "{"}.intersection(name):
            walk.frame.aliases[f"{targets[0]}={name}"] = None


def _record_types(
    walk: SyntaxWalker, row: AssignmentSyntax, targets: list[str], right_node: int, type_node: int
) -> None:
    walk.record_uses(type_node)
    type_name = read_type(walk, type_node)
    type_name = "" if type_name in INFERRED_TYPE_WORDS else type_name
    can_infer = right_node != NO_NODE and not row.loop and not row.augmented and len(targets) == 1
    if not type_name and not can_infer:
        return
    for name in targets:
        where: TypePosition = "field" if row.typed_field or is_field(walk, name) else "local"
        if type_name:
            record_type(walk, where, name, type_name, "annotation")
        elif can_infer:
            infer_type(walk, right_node, where, name)


def record_variable_type(walk: SyntaxWalker, name: str, type_node: int) -> None:
    """Record the declared type of a field or a local variable, if there is one."""
    if (text := read_type(walk, type_node)) not in INFERRED_TYPE_WORDS:
        record_type(walk, "field" if is_field(walk, name) else "local", name, text, "annotation")


def is_field(walk: SyntaxWalker, name: str) -> bool:
    """Return whether a name belongs to an object rather than to the current code."""
    return name.startswith(("self.", "this.", "@", "$this.")) or walk.frame.kind in TYPE_KINDS


def infer_type(walk: SyntaxWalker, node: int, where: TypePosition, name: str, origin: TypeOrigin = "literal") -> None:
    """Record the type that a value reveals, if any: that of a literal, or of a new object."""
    language = walk.language
    node = unwrap_single(walk, node)
    if (kind := walk.kinds[node]) in language.literals:
        record_type(walk, where, name, language.literals[kind], origin)
    elif kind in language.casts:
        type_label = language.casts[kind]
        type_node = walk.find_child(node, type_label) if type_label else walk.last_child(node)
        text = read_type(walk, type_node)
        record_type(walk, where, name, "" if text == "const" else text, "call")
    elif language.made is not None and (type_name := language.made(walk, node)):
        record_type(walk, where, name, " ".join(type_name.split())[:MAX_TYPE_CHARS], "call")
    elif kind in language.calls:
        row = language.calls[kind]
        if (function := walk.find_child(node, *row.function)) == NO_NODE:
            return
        class_name = walk.text(function)
        is_class = row.prefix or (
            language.made is None and class_name.rpartition(".")[2].rpartition("::")[2][:1].isupper()
        )
        if is_class and len(class_name) < MAX_TYPE_CHARS and "(" not in class_name:
            record_type(walk, where, name, class_name, "call")


def read_type(walk: SyntaxWalker, node: int) -> str:
    """Return a type as written, on one line."""
    text = walk.text(node).removeprefix("->").removeprefix(":")
    return " ".join(text.split())[:MAX_TYPE_CHARS]


def record_type(walk: SyntaxWalker, where: TypePosition, name: str, type_name: str, origin: TypeOrigin) -> None:
    """Record a type, unless it is empty."""
    if type_name:
        walk.frame.types[TypeFact(where, name, type_name, origin)] = None


def visit_membership(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Record `x in xs` as a call of `in`: code that tests `x` first may use it afterwards."""
    left_node, right_node, stop = node + 1, walk.stops[node + 1], walk.stops[node]
    if right_node >= stop or walk.stops[right_node] != stop:
        return False
    if not walk.data[walk.ends[left_node] : walk.starts[right_node]].rstrip().endswith(b"in"):
        return False
    if flow is None:
        return walk.visit_as_statement(visit_membership, node)
    arguments = [walk.read_argument(left_node), walk.read_argument(right_node)]
    if arguments[0].names:
        walk.calls.append(Invocation("in", arguments, walk.line_number(walk.starts[node])))
    return True

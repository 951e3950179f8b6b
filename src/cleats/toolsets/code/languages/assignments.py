"""Where values go: targets of assignments, what they alias, and the types they give away."""

from cleats.toolsets.code.facts import Origin, Typed, Where
from cleats.toolsets.code.languages.syntax import NONE
from cleats.toolsets.code.languages.table import TYPES, Assign
from cleats.toolsets.code.languages.walk import Flow, Walk

LONGEST_TYPE = 200
"""Characters of a type that are kept; object types in TypeScript can fill pages."""

UNTYPED = ("var", "auto")
"""Words in the place of a type that leave it to the value."""


def assign(walk: Walk, node: int, flow: Flow | None, row: Assign | None = None) -> None:
    """An assignment: its value, its targets, its type; then whatever else is in the node.

    A row is given where the kind alone does not say how the value is assigned.
    """
    syntax = walk.syntax
    row = row or walk.language.assigns[syntax.kinds[node]]
    lefts, right, type_node, others = _parts(walk, node, row)
    saved, walk.calls = walk.calls, []
    value = Flow()
    if right != NONE:
        walk.visit(right, value)
    targets: list[str] = []
    for left in lefts:
        if row.typed_field:
            targets.append(syntax.text(left))
        else:
            target(walk, left, targets, written=right != NONE)
    if row.augmented:
        walk.frame.reads.update(dict.fromkeys(targets))
        value.names += targets
    _types(walk, row, targets, right, type_node)
    if right != NONE and targets:
        walk.step(node, targets, value)
        _alias(walk, row, targets, right)
    walk.calls = saved
    if flow is not None:
        flow.names += targets
    if others:
        walk.arms(others)


_AUGMENTED = Assign(augmented=True)


def assign_or_augment(walk: Walk, node: int, flow: Flow | None) -> bool:
    """A hook for grammars in which `=` and `+=` are of one kind."""
    syntax = walk.syntax
    left, right = syntax.child(node, "left"), syntax.child(node, "right")
    if NONE in (left, right):
        return False
    if syntax.data[syntax.ends[left] : syntax.starts[right]].strip() == b"=":
        return False
    assign(walk, node, flow, _AUGMENTED)
    return True


def take_outer_type(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A hook for grammars in which a type stands once, before all names that are of it."""
    syntax = walk.syntax
    name, type_node = syntax.child(node, "name"), syntax.child(syntax.parents[node], "type")
    if NONE not in (name, type_node):
        text, named = type_text(walk, type_node), syntax.text(name)
        if text not in UNTYPED:
            where: Where = "field" if is_field(walk, named) else "local"
            add_type(walk, where, named, text, "annotation")
    return False


def _parts(walk: Walk, node: int, row: Assign) -> tuple[list[int], int, int, list[int]]:
    syntax, types = walk.syntax, walk.language.types
    kinds, fields, stops = syntax.kinds, syntax.fields, syntax.stops
    named_left, named_right = row.left, row.right
    lefts: list[int] = []
    others: list[int] = []
    right = type_node = NONE
    child, stop = node + 1, stops[node]
    while child < stop:
        field, kind = fields[child], kinds[child]
        if named_left in (field, kind):
            lefts.append(child)
        elif right == NONE and named_right and named_right in (field, kind):
            right = child
        elif field == row.type or kind in types:
            type_node = child
        elif right == NONE and not named_right and not _is_beside(walk, kind):
            right = child
        else:
            others.append(child)
        child = stops[child]
    return lefts, right, type_node, others


def _is_beside(walk: Walk, kind: str) -> bool:
    """Whether something in an assignment is neither a target nor the value."""
    language = walk.language
    return kind in language.comments or kind in language.modifier_lists or kind in language.ignored


def target(walk: Walk, node: int, into: list[str], *, written: bool = True) -> None:
    """Everything in a pattern that receives a value."""
    syntax, language, frame = walk.syntax, walk.language, walk.frame
    kind = syntax.kinds[node]
    if syntax.fields[node] == "type" or kind in language.types:
        walk.use(node)
    elif syntax.fields[node] == "size":
        walk.visit(node, None)
    elif kind in language.names:
        name = syntax.text(node)
        into.append(name)
        if written:
            frame.writes[name] = None
    elif kind in language.members or kind in language.indexes:
        name = walk.path(node, Flow())
        into.append(name)
        if written:
            frame.writes[name] = frame.mutates[name] = None
    elif kind in language.assigns:
        _defaulted(walk, node, into)
    elif kind in language.calls:
        walk.call(node, None)
    else:
        for child in syntax.children(node):
            target(walk, child, into, written=written)


def _defaulted(walk: Walk, node: int, into: list[str]) -> None:
    row = walk.language.assigns[walk.syntax.kinds[node]]
    lefts, right, _type_node, _others = _parts(walk, node, row)
    for left in lefts:
        target(walk, left, into)
    if right != NONE:
        walk.visit(right, Flow())


def update(walk: Walk, node: int, flow: Flow | None) -> None:
    """`i++`."""
    targets: list[str] = []
    target(walk, node, targets)
    walk.frame.reads.update(dict.fromkeys(targets))
    if flow is not None:
        flow.names += targets


def remove(walk: Walk, node: int, _flow: Flow | None) -> None:
    """`del x[0]`."""
    target(walk, node, [])


def sole(walk: Walk, node: int) -> int:
    """What a list of one thing stands for; any other node itself."""
    syntax = walk.syntax
    if syntax.kinds[node] in walk.language.lists and node + 1 < syntax.stops[node]:
        return node + 1 if syntax.stops[node + 1] == syntax.stops[node] else node
    return node


def _alias(walk: Walk, row: Assign, targets: list[str], right: int) -> None:
    if row.augmented or row.loop or len(targets) != 1:
        return
    right = sole(walk, right)
    kind, language = walk.syntax.kinds[right], walk.language
    if kind in language.names or kind in language.members:
        name = "".join(walk.syntax.text(right).split())
        for separator in ("?.", "?->", "->"):
            name = name.replace(separator, ".")
        if not {"(", "[", "{"}.intersection(name):
            walk.frame.aliases[f"{targets[0]}={name}"] = None


def _types(walk: Walk, row: Assign, targets: list[str], right: int, type_node: int) -> None:
    if type_node != NONE:
        walk.use(type_node)
    given = type_text(walk, type_node) if type_node != NONE else ""
    given = "" if given in UNTYPED else given
    infers = right != NONE and not row.loop and not row.augmented and len(targets) == 1
    if not given and not infers:
        return
    for name in targets:
        where: Where = "field" if row.typed_field or is_field(walk, name) else "local"
        if given:
            add_type(walk, where, name, given, "annotation")
        elif infers:
            infer(walk, right, where, name)


def is_field(walk: Walk, name: str) -> bool:
    """Whether a name belongs to an object rather than to the code at hand."""
    return name.startswith(("self.", "this.", "@", "$this.")) or walk.frame.kind in TYPES


def infer(walk: Walk, node: int, where: Where, name: str, origin: Origin = "literal") -> None:
    """The type that a value gives away, if it does: a literal's, or that of a new object."""
    language, syntax = walk.language, walk.syntax
    node = sole(walk, node)
    kind = syntax.kinds[node]
    if kind in language.literals:
        add_type(walk, where, name, language.literals[kind], origin)
    elif kind in language.casts:
        part = language.casts[kind]
        said = syntax.child(node, part) if part else syntax.last(node)
        text = type_text(walk, said) if said != NONE else ""
        add_type(walk, where, name, "" if text == "const" else text, "call")
    elif language.made is not None and (given := language.made(syntax, node)):
        add_type(walk, where, name, " ".join(given.split())[:LONGEST_TYPE], "call")
    elif kind in language.calls:
        row = language.calls[kind]
        function = syntax.child(node, *row.function)
        if function == NONE:
            return
        made = syntax.text(function)
        is_class = row.prefix or (
            language.made is None and made.rpartition(".")[2].rpartition("::")[2][:1].isupper()
        )
        if is_class and len(made) < LONGEST_TYPE and "(" not in made:
            add_type(walk, where, name, made, "call")


def type_text(walk: Walk, node: int) -> str:
    """A type as written, on one line."""
    text = walk.syntax.text(node).removeprefix("->").removeprefix(":")
    return " ".join(text.split())[:LONGEST_TYPE]


def add_type(walk: Walk, where: Where, name: str, type_name: str, origin: Origin) -> None:
    """Note a type."""
    if type_name:
        walk.frame.types[Typed(where, name, type_name, origin)] = None

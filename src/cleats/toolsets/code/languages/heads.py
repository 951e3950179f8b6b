"""Declarations: what their heads say, and the frames they open."""

from msgspec.structs import replace

from cleats.toolsets.code.facts import Typed
from cleats.toolsets.code.languages import remarks
from cleats.toolsets.code.languages.assignments import assign, infer, sole, type_text
from cleats.toolsets.code.languages.frame import VISIBILITIES, Frame
from cleats.toolsets.code.languages.syntax import NONE
from cleats.toolsets.code.languages.table import TYPES, Carrier, Declares, Parameter
from cleats.toolsets.code.languages.walk import Action, Flow, Walk, unique

LONGEST_HEAD = 400
"""Characters of a signature."""

LONGEST_BASE = 120

BLOCKS = ("block", "body", "statement")
"""What is in the kinds of bodies that are statements; any other body is an expression."""

NOT_NAMED = ("right", "value", "default", "size")
"""Fields of a parameter that name none."""


def declaration(walk: Walk, node: int, flow: Flow | None, *, otherwise: Action) -> None:
    """A node that may declare something; if it does not, it is dealt with as anything else."""
    syntax, language = walk.syntax, walk.language
    kind = syntax.kinds[node]
    carrier = language.carriers.get(kind)
    head, row = node, language.declares.get(kind)
    if carrier is not None:
        value = syntax.child(node, carrier.value)
        value = sole(walk, value) if value != NONE else value
        valued = syntax.kinds[value] if value != NONE else ""
        if valued in language.closures:
            head, row = value, _carried(language.declares.get(valued), carrier)
        elif valued in language.declares:
            head, row = value, _carried(language.declares[valued], carrier)
    if row is None or not _counts(walk, node, row):
        otherwise(walk, node, flow)
        return
    name = _name_of(walk, node, head, row)
    if not name:
        otherwise(walk, node, flow)
        return
    declare(walk, node, head, row, name)


def _carried(row: Declares | None, carrier: Carrier) -> Declares:
    row = row or Declares(carrier.kind, parameters=("parameters", "parameter"))
    inside = "method" if row.kind == "function" else ""
    return replace(row, inside=inside, name=(carrier.name,), lines=carrier.lines)


def _counts(walk: Walk, node: int, row: Declares) -> bool:
    if row.top and (walk.frame is not walk.module or walk.silent):
        return False
    syntax = walk.syntax
    if row.lines <= 1:
        return True
    return syntax.data.count(b"\n", syntax.starts[node], syntax.ends[node]) >= row.lines - 1


def _name_of(walk: Walk, node: int, head: int, row: Declares) -> str:
    syntax, language = walk.syntax, walk.language
    named = syntax.child(node, *row.name)
    if named == NONE and head != node:
        named = syntax.child(head, *row.name)
    if named == NONE:
        return "default" if syntax.child(syntax.parents[node], "default") != NONE else ""
    kind = syntax.kinds[named]
    if kind in language.targets:
        return ""
    if kind in language.members:
        return walk.path(named, Flow())
    if row.kind == "constant" and kind not in language.names:
        return ""
    return " ".join(syntax.text(named).split()).strip("\"'`")[:200]


def declare(walk: Walk, node: int, head: int, row: Declares, name: str) -> Frame:
    """Open a frame for a declaration, read its head and its body, close it."""
    syntax, around = walk.syntax, walk.frame
    outermost, layers = _extent(walk, node)
    kind = row.inside if row.inside and around.kind in TYPES else row.kind
    frame = Frame(kind, name, syntax.starts[outermost], syntax.ends[outermost], around)
    walk.language.begin(walk, head, frame)
    remarks.take_doc(walk, outermost, frame)
    saved = walk.calls, walk.silent, walk.block
    walk.frame, walk.calls, walk.silent, walk.block = frame, [], 0, 0
    for layer in layers if head == node else [*layers, head]:
        _words(walk, layer, frame)
    body = syntax.child(head, *row.body)
    frame.signature = _signature(walk, outermost, node, head, body)
    if head == node and syntax.kinds[node] in walk.language.assigns:
        assign(walk, node, None)
    else:
        _read(walk, head, row, body, is_named=head == node)
    frame.visibility = frame.visibility or around.section
    walk.language.settle(frame, around)
    walk.calls, walk.silent, walk.block = saved
    walk.frame = around
    around.inner.append((frame.start, frame.end))
    walk.frames.append(frame)
    return frame


def _extent(walk: Walk, node: int) -> tuple[int, list[int]]:
    """The outermost node that is all about this declaration, and the layers with words about it.

    `export const a = …, b = …` says `export` of both, and is the range of neither.
    """
    syntax, language = walk.syntax, walk.language
    layers, outermost = [node], node
    while True:
        parent = syntax.parents[layers[0]]
        if parent == NONE or syntax.kinds[parent] not in language.wraps:
            return outermost, layers
        same = syntax.kinds[layers[0]]
        kinds = [syntax.kinds[child] for child in syntax.children(parent)]
        rivals = [kind == same or kind in language.declares for kind in kinds]
        alone = sum(rivals) + sum(kind in language.carriers for kind in kinds if kind != same) == 1
        if alone and outermost == layers[0]:
            outermost = parent
        layers.insert(0, parent)


def _words(walk: Walk, node: int, frame: Frame) -> None:
    """Modifiers and decorators among the children of a layer of a head."""
    syntax, language = walk.syntax, walk.language
    named = syntax.child(node, "name")
    for child in syntax.children(node):
        kind = syntax.kinds[child]
        if kind in language.modifier_lists:
            _words(walk, child, frame)
        if kind in language.modifiers:
            _modifier(language.modifiers[kind] or syntax.text(child), frame)
        elif kind in language.decorators and not NONE < named < child:
            _decorator(walk, child, frame)


def _modifier(word: str, frame: Frame) -> None:
    if word == "async":
        frame.is_async = True
    elif word == "generator":
        frame.is_generator = True
    else:
        frame.modifiers[word] = None
        if word in VISIBILITIES:
            frame.visibility = word


def _decorator(walk: Walk, node: int, frame: Frame) -> None:
    text = remarks.decorator(walk, node)
    if text and text not in frame.decorators:
        frame.decorators.append(text)
    walk.use(node)


def _signature(walk: Walk, outermost: int, node: int, head: int, body: int) -> str:
    syntax = walk.syntax
    start = syntax.starts[outermost]
    for layer in dict.fromkeys((outermost, node, head)):
        start = _undecorated(walk, layer, start)
    end = syntax.starts[body] if body != NONE else syntax.ends[node]
    if end <= start:
        end = syntax.ends[node]
    text = remarks.code(walk, outermost, start, min(end, start + 4 * LONGEST_HEAD))
    for mark in ("{", "=>", "->", ":", "=", ";"):
        text = text.removesuffix(mark).rstrip()
    return text[:LONGEST_HEAD]


def _undecorated(walk: Walk, layer: int, start: int) -> int:
    """Where the first word after the decorators is that a layer of a head begins with.

    `class [[nodiscard]] Box` begins with a word, which is no part of the tree.
    """
    syntax, language = walk.syntax, walk.language
    for child in syntax.children(layer):
        kind = syntax.kinds[child]
        if syntax.data[start : syntax.starts[child]].strip():
            break
        if kind in language.comments:
            start = max(start, syntax.ends[child])
        elif kind in language.decorators or kind in language.modifier_lists:
            start = max(start, _decorated(walk, child))
        elif syntax.starts[child] > start:
            break
    return start


def _decorated(walk: Walk, node: int) -> int:
    """Where decorators end that are at the beginning of a part of a head; 0 without any."""
    syntax, language, end = walk.syntax, walk.language, 0
    if syntax.kinds[node] in language.decorators:
        return syntax.ends[node]
    if syntax.kinds[node] not in language.modifier_lists:
        return 0
    for child in syntax.children(node):
        decorated = _decorated(walk, child)
        if not decorated:
            return end
        end = decorated
    return syntax.ends[node] if end else 0


def _read(walk: Walk, head: int, row: Declares, body: int, *, is_named: bool) -> None:
    syntax, language, frame = walk.syntax, walk.language, walk.frame
    result = syntax.child(head, *row.result)
    if result != NONE:
        frame.return_type = type_text(walk, result)
        frame.types[Typed("return", "", frame.return_type, "annotation")] = None
        frame.returns = frame.return_type not in language.void
        walk.use(result)
    named = syntax.child(head, *(row.name if is_named else ("name",)))
    for child in syntax.children(head):
        field, kind = syntax.fields[child], syntax.kinds[child]
        if child in (named, result) or kind in language.modifier_lists:
            continue
        if field in row.parameters or kind in row.parameters:
            parameters(walk, child, frame)
        elif field in row.bases or kind in row.bases:
            _bases(walk, child, row, frame)
        elif child == body:
            _body(walk, head, body, frame)
        elif kind not in language.decorators and kind not in language.modifiers:
            walk.visit(child, None)


def _body(walk: Walk, head: int, body: int, frame: Frame) -> None:
    syntax, language = walk.syntax, walk.language
    kind = syntax.kinds[body]
    may_be_value = syntax.kinds[head] in language.closures or syntax.kinds[head] in language.endless
    if may_be_value and not any(word in kind for word in BLOCKS):
        frame.returns = True
        walk.give(body)
        return
    doc = language.docstring(syntax, body)
    if doc != NONE:
        remarks.set_doc(walk, doc, frame)
    walk.visit(body, None)


def _bases(walk: Walk, node: int, row: Declares, frame: Frame) -> None:
    syntax, language = walk.syntax, walk.language
    kind = syntax.kinds[node]
    if node + 1 >= syntax.stops[node] or kind in language.types or kind in language.type_names:
        _base(walk, node, frame)
        return
    for child in syntax.children(node):
        kind = syntax.kinds[child]
        if kind in row.bases:
            _bases(walk, child, row, frame)
        elif kind in language.not_bases or kind in language.comments:
            walk.use(child)
        else:
            _base(walk, child, frame)


def _base(walk: Walk, node: int, frame: Frame) -> None:
    text = " ".join(walk.syntax.text(node).split())[:LONGEST_BASE]
    if text not in frame.bases:
        frame.bases.append(text)
    walk.use(node)


def parameters(walk: Walk, node: int, frame: Frame | None) -> None:
    """The parameters of a declaration, or of a function without a name (then without frame)."""
    syntax, language = walk.syntax, walk.language
    if syntax.kinds[node] in language.names:
        _parameter(walk, node, None, frame)
        return
    for child in syntax.children(node):
        kind = syntax.kinds[child]
        if kind in language.comments:
            walk.visit(child, None)
        elif kind in language.parameters:
            _parameter(walk, child, language.parameters[kind], frame)
        elif kind in language.names or kind in language.targets:
            _parameter(walk, child, None, frame)


def _parameter(walk: Walk, node: int, row: Parameter | None, frame: Frame | None) -> None:
    syntax = walk.syntax
    if row is None:
        names, type_node, default = _named_in(walk, node), NONE, NONE
    else:
        names = []
        for child in syntax.children(node):
            if syntax.fields[child] in row.name or syntax.kinds[child] in row.name:
                names += _named_in(walk, child)
        type_node = syntax.child(node, *row.type)
        default = syntax.child(node, *row.default)
    if type_node != NONE:
        walk.use(type_node)
    if frame is not None:
        frame.params += [name for name in unique(names) if name not in frame.params]
        _parameter_types(walk, names, type_node, default, frame)
    if default != NONE:
        walk.visit(default, None)


def _parameter_types(
    walk: Walk, names: list[str], type_node: int, default: int, frame: Frame
) -> None:
    for name in names:
        if type_node != NONE:
            frame.types[Typed("param", name, type_text(walk, type_node), "annotation")] = None
        elif default != NONE and len(names) == 1:
            infer(walk, default, "param", name, "default")


def _named_in(walk: Walk, node: int) -> list[str]:
    syntax, language = walk.syntax, walk.language
    found: list[str] = []
    at = node
    while at < syntax.stops[node]:
        kind = syntax.kinds[at]
        if kind in language.types or (
            # `{size: width}` names what is on the right.
            syntax.fields[at] in NOT_NAMED and syntax.kinds[syntax.parents[at]] != "pair_pattern"
        ):
            at = syntax.stops[at]
            continue
        if kind in language.names:
            found.append(syntax.text(at))
        at += 1
    return found


def closure(walk: Walk, node: int, _flow: Flow | None) -> None:
    """A function without a name: its body belongs to the chunk around it."""
    syntax = walk.syntax
    saved, walk.calls = walk.calls, []
    walk.silent += 1
    for child in syntax.children(node):
        if syntax.fields[child] in ("parameters", "parameter"):
            parameters(walk, child, None)
        elif syntax.fields[child] != "name":
            walk.visit(child, None)
    walk.silent -= 1
    walk.calls = saved

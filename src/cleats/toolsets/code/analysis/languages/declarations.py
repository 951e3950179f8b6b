"""Declarations: the contents of their headers, and the frames they open."""

from msgspec.structs import replace

from cleats.toolsets.code.analysis.facts import TypeFact
from cleats.toolsets.code.analysis.languages import comments
from cleats.toolsets.code.analysis.languages.assignments import infer_type, read_type, unwrap_single, visit_assignment
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame
from cleats.toolsets.code.analysis.languages.table import (
    CONSTANT_NAME_PATTERN,
    MIN_CONSTANT_LINES,
    TYPE_KINDS,
    DeclarationSyntax,
    ParameterSyntax,
)
from cleats.toolsets.code.analysis.languages.walk import NodeAction, SyntaxWalker, ValueFlow

MAX_SIGNATURE_CHARS = 400
"""Characters of a signature that are kept."""

MAX_BASE_CHARS = 120

VISIBILITY_WORDS = frozenset({"public", "protected", "private", "internal", "package"})

STATEMENT_BODY_WORDS = ("block", "body", "statement")
"""Words in the kinds of bodies that consist of statements; any other body is an expression."""

UNNAMED_PARAMETER_FIELDS = ("right", "value", "default", "size")
"""Fields of a parameter that do not contain its name."""


def visit_declaration(walk: SyntaxWalker, node: int, flow: ValueFlow | None, *, otherwise: NodeAction) -> None:
    """Read a declaration if the node is one; otherwise apply the other action."""
    language = walk.language
    kind = walk.kinds[node]
    carrier = language.carriers.get(kind)
    header, row = node, language.declares.get(kind)
    if carrier is not None:
        value_node = unwrap_single(walk, walk.find_child(node, carrier.value))
        if (value_kind := walk.kinds[value_node]) in language.closures or value_kind in language.declares:
            base_row = DeclarationSyntax(carrier.kind, parameters=("parameters", "parameter"))
            base_row = language.declares.get(value_kind, base_row)
            inside = "method" if base_row.kind == "function" else ""
            header, row = value_node, replace(base_row, inside=inside, name=(carrier.name,), lines=carrier.lines)
    if row is not None and _is_chunk(walk, node, row) and (name := _read_declared_name(walk, node, header, row)):
        read_declaration(walk, node, header, row, name)
    else:
        otherwise(walk, node, flow)


def _is_chunk(walk: SyntaxWalker, node: int, row: DeclarationSyntax) -> bool:
    """Return whether a declaration is where it counts, and long enough; one line is enough for a constant."""
    # An empty macro is a switch or guards a header.
    may_be_constant = row.kind == "constant" or (row.kind == "macro" and walk.find_child(node, *row.body) != NO_NODE)
    is_constant = may_be_constant and is_constant_name(walk.text(walk.find_child(node, *row.name)))
    is_inner = walk.frame is not walk.module and not (is_constant and walk.frame.kind in (*TYPE_KINDS, "namespace"))
    if row.top and (is_inner or walk.closure_depth):
        return False
    return is_constant or row.lines <= 1 or walk.count_lines(node) >= row.lines


def is_constant_name(name: str) -> bool:
    """Return whether a name is written like that of a constant."""
    return CONSTANT_NAME_PATTERN.fullmatch(name) is not None


def is_constant_chunk(walk: SyntaxWalker, node: int, name: str) -> bool:
    """Return whether a variable at the top level becomes a chunk: a long one, or a constant."""
    return walk.count_lines(node) >= MIN_CONSTANT_LINES or is_constant_name(name)


def _read_declared_name(walk: SyntaxWalker, node: int, header: int, row: DeclarationSyntax) -> str:
    language = walk.language
    if (name_node := walk.find_child(node, *row.name)) == NO_NODE and header != node:
        name_node = walk.find_child(header, *row.name)
    if name_node == NO_NODE:
        return "default" if walk.find_child(walk.parents[node], "default") != NO_NODE else ""
    if (kind := walk.kinds[name_node]) in language.targets:
        return ""
    if kind in language.members:
        return walk.read_name(name_node, ValueFlow())
    name = " ".join(walk.text(name_node).split()).strip("\"'`")[:200]
    return "" if row.kind == "constant" and kind not in language.names and not is_constant_name(name) else name


def read_declaration(walk: SyntaxWalker, node: int, header: int, row: DeclarationSyntax, name: str) -> Frame:
    """Open a frame for a declaration, read its header and its body, and close it."""
    parent = walk.frame
    outermost, layers = _find_extent(walk, node)
    kind = row.inside if row.inside and parent.kind in TYPE_KINDS else row.kind
    frame = Frame(kind, name, walk.starts[outermost], walk.ends[outermost], parent)
    walk.language.begin(walk, header, frame)
    comments.attach_doc_comment(walk, outermost, frame)
    saved_state = walk.calls, walk.closure_depth, walk.block_number
    walk.frame, walk.calls, walk.closure_depth, walk.block_number = frame, [], 0, 0
    for layer in layers if header == node else [*layers, header]:
        _read_modifiers(walk, layer, frame)
    body = walk.find_child(header, *row.body)
    frame.signature = _read_signature(walk, outermost, node, header, body)
    if header == node and walk.kinds[node] in walk.language.assigns:
        visit_assignment(walk, node, None)
    else:
        _read_parts(walk, header, row, body, is_named=header == node)
    frame.visibility = frame.visibility or parent.section_visibility
    walk.language.settle(frame, parent)
    walk.calls, walk.closure_depth, walk.block_number = saved_state
    walk.frame = parent
    parent.nested_ranges.append((frame.start, frame.end))
    walk.frames.append(frame)
    return frame


def _find_extent(walk: SyntaxWalker, node: int) -> tuple[int, list[int]]:
    """Return the outermost node of this declaration alone, and the layers with its modifiers.

    In `export const a = …, b = …` the `export` applies to both names, but belongs to the range of neither.
    """
    language = walk.language
    layers, outermost = [node], node
    while True:
        if (parent := walk.parents[layers[0]]) == NO_NODE or walk.kinds[parent] not in language.wraps:
            return outermost, layers
        own_kind = walk.kinds[layers[0]]
        kinds = [walk.kinds[child] for child in walk.children(parent)]
        are_declarations = [kind == own_kind or kind in language.declares for kind in kinds]
        is_only_declaration = (
            sum(are_declarations) + sum(kind in language.carriers for kind in kinds if kind != own_kind) == 1
        )
        if is_only_declaration and outermost == layers[0]:
            outermost = parent
        layers.insert(0, parent)


def _read_modifiers(walk: SyntaxWalker, node: int, frame: Frame) -> None:
    language = walk.language
    name_node = walk.find_child(node, "name")
    for child in walk.children(node):
        if (kind := walk.kinds[child]) in language.modifier_lists:
            _read_modifiers(walk, child, frame)
        if kind in language.modifiers:
            _add_modifier(language.modifiers[kind] or walk.text(child), frame)
        elif kind in language.decorators and not NO_NODE < name_node < child:
            text = comments.read_decorator(walk, child)
            if text and text not in frame.decorators:
                frame.decorators.append(text)
            walk.record_uses(child)


def _add_modifier(word: str, frame: Frame) -> None:
    if word == "async":
        frame.is_async = True
    elif word == "generator":
        frame.is_generator = True
    else:
        frame.modifiers[word] = None
        if word in VISIBILITY_WORDS:
            frame.visibility = word


def _read_signature(walk: SyntaxWalker, outermost: int, node: int, header: int, body: int) -> str:
    start = walk.starts[outermost]
    for layer in dict.fromkeys((outermost, node, header)):
        start = _skip_decorators(walk, layer, start)
    end = walk.starts[body] if body != NO_NODE else walk.ends[node]
    if end <= start:
        end = walk.ends[node]
    text = comments.read_code(walk, outermost, start, min(end, start + 4 * MAX_SIGNATURE_CHARS))
    for suffix in ("{", "=>", "->", ":", "=", ";"):
        text = text.removesuffix(suffix).rstrip()
    return text[:MAX_SIGNATURE_CHARS]


def _skip_decorators(walk: SyntaxWalker, layer: int, start: int) -> int:
    """Return the position of the first word after the leading decorators of a header layer.

    `class [[nodiscard]] Box` begins with a word that is not in the tree.
    """
    language = walk.language
    for child in walk.children(layer):
        kind = walk.kinds[child]
        if walk.data[start : walk.starts[child]].strip():
            break
        if kind in language.comments:
            start = max(start, walk.ends[child])
        elif kind in language.decorators or kind in language.modifier_lists:
            start = max(start, _find_decorators_end(walk, child))
        elif walk.starts[child] > start:
            break
    return start


def _find_decorators_end(walk: SyntaxWalker, node: int) -> int:
    """Return the end of the leading decorators of a part of a header; 0 if there are none."""
    language, end = walk.language, 0
    if walk.kinds[node] in language.decorators:
        return walk.ends[node]
    if walk.kinds[node] not in language.modifier_lists:
        return 0
    for child in walk.children(node):
        if not (child_end := _find_decorators_end(walk, child)):
            return end
        end = child_end
    return walk.ends[node] if end else 0


def _read_parts(walk: SyntaxWalker, header: int, row: DeclarationSyntax, body: int, *, is_named: bool) -> None:
    language, frame = walk.language, walk.frame
    result_node = walk.find_child(header, *row.result)
    record_return_type(walk, frame, result_node)
    walk.record_uses(result_node)
    name_node = walk.find_child(header, *(row.name if is_named else ("name",)))
    for child in walk.children(header):
        field, kind = walk.fields[child], walk.kinds[child]
        if child in (name_node, result_node) or kind in language.modifier_lists:
            continue
        if field in row.parameters or kind in row.parameters:
            read_parameters(walk, child, frame)
        elif field in row.bases or kind in row.bases:
            _read_bases(walk, child, row, frame)
        elif child == body:
            _read_body(walk, header, body, frame)
        elif kind not in language.decorators and kind not in language.modifiers:
            walk.visit(child, None)


def record_return_type(walk: SyntaxWalker, frame: Frame, result_node: int) -> None:
    """Record the declared type of the result, if there is one."""
    if result_node != NO_NODE:
        frame.return_type = read_type(walk, result_node)
        frame.types[TypeFact("return", "", frame.return_type, "annotation")] = None
        frame.returns = frame.return_type not in walk.language.void


def _read_body(walk: SyntaxWalker, header: int, body: int, frame: Frame) -> None:
    language = walk.language
    kind = walk.kinds[body]
    may_be_value = walk.kinds[header] in language.closures or walk.kinds[header] in language.endless
    if may_be_value and not any(word in kind for word in STATEMENT_BODY_WORDS):
        frame.returns = True
        walk.visit_returned(body)
        return
    if (doc_node := language.docstring(walk, body)) != NO_NODE:
        comments.attach_docstring(walk, doc_node, frame)
    walk.visit(body, None)


def _read_bases(walk: SyntaxWalker, node: int, row: DeclarationSyntax, frame: Frame) -> None:
    language = walk.language
    kind = walk.kinds[node]
    if node + 1 >= walk.stops[node] or kind in language.types or kind in language.type_names:
        _add_base(walk, node, frame)
        return
    for child in walk.children(node):
        if (kind := walk.kinds[child]) in row.bases:
            _read_bases(walk, child, row, frame)
        elif kind in language.not_bases or kind in language.comments:
            walk.record_uses(child)
        else:
            _add_base(walk, child, frame)


def _add_base(walk: SyntaxWalker, node: int, frame: Frame) -> None:
    if (text := " ".join(walk.text(node).split())[:MAX_BASE_CHARS]) not in frame.bases:
        frame.bases.append(text)
    walk.record_uses(node)


def read_parameters(walk: SyntaxWalker, node: int, frame: Frame | None) -> None:
    """Read the parameters of a declaration, or of a closure (then without a frame)."""
    language = walk.language
    if walk.kinds[node] in language.names:
        _read_parameter(walk, node, None, frame)
        return
    for child in walk.children(node):
        if (kind := walk.kinds[child]) in language.comments:
            walk.visit(child, None)
        elif kind in language.parameters:
            _read_parameter(walk, child, language.parameters[kind], frame)
        elif kind in language.names or kind in language.targets:
            _read_parameter(walk, child, None, frame)


def _read_parameter(walk: SyntaxWalker, node: int, row: ParameterSyntax | None, frame: Frame | None) -> None:
    if row is None:
        names, type_node, default = _collect_names(walk, node), NO_NODE, NO_NODE
    else:
        names = []
        for child in walk.children(node):
            if walk.fields[child] in row.name or walk.kinds[child] in row.name:
                names += _collect_names(walk, child)
        type_node = walk.find_child(node, *row.type)
        default = walk.find_child(node, *row.default)
    walk.record_uses(type_node)
    if frame is not None:
        frame.params = list(dict.fromkeys([*frame.params, *names]))
        if type_node != NO_NODE:
            type_name = read_type(walk, type_node)
            frame.types.update({TypeFact("param", name, type_name, "annotation"): None for name in names})
        elif default != NO_NODE and len(names) == 1:
            infer_type(walk, default, "param", names[0], "default")
    if default != NO_NODE:
        walk.visit(default, None)


def _collect_names(walk: SyntaxWalker, node: int) -> list[str]:
    language = walk.language
    names: list[str] = []
    descendant = node
    while descendant < walk.stops[node]:
        kind = walk.kinds[descendant]
        if kind in language.types or (
            # In `{size: width}` the name is on the right.
            walk.fields[descendant] in UNNAMED_PARAMETER_FIELDS
            and walk.kinds[walk.parents[descendant]] != "pair_pattern"
        ):
            descendant = walk.stops[descendant]
            continue
        if kind in language.names:
            names.append(walk.text(descendant))
        descendant += 1
    return names


def visit_static_members(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit declarations that belong to the enclosing type itself and not to its objects. A hook."""
    frame_count = len(walk.frames)
    walk.visit_children(node, None)
    for frame in walk.frames[frame_count:]:
        if frame.parent is walk.frame:
            frame.modifiers["static"] = None


def visit_closure(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Visit a function without a name, whose body belongs to the enclosing chunk."""
    saved_calls, walk.calls = walk.calls, []
    walk.closure_depth += 1
    for child in walk.children(node):
        if walk.fields[child] in ("parameters", "parameter"):
            read_parameters(walk, child, None)
        elif walk.fields[child] != "name":
            walk.visit(child, None)
    walk.closure_depth -= 1
    walk.calls = saved_calls

"""Functions that C and C++ declare without a body: what a header says of a library.

One at the top of a file is a declaration of its own, with the modifier `prototype`: of a library
that is only linked to there is nothing else. One whose body follows in the same file only lets it
be called earlier, and those in types belong to their type.
"""

from cleats.toolsets.code.kinds import PROTOTYPE
from cleats.toolsets.code.languages import declarators
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.heads import declare
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import Declares
from cleats.toolsets.code.languages.walk import Flow, Walk

_ROW = Declares("function", parameters=(), result=("type",), body=())
_NAMES = ("type_identifier", "qualified_identifier", "template_type")


def declaration(walk: Walk, node: int, flow: Flow | None) -> bool:
    """A declaration of a function, or of variables."""
    name = _name(walk, node)
    if not name:
        return declarators.variables(walk, node, flow)
    frame = declare(walk, node, node, _ROW, name)
    frame.modifiers[PROTOTYPE] = None
    return True


def _name(walk: Walk, node: int) -> str:
    syntax = walk.syntax
    if walk.frame.kind not in ("module", "namespace") or walk.silent:
        return ""
    found = [at for at in syntax.children(node) if syntax.fields[at] == "declarator"]
    if len(found) != 1 or not declarators.is_prototype(syntax, found[0]):
        return ""
    own = declarators.own_declarator(syntax, node)
    if NONE in (own, syntax.child(node, "type")) or not _takes_types(syntax, own):
        return ""
    name = declarators.function_name(syntax, node, own)
    return "" if "." in name else name


def _takes_types(syntax: Syntax, own: int) -> bool:
    """Whether what is in the parentheses are parameters.

    `Lock lock(held);` makes a variable, and looks like a function to a grammar that cannot know
    whether `held` is a type.
    """
    given = syntax.child(own, "parameters")
    children = list(syntax.children(given)) if given != NONE else []
    return not children or any(_is_parameter(syntax, child) for child in children)


def _is_parameter(syntax: Syntax, node: int) -> bool:
    if not syntax.kinds[node].endswith("parameter_declaration"):
        return "variadic" in syntax.kinds[node]
    parts = list(syntax.children(node))
    return len(parts) > 1 or syntax.kinds[parts[0]] not in _NAMES if parts else False


def finish(walk: Walk) -> None:
    """Give back to what is around them the prototypes of functions that the file itself has."""
    made = {(each.kind, each.qualified) for each in walk.frames if PROTOTYPE not in each.modifiers}
    kept: list[Frame] = []
    given_back: dict[Frame, set[tuple[int, int]]] = {}
    for frame in walk.frames:
        around = frame.around
        is_ahead = PROTOTYPE in frame.modifiers and (frame.kind, frame.qualified) in made
        if is_ahead and around is not None:
            given_back.setdefault(around, set()).add((frame.start, frame.end))
            around.uses.update(frame.uses)
        else:
            kept.append(frame)
    walk.frames = kept
    for around, spans in given_back.items():
        around.inner = [span for span in around.inner if span not in spans]
    declarators.export(walk)

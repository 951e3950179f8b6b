"""Ruby's words that are keywords elsewhere and calls here: `raise`, `private`, `require`."""

import re
from collections.abc import Callable
from functools import lru_cache

from cleats.toolsets.code.languages.heads import declare
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.table import TYPES, Declares
from cleats.toolsets.code.languages.walk import Flow, Walk

_SECTIONS = {
    "private": "private",
    "protected": "protected",
    "public": "public",
    "private_class_method": "private",
    "public_class_method": "public",
    "private_constant": "private",
}
_IMPORTS = ("require", "require_relative", "load", "autoload")
_MIXES = ("include", "extend", "prepend")
_EXTENSION = Declares("impl", parameters=(), body=("block",))
RAISES = ("raise", "fail")
_OWN = re.compile(rb"\bdef (?:self\.)?(raise|fail)(?![\w?!=])")
PLACES = TYPES | {"namespace"}
"""Kinds of chunks in which a visibility can be said."""


def identifier(walk: Walk, node: int, flow: Flow | None) -> bool:
    """A name alone may be a section, or a call without arguments."""
    name, frame = walk.syntax.text(node), walk.frame
    if name in _SECTIONS and frame.kind in PLACES:
        frame.section = _SECTIONS[name]
        return True
    if name in RAISES:
        return True
    if flow is None and name not in frame.params and name not in frame.writes:
        saved, walk.calls = walk.calls, []
        walk.record_call(node, name, [], value := Flow())
        walk.step(node, [], value)
        walk.calls = saved
        return True
    return False


def call(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A call that is a word of the language."""
    syntax = walk.syntax
    method = syntax.child(node, "method")
    if method == NONE or syntax.child(node, "receiver") != NONE:
        return False
    name, arguments = syntax.text(method), syntax.child(node, "arguments")
    if arguments == NONE:
        return False
    for words, act in _WORDS:
        if name in words:
            return act(walk, name, arguments)
    return False


def _import(walk: Walk, _name: str, arguments: int) -> bool:
    syntax = walk.syntax
    for at in range(arguments, syntax.stops[arguments]):
        if syntax.kinds[at] == "string_content":
            walk.imports[syntax.text(at)] = None
    return False


def _mix(walk: Walk, _name: str, arguments: int) -> bool:
    """What a type includes it extends."""
    syntax, frame = walk.syntax, walk.frame
    for child in syntax.children(arguments):
        is_module = syntax.kinds[child] in ("constant", "scope_resolution")
        if is_module and frame.kind in PLACES and syntax.text(child) not in frame.bases:
            frame.bases.append(syntax.text(child))
    return False


@lru_cache(maxsize=1)  # it is asked at every `raise` of a file
def _own(data: bytes) -> frozenset[str]:
    """Which of the words that raise are methods of the file's own: `fail(404)` answers there."""
    return frozenset(found[1].decode() for found in _OWN.finditer(data))


def _raise(walk: Walk, word: str, arguments: int) -> bool:
    syntax, first = walk.syntax, True
    if word in _own(syntax.data):
        return False
    for child in syntax.children(arguments):
        kind = syntax.kinds[child]
        if first:
            name = "RuntimeError" if kind == "string" else made(syntax, child) or syntax.text(child)
            if name.replace("::", "").isidentifier():
                walk.frame.throws[name] = None
        first = False
        walk.visit(child, None)
    return True


def _section(walk: Walk, word: str, arguments: int) -> bool:
    """`private :x` is about what is named, `private def x` about what is declared."""
    syntax, frame = walk.syntax, walk.frame
    if frame.kind not in PLACES:
        return False
    visibility, saved = _SECTIONS[word], frame.section
    named = set()
    frame.section = visibility
    for child in syntax.children(arguments):
        if syntax.kinds[child] in ("method", "singleton_method"):
            named.add(syntax.text(syntax.child(child, "name")))
        else:
            named.add(syntax.text(child).strip(":\"'"))
        walk.visit(child, None)
    frame.section = saved
    for each in walk.frames:
        if each.around is frame and each.name in named:
            each.visibility = visibility
    return True


def _refine(walk: Walk, _name: str, arguments: int) -> bool:
    """`refine String do … end` extends a type."""
    syntax, node = walk.syntax, walk.syntax.parents[arguments]
    if walk.frame.kind not in PLACES or syntax.child(node, "block") == NONE:
        return False
    declare(walk, node, node, _EXTENSION, syntax.text(arguments).strip("()"))
    return True


def _attributes(walk: Walk, _name: str, arguments: int) -> bool:
    for child in walk.syntax.children(arguments):
        walk.frame.uses[walk.syntax.text(child).strip(":\"'")] = None
    return False


_WORDS: "list[tuple[tuple[str, ...], Callable[[Walk, str, int], bool]]]" = [
    (_IMPORTS, _import),
    (_MIXES, _mix),
    (RAISES, _raise),
    (tuple(_SECTIONS), _section),
    (("refine",), _refine),
    (("attr_accessor", "attr_reader", "attr_writer", "attr"), _attributes),
]


def made(syntax: Syntax, node: int) -> str:
    """The type of what `X.new` makes."""
    if syntax.kinds[node] != "call":
        return ""
    receiver, method = syntax.child(node, "receiver"), syntax.child(node, "method")
    is_made = NONE not in (receiver, method) and syntax.text(method) == "new"
    return syntax.text(receiver) if is_made else ""

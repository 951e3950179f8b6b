"""Ruby words that are keywords elsewhere and calls in Ruby: `raise`, `private`, `require`."""

import re
from collections.abc import Callable
from functools import lru_cache

from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import TYPE_KINDS, DeclarationSyntax
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, ValueFlow

_VISIBILITY_WORDS = {
    "private": "private",
    "protected": "protected",
    "public": "public",
    "private_class_method": "private",
    "public_class_method": "public",
    "private_constant": "private",
}
_IMPORT_WORDS = ("require", "require_relative", "load", "autoload")
_MIXIN_WORDS = ("include", "extend", "prepend")
_REFINEMENT_SYNTAX = DeclarationSyntax("impl", parameters=(), body=("block",))
RAISE_WORDS = ("raise", "fail")
_RAISE_METHOD_PATTERN = re.compile(rb"\bdef (?:self\.)?(raise|fail)(?![\w?!=])")
VISIBILITY_SCOPE_KINDS = TYPE_KINDS | {"namespace"}
"""Kinds of chunks in which a visibility can be declared."""


def visit_identifier(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a name alone, which may set a visibility or be a call without arguments."""
    name, frame = walk.syntax.text(node), walk.frame
    if name in _VISIBILITY_WORDS and frame.kind in VISIBILITY_SCOPE_KINDS:
        frame.section_visibility = _VISIBILITY_WORDS[name]
        return True
    if name in RAISE_WORDS:
        return True
    if flow is None and name not in frame.params and name not in frame.writes:
        saved_calls, walk.calls = walk.calls, []
        walk.record_call(node, name, [], value := ValueFlow())
        walk.record_step(node, [], value)
        walk.calls = saved_calls
        return True
    return False


def visit_word_call(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit a call of a word with a special meaning."""
    syntax = walk.syntax
    method = syntax.find_child(node, "method")
    if method == NO_NODE or syntax.find_child(node, "receiver") != NO_NODE:
        return False
    name, arguments = syntax.text(method), syntax.find_child(node, "arguments")
    if arguments == NO_NODE:
        return False
    for words, action in _WORD_ACTIONS:
        if name in words:
            return action(walk, name, arguments)
    return False


def _visit_import(walk: SyntaxWalker, _name: str, arguments: int) -> bool:
    syntax = walk.syntax
    for descendant in range(arguments, syntax.stops[arguments]):
        if syntax.kinds[descendant] == "string_content":
            walk.imports[syntax.text(descendant)] = None
    return False


def _visit_mixin(walk: SyntaxWalker, _name: str, arguments: int) -> bool:
    """Record the modules that a type includes as its bases."""
    syntax, frame = walk.syntax, walk.frame
    for child in syntax.children(arguments):
        is_module = syntax.kinds[child] in ("constant", "scope_resolution")
        if is_module and frame.kind in VISIBILITY_SCOPE_KINDS and syntax.text(child) not in frame.bases:
            frame.bases.append(syntax.text(child))
    return False


@lru_cache(maxsize=1)  # called for every `raise` of a file
def _find_raise_methods(data: bytes) -> frozenset[str]:
    """Return the raise words that the file defines as methods, such as its own `fail(404)`."""
    return frozenset(match[1].decode() for match in _RAISE_METHOD_PATTERN.finditer(data))


def _visit_raise(walk: SyntaxWalker, word: str, arguments: int) -> bool:
    syntax, is_first = walk.syntax, True
    if word in _find_raise_methods(syntax.data):
        return False
    for child in syntax.children(arguments):
        kind = syntax.kinds[child]
        if is_first:
            name = "RuntimeError" if kind == "string" else infer_type(syntax, child) or syntax.text(child)
            if name.replace("::", "").isidentifier():
                walk.frame.throws[name] = None
        is_first = False
        walk.visit(child, None)
    return True


def _visit_visibility(walk: SyntaxWalker, word: str, arguments: int) -> bool:
    """Apply `private :x` to the named methods, and `private def x` to the declared one."""
    syntax, frame = walk.syntax, walk.frame
    if frame.kind not in VISIBILITY_SCOPE_KINDS:
        return False
    visibility, saved_visibility = _VISIBILITY_WORDS[word], frame.section_visibility
    names = set()
    frame.section_visibility = visibility
    for child in syntax.children(arguments):
        if syntax.kinds[child] in ("method", "singleton_method"):
            names.add(syntax.text(syntax.find_child(child, "name")))
        else:
            names.add(syntax.text(child).strip(":\"'"))
        walk.visit(child, None)
    frame.section_visibility = saved_visibility
    for member in walk.frames:
        if member.parent is frame and member.name in names:
            member.visibility = visibility
    return True


def _visit_refinement(walk: SyntaxWalker, _name: str, arguments: int) -> bool:
    """Visit `refine String do … end`, which extends a type."""
    syntax, node = walk.syntax, walk.syntax.parents[arguments]
    if walk.frame.kind not in VISIBILITY_SCOPE_KINDS or syntax.find_child(node, "block") == NO_NODE:
        return False
    read_declaration(walk, node, node, _REFINEMENT_SYNTAX, syntax.text(arguments).strip("()"))
    return True


def _visit_attributes(walk: SyntaxWalker, _name: str, arguments: int) -> bool:
    for child in walk.syntax.children(arguments):
        walk.frame.uses[walk.syntax.text(child).strip(":\"'")] = None
    return False


_WORD_ACTIONS: "list[tuple[tuple[str, ...], Callable[[SyntaxWalker, str, int], bool]]]" = [
    (_IMPORT_WORDS, _visit_import),
    (_MIXIN_WORDS, _visit_mixin),
    (RAISE_WORDS, _visit_raise),
    (tuple(_VISIBILITY_WORDS), _visit_visibility),
    (("refine",), _visit_refinement),
    (("attr_accessor", "attr_reader", "attr_writer", "attr"), _visit_attributes),
]


def infer_type(syntax: SyntaxTree, node: int) -> str:
    """Return the type of the object that `X.new` creates."""
    if syntax.kinds[node] != "call":
        return ""
    receiver, method = syntax.find_child(node, "receiver"), syntax.find_child(node, "method")
    is_constructor = NO_NODE not in (receiver, method) and syntax.text(method) == "new"
    return syntax.text(receiver) if is_constructor else ""

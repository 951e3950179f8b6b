"""The declarations of a file, read from its bytes by its language's table."""

from functools import cache
from importlib import import_module
from pathlib import PurePosixPath

from msgspec import Struct
from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser, Tree

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.languages.frame import Frame
from cleats.toolsets.code.languages.plans import plan_for
from cleats.toolsets.code.languages.registry import LANGUAGES
from cleats.toolsets.code.languages.remarks import Remark, remarks, set_doc
from cleats.toolsets.code.languages.syntax import ERROR_ID, NONE, Syntax, flatten
from cleats.toolsets.code.languages.table import Language
from cleats.toolsets.code.languages.walk import Plan, Walk

TYPED = b"@flow"
"""Said at the beginning of a file of JavaScript that has types."""

FIRST = 2000
"""Bytes that are the beginning of a file."""


class Parsed(Struct):
    """What one file declares."""

    chunks: list[Chunk]
    imports: list[str]
    exports: list[str]
    comments: list[Remark]
    problem: str = ""


class _Reader:
    """A language made ready: its parser, the kinds and fields of its grammar, its plan."""

    def __init__(self, language: Language) -> None:
        grammar = Grammar(getattr(import_module(language.grammar), language.maker)())
        wanted = {*language.modifiers, *language.tokens}
        self.language = language
        self.parser = Parser(grammar)
        self.plan: Plan = plan_for(language)
        self.kinds: dict[int, str] = {ERROR_ID: "ERROR"}
        for number in range(grammar.node_kind_count):
            kind = grammar.node_kind_for_id(number)
            is_named = grammar.node_kind_is_named(number) and kind not in language.unseen
            if kind and (is_named or kind in wanted):
                self.kinds[number] = kind
        self.fields: dict[int, str] = {}
        for number in range(1, grammar.field_count + 1):
            self.fields[number] = grammar.field_name_for_id(number) or ""


@cache
def _reader(lang: str) -> _Reader:
    return _Reader(LANGUAGES[lang])


def declarations(lang: str, path: str, data: bytes) -> Parsed:
    """Everything a file declares. A syntax error costs what it covers and is said in `problem`.

    Raises:
        KeyError: There is no table for the language.
    """
    reader = _reader(lang)
    tree, parsed = _tree(reader, data)
    if tree.root_node.has_error and reader.language.fallback:
        reader, tree, parsed = _fall_back(reader, tree, parsed, data)
    syntax = flatten(tree, data, reader.kinds, reader.fields)
    syntax.parsed = parsed
    reader.language.prepare(syntax)
    module = Frame("module", PurePosixPath(path).stem, 0, len(data), None)
    walk = Walk(reader.language, reader.plan, syntax, module)
    problem = _problem(tree.root_node, syntax)
    doc = reader.language.docstring(syntax, 0)
    if doc != NONE:
        set_doc(walk, doc, module)
    try:
        walk.descend(0, None)
    except RecursionError:
        problem = problem or "nested too deeply to be read whole"
    reader.language.finish(walk)
    spoken = remarks(walk)
    frames = sorted(walk.frames, key=lambda frame: (frame.start, -frame.end))
    chunks = [
        frame.chunk(syntax) for frame in frames if frame is not module or not module.is_blank(data)
    ]
    return Parsed(chunks, list(walk.imports), list(walk.exports), spoken, problem)


def _tree(reader: _Reader, data: bytes) -> tuple[Tree, bytes]:
    """The tree of a text, and the text as the grammar was given it."""
    if (eased := reader.language.unwrap(data)) != data:
        tree = reader.parser.parse(eased)
        if not tree.root_node.has_error:
            return tree, eased
    tree = reader.parser.parse(data)
    if tree.root_node.has_error and (eased := reader.language.ease(data)) != data:
        eased_tree = reader.parser.parse(eased)
        if _lost(eased_tree) <= _lost(tree):
            return eased_tree, eased
    return tree, data


def _lost(tree: Tree) -> int:
    """How many bytes the grammar could not make sense of."""
    lost, below = 0, [tree.root_node]
    while below:
        node = below.pop()
        if node.is_error or node.is_missing:
            lost += max(1, node.end_byte - node.start_byte)
        elif node.has_error:
            below += node.children
    return lost


def _fall_back(
    reader: _Reader, tree: Tree, parsed: bytes, data: bytes
) -> tuple[_Reader, Tree, bytes]:
    other = _reader(reader.language.fallback)
    better, given = _tree(other, data)
    if better.root_node.has_error and TYPED not in data[:FIRST]:
        return reader, tree, parsed
    return other, better, given


def _problem(root: Node, syntax: Syntax) -> str:
    if not root.has_error:
        return ""
    node = root
    while not (node.is_error or node.is_missing):
        below = next(
            (child for child in node.children if child.has_error or child.is_missing), None
        )
        if below is None:
            break
        node = below
    # Not by `node.start_point`: 0.26.0 of the parser frees the numbers of a point too early.
    return f"syntax error near line {syntax.line(node.start_byte)}"

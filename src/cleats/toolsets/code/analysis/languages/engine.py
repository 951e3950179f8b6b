"""Parse the bytes of a file into declarations with the table of its language."""

from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct
from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser, Tree

from cleats.toolsets.code.analysis.facts import Chunk, CommentBlock
from cleats.toolsets.code.analysis.languages.comments import attach_docstring, collect_comments
from cleats.toolsets.code.analysis.languages.frame import Frame
from cleats.toolsets.code.analysis.languages.node_handlers import build_plan
from cleats.toolsets.code.analysis.languages.syntax import ERROR_ID, NO_NODE, SyntaxTree, flatten_tree
from cleats.toolsets.code.analysis.languages.table import Language, kind_set
from cleats.toolsets.code.analysis.languages.walk import SyntaxWalker, WalkPlan

LANGUAGES: Final = kind_set("python javascript typescript tsx go java php rust csharp shell c cpp ruby kotlin swift")
"""The languages that have a table."""

FLOW_PRAGMA = b"@flow"
"""Marker at the beginning of a JavaScript file that uses Flow types."""

PRAGMA_SEARCH_BYTES = 2000
"""Number of bytes at the beginning of a file that are searched for the marker."""


class ParsedFile(Struct):
    """The declarations, imports, exports and comments of one file."""

    chunks: list[Chunk]
    imports: list[str]
    exports: list[str]
    comments: list[CommentBlock]
    problem: str = ""


class _LanguageParser:
    """A parser for one language: node kinds and fields of its grammar, and its walk plan."""

    def __init__(self, language: Language) -> None:
        grammar = Grammar(getattr(import_module(language.grammar), language.maker)())
        token_kinds = {*language.modifiers, *language.tokens}
        self.language = language
        self.parser = Parser(grammar)
        self.plan: WalkPlan = build_plan(language)
        self.kinds: dict[int, str] = {ERROR_ID: "ERROR"}
        for kind_id in range(grammar.node_kind_count):
            kind = grammar.node_kind_for_id(kind_id)
            is_named = grammar.node_kind_is_named(kind_id) and kind not in language.unseen
            if kind and (is_named or kind in token_kinds):
                self.kinds[kind_id] = kind
        self.fields: dict[int, str] = {}
        for kind_id in range(1, grammar.field_count + 1):
            self.fields[kind_id] = grammar.field_name_for_id(kind_id) or ""


def load_language(lang: str) -> Language:
    """Return the table of a language: the constant `PYTHON` of the module `python`, and so on.

    Raises:
        KeyError: The language has no table.
    """
    if lang not in LANGUAGES:
        raise KeyError(lang)
    module = import_module(f"{__package__}.{'typescript' if lang == 'tsx' else lang}")
    language: Language = getattr(module, lang.upper())
    return language


@cache
def _load_parser(lang: str) -> _LanguageParser:
    return _LanguageParser(load_language(lang))


def parse_declarations(lang: str, path: str, data: bytes) -> ParsedFile:
    """Return everything that a file declares.

    A syntax error only loses the text it covers and is reported in `problem`.

    Raises:
        KeyError: The language has no table.
    """
    parser = _load_parser(lang)
    tree, parsed_data = _parse_tree(parser, data)
    if tree.root_node.has_error and parser.language.fallback:
        parser, tree, parsed_data = _try_fallback(parser, tree, parsed_data, data)
    syntax = flatten_tree(tree, data, parser.kinds, parser.fields)
    syntax.parsed = parsed_data
    parser.language.prepare(syntax)
    module = Frame("module", PurePosixPath(path).stem, 0, len(data), None)
    walk = SyntaxWalker(parser.language, parser.plan, syntax, module)
    problem = _describe_syntax_error(tree.root_node, syntax)
    doc_node = parser.language.docstring(syntax, 0)
    if doc_node != NO_NODE:
        attach_docstring(walk, doc_node, module)
    try:
        walk.visit_children(0, None)
    except RecursionError:
        problem = problem or "nested too deeply to be read whole"
    parser.language.finish(walk)
    comments = collect_comments(walk)
    frames = sorted(walk.frames, key=lambda frame: (frame.start, -frame.end))
    chunks = [frame.to_chunk(syntax) for frame in frames if frame is not module or not module.is_blank(data)]
    return ParsedFile(chunks, list(walk.imports), list(walk.exports), comments, problem)


def _parse_tree(parser: _LanguageParser, data: bytes) -> tuple[Tree, bytes]:
    """Return the syntax tree of a text, and the text that the grammar was given."""
    if (rewritten_data := parser.language.unwrap(data)) != data:
        tree = parser.parser.parse(rewritten_data)
        if not tree.root_node.has_error:
            return tree, rewritten_data
    tree = parser.parser.parse(data)
    if tree.root_node.has_error and (rewritten_data := parser.language.ease(data)) != data:
        rewritten_tree = parser.parser.parse(rewritten_data)
        if _count_error_bytes(rewritten_tree) <= _count_error_bytes(tree):
            return rewritten_tree, rewritten_data
    return tree, data


def _count_error_bytes(tree: Tree) -> int:
    """Count the bytes that the grammar could not parse."""
    error_bytes, pending_nodes = 0, [tree.root_node]
    while pending_nodes:
        node = pending_nodes.pop()
        if node.is_error or node.is_missing:
            error_bytes += max(1, node.end_byte - node.start_byte)
        elif node.has_error:
            pending_nodes += node.children
    return error_bytes


def _try_fallback(
    parser: _LanguageParser, tree: Tree, parsed_data: bytes, data: bytes
) -> tuple[_LanguageParser, Tree, bytes]:
    fallback_parser = _load_parser(parser.language.fallback)
    fallback_tree, fallback_data = _parse_tree(fallback_parser, data)
    if fallback_tree.root_node.has_error and FLOW_PRAGMA not in data[:PRAGMA_SEARCH_BYTES]:
        return parser, tree, parsed_data
    return fallback_parser, fallback_tree, fallback_data


def _describe_syntax_error(root: Node, syntax: SyntaxTree) -> str:
    if not root.has_error:
        return ""
    node = root
    while not (node.is_error or node.is_missing):
        error_child = next((child for child in node.children if child.has_error or child.is_missing), None)
        if error_child is None:
            break
        node = error_child
    # Not `node.start_point`: tree-sitter 0.26.0 frees the numbers of a point too early.
    return f"syntax error near line {syntax.line_number(node.start_byte)}"

"""Parse the bytes of a file into declarations with the table of its language.

A table is compiled to one function per kind of node, which the walk calls there.
"""

from collections.abc import Iterable
from functools import cache, partial
from importlib import import_module
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct
from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser, Tree

from cleats.toolsets.code.analysis.facts import CONTINUED_TEXT_MARK, Chunk, CommentBlock
from cleats.toolsets.code.analysis.languages import assignments, declarations
from cleats.toolsets.code.analysis.languages.comments import attach_docstring, collect_comments
from cleats.toolsets.code.analysis.languages.syntax import ERROR_ID, NO_NODE, Frame, SyntaxTree, flatten_tree
from cleats.toolsets.code.analysis.languages.table import KindSet, Language, NodeHook, kind_set
from cleats.toolsets.code.analysis.languages.walk import NameReader, NodeAction, SyntaxWalker, ValueFlow, WalkPlan

LANGUAGES: Final = kind_set("python javascript typescript tsx go java php rust csharp shell c cpp ruby kotlin swift")
"""The languages that have a table."""

_TABLE_MODULES = {"tsx": "typescript", "cpp": "c"}

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
        self.plan: WalkPlan = _build_plan(language)
        self.kinds: dict[int, str] = {ERROR_ID: "ERROR"}
        for kind_id in range(grammar.node_kind_count):
            kind = grammar.node_kind_for_id(kind_id)
            is_named = grammar.node_kind_is_named(kind_id) and kind not in language.unseen
            if kind and (is_named or kind in token_kinds):
                self.kinds[kind_id] = kind
        self.fields = {id_: grammar.field_name_for_id(id_) or "" for id_ in range(1, grammar.field_count + 1)}


def load_language(lang: str) -> Language:
    """Return the table of a language: the constant `PYTHON` of the module `python`, and so on.

    Raises:
        KeyError: The language has no table.
    """
    if lang not in LANGUAGES:
        raise KeyError(lang)
    module = import_module(f"{__package__}.{_TABLE_MODULES.get(lang, lang)}")
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
    if (doc_node := parser.language.docstring(syntax, 0)) != NO_NODE:
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


def _build_plan(language: Language) -> WalkPlan:
    """Build the actions of a language.

    Where a kind is in several rows, the row added last is tried first and falls back to the earlier ones when it
    declines.
    """
    actions: dict[str, NodeAction] = {}

    def add_action(kinds: Iterable[str], action: NodeAction) -> None:
        for kind in kinds:
            actions[kind] = action

    add_action(language.ignored, lambda *_: None)
    add_action(language.types | language.type_names, assignments.visit_type)
    add_action(language.names, lambda walk, node, flow: walk.record_read(walk.text(node), flow))
    add_action([*language.members, *language.indexes], _visit_path)
    add_action(language.calls, SyntaxWalker.visit_call)
    add_action(language.texts, _visit_text)
    add_action(language.comments, lambda walk, node, _flow: walk.comments.append((node, walk.frame)))
    add_action(language.decorators, _visit_decorator)
    add_action(language.returns, _visit_return)
    add_action(language.throws, _visit_throw)
    add_action(language.awaits, _visit_await)
    add_action(language.yields, _visit_yield)
    add_action(language.removes, lambda walk, node, _flow: assignments.collect_targets(walk, node, []))
    add_action(language.updates, assignments.visit_update)
    add_action(language.assigns, assignments.visit_assignment)
    add_action(language.closures, declarations.visit_closure)
    add_action(language.imports, _visit_import)
    for kind, operators in language.verdicts.items():
        otherwise = actions.get(kind, SyntaxWalker.visit_children)
        actions[kind] = partial(_visit_predicate, operators=operators, otherwise=otherwise)
    for kind, parts in language.choices.items():
        actions[kind] = _make_choice_action(language, kind, parts, actions.get(kind, SyntaxWalker.visit_children))
    for kind in [*language.carriers, *language.declares]:
        actions[kind] = partial(
            declarations.visit_declaration, otherwise=actions.get(kind, SyntaxWalker.visit_children)
        )
    for counter in ("breaks", "continues", "loops", "branches"):
        for kind in getattr(language, counter):
            parent, _, child = kind.rpartition(">")
            actions[child] = _make_counting_action(counter, parent, actions.get(child, SyntaxWalker.visit_children))
    add_action(language.cases, _visit_case)
    add_action(language.defaults, SyntaxWalker.visit_arm)
    for kind, hook in language.hooks.items():
        actions[kind] = partial(_visit_hooked, hook=hook, otherwise=actions.get(kind, SyntaxWalker.visit_children))
    return WalkPlan(actions, _build_name_readers(language))


def _build_name_readers(language: Language) -> dict[str, NameReader]:
    """Return the name readers by kind; where a kind is in several rows, the last one here wins."""
    return {
        **{kind: partial(lambda name, *_: name, name) for kind, name in language.classes.items()},
        **dict.fromkeys(language.transparent, SyntaxWalker.read_wrapped_name),
        **dict.fromkeys(language.calls, SyntaxWalker.read_call_name),
        **dict.fromkeys(language.indexes, SyntaxWalker.read_index_name),
        **dict.fromkeys(language.members, SyntaxWalker.read_member_name),
        **dict.fromkeys(language.names | language.type_names, lambda walk, node, _flow: walk.text(node)),
    }


def _visit_predicate(
    walk: SyntaxWalker, node: int, flow: ValueFlow | None, *, operators: KindSet, otherwise: NodeAction
) -> None:
    if flow is not None and (not operators or _read_operator(walk, node) in operators):
        flow = ValueFlow()
    otherwise(walk, node, flow)


def _read_operator(syntax: SyntaxTree, node: int) -> str:
    """Return the text between two operands, or before a single one."""
    first_operand = node + 1
    second_operand = syntax.stops[first_operand] if first_operand < syntax.stops[node] else first_operand
    if second_operand < syntax.stops[node]:
        start, end = syntax.ends[first_operand], syntax.starts[second_operand]
    else:
        start, end = syntax.starts[node], syntax.starts[first_operand] if first_operand < second_operand else 0
    return syntax.data[start:end].strip().decode("utf-8", "replace")


def _make_choice_action(language: Language, kind: str, parts: tuple[str | int, ...], action: NodeAction) -> NodeAction:
    branches = kind in language.branches

    def visit_choice(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
        children = walk.children(node)
        if flow is None:
            walk.visit_arms(children) if branches else action(walk, node, None)
            return
        # Text in one of several values is not a prefix of the others.
        flow.text = flow.text or CONTINUED_TEXT_MARK
        # `a ?: b` is `a` itself if `a` is truthy, so the condition is a value as well.
        has_alternative = walk.find_child(node, "alternative") != NO_NODE
        is_own_condition = has_alternative and walk.find_child(node, "consequence", "body") == NO_NODE
        for position, child in enumerate(children):
            is_selector = walk.fields[child] in parts or walk.kinds[child] in parts
            is_selector = (is_selector or position in parts) and not is_own_condition
            walk.visit(child, ValueFlow() if is_selector else flow)

    return visit_choice


def _make_counting_action(counter: str, parent: str, action: NodeAction) -> NodeAction:
    """Return an action that counts a node, if it is below a parent of that kind (empty for any)."""
    has_arms = counter in ("loops", "branches") and action is SyntaxWalker.visit_children

    def visit_counted(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
        frame = walk.frame
        if not parent or walk.kinds[walk.parents[node]] == parent:
            setattr(frame, counter, getattr(frame, counter) + 1)
        if has_arms and flow is None:
            walk.visit_arms(walk.children(node))
        else:
            action(walk, node, flow)

    return visit_counted


def _visit_case(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    test = walk.language.case_test
    walk.frame.branches += not test or walk.find_child(node, test) != NO_NODE
    walk.visit_arm(node, flow)


def _visit_hooked(
    walk: SyntaxWalker, node: int, flow: ValueFlow | None, *, hook: NodeHook, otherwise: NodeAction
) -> None:
    if hook(walk, node, flow) is False:
        otherwise(walk, node, flow)


def _visit_decorator(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    """Record a decorator that is neither in a wrap nor before a declaration, where it is header."""
    language = walk.language
    parent = walk.parents[node]
    if walk.kinds[parent] in language.wraps:
        return
    sibling = walk.stops[node]
    while sibling < walk.stops[parent] and (
        walk.kinds[sibling] in language.decorators or walk.kinds[sibling] in language.comments
    ):
        sibling = walk.stops[sibling]
    if sibling >= walk.stops[parent] or walk.kinds[sibling] not in language.declares:
        walk.record_uses(node)


def _visit_path(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    if flow is None:
        walk.visit_as_statement(_visit_path, node)
        return
    if dotted_name := walk.read_name(node, flow):
        walk.record_read(dotted_name, flow)


def _visit_text(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    if flow is not None:
        if len(flow.text) < 120:
            if not flow.text and (flow.names or flow.calls):
                flow.text = CONTINUED_TEXT_MARK
            flow.text += walk.text(node)
        walk.visit_children(node, flow)


def _visit_import(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    read_imports = walk.language.imports[walk.kinds[node]]
    if not isinstance(read_imports, str):
        walk.imports.update(dict.fromkeys(read_imports(walk, node)))
    elif (module := walk.find_child(node, read_imports)) != NO_NODE:
        walk.imports["".join(walk.text(module).split()).strip('"`<>')] = None


def _visit_return(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    language = walk.language
    for child in walk.children(node):
        if walk.kinds[child] in language.comments:
            walk.visit(child, None)
            continue
        if walk.kinds[assignments.unwrap_single(walk, child)] not in language.nothing and not walk.closure_depth:
            walk.frame.returns = True
            assignments.infer_type(walk, child, "return", "")
        walk.visit_returned(child)


def _visit_throw(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> None:
    is_first = True
    for child in walk.children(node):
        if is_first and walk.kinds[child] not in walk.language.comments:
            is_first = False
            if name := _visit_and_name(walk, child, None):
                walk.frame.throws[name] = None
        else:
            walk.visit(child, None)


def _visit_await(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    for child in walk.children(node):
        if name := _visit_and_name(walk, child, flow):
            walk.frame.awaits[name] = None


def _visit_and_name(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> str:
    """Visit an expression and return its callee if it is a call, else its name, if any."""
    language, kind = walk.language, walk.kinds[node]
    if kind in language.calls:
        return walk.visit_call(node, flow)
    if kind in language.members or kind in language.names:
        dotted_name = walk.read_name(node, flow)
        walk.record_read(dotted_name, flow)
        return dotted_name
    walk.visit(node, flow)
    return ""


def _visit_yield(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    if not walk.closure_depth:
        walk.frame.is_generator = True
    if flow is not None:
        walk.visit_children(node, flow)
        return
    for child in walk.children(node):
        walk.visit_returned(child)

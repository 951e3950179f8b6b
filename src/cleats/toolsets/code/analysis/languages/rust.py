"""The language table of Rust.

The grammar parses the arguments of a macro as a flat run of tokens: names, calls and text are found in them. Names that
are joined by `.` or `::` are put together again, and a name before parentheses is a call.
"""

import re

from cleats.toolsets.code.analysis.facts import CallArgument
from cleats.toolsets.code.analysis.languages import assignments, grammar_workarounds, table
from cleats.toolsets.code.analysis.languages.declarations import read_declaration
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE, Frame, SyntaxTree
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import MAX_TEXT_CHARS, SyntaxWalker, ValueFlow

_IMPL_SYNTAX = table.DeclarationSyntax("impl", bases=kind_set("trait"), name=("type",))
_UNNAMED_TYPE_KINDS = ("array_type", "tuple_type", "unit_type")
_STATEMENT_SUFFIXES = ("_statement", "_item", "_declaration", "_definition", "_comment")
_CONSTRUCTOR_PREFIXES = ("new", "default", "with_", "from", "open", "create")
_MACRO_RESULT_TYPES = {"vec": "Vec", "format": "String"}


def _adjust_declaration(frame: Frame, parent: Frame) -> None:
    words = [word for word in frame.modifiers if word.startswith("pub")]
    if words:
        frame.visibility = "public" if words[0] == "pub" else "internal"
    elif parent.kind == "trait" or (parent.kind == "impl" and parent.bases):
        frame.visibility = "public"
    elif parent.parent is None or parent.kind in table.TYPE_KINDS or parent.kind == "namespace":
        frame.visibility = "" if frame.kind == "impl" else "private"
    if frame.kind == "method" and frame.name == "new" and parent.kind == "impl":
        frame.kind = "constructor"


def _visit_impl(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit an `impl` block, which is named after its type without type arguments."""
    type_node = walk.find_child(node, "type")
    while walk.kinds[type_node] in ("reference_type", "pointer_type"):
        type_node = walk.find_child(type_node, "type")
    is_list = walk.contains_text(type_node, b",") or walk.contains_text(type_node, b";")
    if walk.kinds[type_node] in _UNNAMED_TYPE_KINDS and is_list:
        read_declaration(walk, node, node, _IMPL_SYNTAX, " ".join(walk.text(type_node).split())[:200])
        return True
    text = walk.text(type_node).partition("<")[0]
    words = [word for word in text.strip("&*() ").replace("(", " ").split() if _is_type_word(word)]
    if not words:
        return False
    read_declaration(walk, node, node, _IMPL_SYNTAX, words[0].rpartition("::")[2])
    return True


def _is_type_word(word: str) -> bool:
    """Return whether a word names a type: `&'a mut (dyn Read + Send)` is a `Read`."""
    return word not in ("mut", "const", "dyn") and not word.startswith("'")


def _visit_module(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record `mod store;`, whose contents are in another file, as an import."""
    name_node = walk.find_child(node, "name")
    if walk.find_child(node, "body") != NO_NODE or name_node == NO_NODE:
        return False
    walk.imports[walk.text(name_node)] = None
    return True


def _visit_tuple_fields(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Record tuple fields, which have numbers for names and complete a struct's signature."""
    parent = walk.parents[node]
    owner = walk.text(walk.find_child(parent, "name")) if walk.kinds[parent] == "enum_variant" else ""
    types = [child for child in walk.children(node) if walk.fields[child] == "type"]
    for position, child in enumerate(types):
        assignments.record_type(walk, "field", owner or str(position), assignments.read_type(walk, child), "annotation")
    if not owner and walk.frame.kind == "struct":
        walk.frame.signature += " ".join(walk.text(node).split())
    return False


def _visit_type(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit an associated type in an `impl`, which is not a declaration."""
    if walk.frame.kind != "impl":
        return False
    walk.record_uses(node)
    return True


def _visit_block(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit the body of a function, which returns its last expression."""
    if (parent_kind := walk.kinds[walk.parents[node]]) not in ("function_item", "closure_expression"):
        return False
    children = list(walk.children(node))
    walk.visit_all(children[:-1])
    for last in children[-1:]:
        if _is_statement(walk, last):
            walk.visit(last, None)
            continue
        if parent_kind == "closure_expression" and not walk.closure_depth:
            walk.frame.returns = True
        walk.visit_returned(last)
    return True


def _is_statement(syntax: SyntaxTree, node: int) -> bool:
    if syntax.kinds[node] == "expression_statement":
        return syntax.data[syntax.ends[node] - 1] == ord(";")
    return syntax.kinds[node].endswith(_STATEMENT_SUFFIXES)


def _visit_statement(walk: SyntaxWalker, node: int, _flow: ValueFlow | None) -> bool:
    """Visit `f();`, whose value is always discarded."""
    if not _is_statement(walk, node):
        return False
    walk.visit_children(node, None)
    return True


def _visit_if(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit an `if` that is a value, which still has arms."""
    if flow is None:
        return False
    walk.frame.branches += 1
    for child in walk.children(node):
        if walk.fields[child] in ("consequence", "alternative"):
            walk.visit_arm(child, flow)
        else:
            walk.visit(child, None)
    return True


def _visit_match(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a `match`; the matched value flows to the names in the patterns."""
    value, body = walk.find_child(node, "value"), walk.find_child(node, "body")
    if NO_NODE in (value, body):
        return False
    patterns = [walk.find_child(arm, "pattern") for arm in walk.children(body)]
    _bind_patterns(walk, node, value, [pattern for pattern in patterns if pattern != NO_NODE])
    walk.visit(body, flow)
    return True


def _visit_let_condition(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    value, pattern = walk.find_child(node, "value"), walk.find_child(node, "pattern")
    if NO_NODE in (value, pattern):
        return False
    targets = _bind_patterns(walk, node, value, [pattern])
    if flow is not None:
        flow.names += targets
    return True


def _bind_patterns(walk: SyntaxWalker, node: int, value: int, patterns: list[int]) -> list[str]:
    targets: list[str] = []
    with walk.open_step(node, targets) as value_flow:
        walk.visit(value, value_flow)
        for pattern in patterns:
            _collect_bindings(walk, pattern, targets)
    walk.frame.writes.update(dict.fromkeys(targets))
    return targets


def _collect_bindings(walk: SyntaxWalker, node: int, targets: list[str]) -> None:
    kind = walk.kinds[node]
    if walk.fields[node] in ("type", "condition"):
        if walk.fields[node] == "type":
            walk.record_uses(node)
    elif kind in ("identifier", "shorthand_field_identifier"):
        name = walk.text(node)
        if name[:1].isupper():
            walk.frame.uses[name] = None
        else:
            targets.append(name)
    elif kind == "scoped_identifier":
        walk.frame.uses["".join(walk.text(node).split())] = None
    else:
        for child in walk.children(node):
            _collect_bindings(walk, child, targets)


def _visit_constant(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> bool:
    """Visit a constant; one in a type is a field, and one without a value is only used."""
    if walk.find_child(node, "value") == NO_NODE:
        walk.record_uses(node)
        return True
    if walk.frame.kind in table.TYPE_KINDS:
        assignments.visit_assignment(
            walk, node, flow, table.AssignmentSyntax(left="name", right="value", typed_field=True)
        )
        return True
    return False


def _infer_type(syntax: SyntaxTree, node: int) -> str:
    if (kind := syntax.kinds[node]) == "struct_expression":
        return syntax.text(node + 1)
    if kind == "macro_invocation":
        return _MACRO_RESULT_TYPES.get(syntax.text(node + 1), "")
    function = syntax.find_child(node, "function") if kind == "call_expression" else NO_NODE
    if syntax.kinds[function] not in ("identifier", "scoped_identifier"):
        return ""
    path, _, last = syntax.text(function).rpartition("::")
    if not path:
        return last if last[:1].isupper() and last not in ("Some", "Ok", "Err") else ""
    return path if path.rpartition("::")[2][:1].isupper() and last.startswith(_CONSTRUCTOR_PREFIXES) else ""


def _read_imports(syntax: SyntaxTree, node: int) -> list[str]:
    argument = syntax.find_child(node, "argument")
    return _expand_use_paths(syntax, argument, "") if argument != NO_NODE else []


def _expand_use_paths(syntax: SyntaxTree, node: int, prefix: str) -> list[str]:
    if (kind := syntax.kinds[node]) == "use_list":
        return [path for child in syntax.children(node) for path in _expand_use_paths(syntax, child, prefix)]
    if kind == "scoped_use_list":
        path, inner = syntax.find_child(node, "path"), syntax.find_child(node, "list")
        inner_prefix = f"{prefix}{syntax.text(path)}::" if path != NO_NODE else prefix
        return _expand_use_paths(syntax, inner, inner_prefix) if inner != NO_NODE else []
    if kind == "use_as_clause":
        node = node + 1
    if kind.endswith("_comment"):
        return []
    text = "".join(syntax.text(node).split())
    return [prefix.removesuffix("::")] if text == "self" and prefix else [prefix + text]


PANIC_MACROS = kind_set("panic unreachable todo unimplemented")

_NAME_KINDS = kind_set("identifier type_identifier field_identifier self super crate metavariable")
_STRING_KINDS = kind_set("string_literal raw_string_literal")
_CAPTURED_NAME_PATTERN = re.compile(r"(?<!\{)\{([a-z_]\w*)(?=[:}])")


def visit_macro_call(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit a macro call. A hook."""
    if flow is None:
        walk.visit_as_statement(visit_macro_call, node)
        return
    name_node, token_tree = walk.find_child(node, "macro"), walk.find_child(node, "token_tree")
    name = "".join(walk.text(name_node).split()) if name_node != NO_NODE else ""
    arguments = _read_macro_arguments(walk, token_tree) if token_tree != NO_NODE else []
    walk.record_call(node, f"{name}!", arguments, flow)
    if (last := name.rpartition("::")[2]) in PANIC_MACROS:
        walk.frame.throws["panic"] = walk.frame.throws[last] = None


def visit_token_tree(walk: SyntaxWalker, node: int, flow: ValueFlow | None) -> None:
    """Visit tokens anywhere else, such as the right side of a rule. A hook."""
    _TokenReader(walk, flow or ValueFlow()).read(list(walk.children(node)))


def _read_macro_arguments(walk: SyntaxWalker, token_tree: int) -> list[CallArgument]:
    runs: list[list[int]] = [[]]
    position = walk.starts[token_tree] + 1
    for child in walk.children(token_tree):
        if runs[-1] and b"," in walk.data[position : walk.starts[child]]:
            runs.append([])
        runs[-1].append(child)
        position = walk.ends[child]
    arguments = []
    for run in runs:
        if run:
            _TokenReader(walk, flow := ValueFlow()).read(run)
            arguments.append(flow.to_argument())
    return arguments


class _TokenReader:
    """A reader that combines a run of tokens into names and calls."""

    def __init__(self, walk: SyntaxWalker, flow: ValueFlow) -> None:
        self._walk = walk
        self._flow = flow
        self._name_chain = ""
        """The dotted name read so far."""

    def read(self, run: list[int]) -> None:
        walk = self._walk
        end = -1
        for node in run:
            gap = walk.data[end : walk.starts[node]].strip() if end >= 0 else b""
            if (kind := walk.kinds[node]) == "token_tree":
                self._read_tree(node, gap)
            elif kind in _NAME_KINDS:
                self._extend_chain(walk.text(node), gap.decode("utf-8", "replace"))
            else:
                self._end_chain()
                self._read_other(node)
            end = walk.ends[node]
        self._end_chain()

    def _read_tree(self, node: int, gap: bytes) -> None:
        walk, opening = self._walk, self._walk.data[self._walk.starts[node]]
        inner = list(walk.children(node))
        if self._name_chain and opening == ord("(") and gap in (b"", b"!"):
            callee = self._name_chain + gap.decode()
            walk.record_call(node, callee, _read_macro_arguments(walk, node), self._flow)
            self._name_chain = f"{callee}()"
        elif self._name_chain and opening == ord("[") and not gap:
            _TokenReader(walk, ValueFlow()).read(inner)
            self._name_chain += "[]"
        else:
            self._end_chain()
            _TokenReader(walk, self._flow).read(inner)

    def _extend_chain(self, name: str, gap: str) -> None:
        if self._name_chain and gap in (".", "::"):
            if name == "await":
                self._walk.frame.awaits[self._name_chain.removesuffix("()")] = None
            else:
                self._name_chain += gap + name
        else:
            self._end_chain()
            self._name_chain = name

    def _read_other(self, node: int) -> None:
        walk = self._walk
        if walk.kinds[node] in _STRING_KINDS:
            if (text := walk.find_child(node, "string_content")) != NO_NODE:
                self._flow.text += walk.text(text)[:MAX_TEXT_CHARS]
                for name in _CAPTURED_NAME_PATTERN.findall(walk.text(text)):
                    walk.record_read(name, self._flow)
        else:
            walk.visit(node, self._flow)

    def _end_chain(self) -> None:
        if self._name_chain and not self._name_chain.endswith("()"):
            self._walk.record_read(self._name_chain, self._flow)
        self._name_chain = ""


RUST = table.load_table(
    "rust",
    declares={"impl_item": _IMPL_SYNTAX},
    settle=_adjust_declaration,
    made=_infer_type,
    imports={"use_declaration": _read_imports},
    hooks={
        "impl_item": _visit_impl,
        "mod_item": _visit_module,
        "type_item": _visit_type,
        "const_item": _visit_constant,
        "block": _visit_block,
        "expression_statement": _visit_statement,
        "if_expression": _visit_if,
        "match_expression": _visit_match,
        # The names in a pattern are bound already.
        "match_pattern": lambda walk, node, _flow: walk.visit(walk.find_child(node, "condition"), None),
        "let_condition": _visit_let_condition,
        "macro_invocation": visit_macro_call,
        "token_tree": visit_token_tree,
        "ordered_field_declaration_list": _visit_tuple_fields,
    },
    unwrap=grammar_workarounds.unwrap_rust_macros,
    finish=lambda walk: walk.export_public("impl"),
)

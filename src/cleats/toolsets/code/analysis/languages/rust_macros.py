"""Macro calls of Rust, whose arguments are only tokens: names, calls and text are found in them.

The grammar parses the arguments of a macro as a flat run of tokens. Names that are joined by `.` or
`::` are put together again, and a name before parentheses is a call.
"""

import re

from cleats.toolsets.code.analysis.facts import CallArgument
from cleats.toolsets.code.analysis.languages.syntax import NO_NODE
from cleats.toolsets.code.analysis.languages.table import kind_set
from cleats.toolsets.code.analysis.languages.walk import MAX_TEXT_CHARS, SyntaxWalker, ValueFlow

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
                    self._record_read(name)
        else:
            walk.visit(node, self._flow)

    def _end_chain(self) -> None:
        if self._name_chain and not self._name_chain.endswith("()"):
            self._record_read(self._name_chain)
        self._name_chain = ""

    def _record_read(self, name: str) -> None:
        self._walk.frame.reads[name] = None
        self._flow.names.append(name)

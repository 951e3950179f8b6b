"""Macro calls of Rust, whose arguments are mere tokens: names, calls and text found in them.

The grammar keeps what stands between the parentheses of a macro as a flat run of tokens. Names that
are joined by `.` or `::` are put together again, and one before parentheses is a call.
"""

import re

from cleats.toolsets.code.facts import Argument
from cleats.toolsets.code.languages.syntax import NONE
from cleats.toolsets.code.languages.walk import LONGEST_TEXT, Flow, Walk, unique

PANICS = frozenset({"panic", "unreachable", "todo", "unimplemented"})

_NAMES = frozenset(
    {"identifier", "type_identifier", "field_identifier", "self", "super", "crate", "metavariable"}
)
_STRINGS = frozenset({"string_literal", "raw_string_literal"})
_CAPTURED = re.compile(r"(?<!\{)\{([a-z_]\w*)(?=[:}])")


def invoke(walk: Walk, node: int, flow: Flow | None) -> bool:
    """A hook for macro calls."""
    if flow is None:
        saved, walk.calls = walk.calls, []
        invoke(walk, node, value := Flow())
        walk.step(node, [], value)
        walk.calls = saved
        return True
    syntax = walk.syntax
    named, tree = syntax.child(node, "macro"), syntax.child(node, "token_tree")
    name = "".join(syntax.text(named).split()) if named != NONE else ""
    arguments = _arguments(walk, tree) if tree != NONE else []
    walk.record_call(node, f"{name}!", arguments, flow)
    last = name.rpartition("::")[2]
    if last in PANICS:
        walk.frame.throws["panic"] = walk.frame.throws[last] = None
    return True


def read_tokens(walk: Walk, node: int, flow: Flow | None) -> bool:
    """A hook for tokens anywhere else, such as the right side of a rule."""
    _Tokens(walk, flow or Flow()).read(list(walk.syntax.children(node)))
    return True


def _arguments(walk: Walk, tree: int) -> list[Argument]:
    syntax = walk.syntax
    runs: list[list[int]] = [[]]
    at = syntax.starts[tree] + 1
    for child in syntax.children(tree):
        if runs[-1] and b"," in syntax.data[at : syntax.starts[child]]:
            runs.append([])
        runs[-1].append(child)
        at = syntax.ends[child]
    arguments = []
    for run in runs:
        if run:
            _Tokens(walk, flow := Flow()).read(run)
            arguments.append(Argument(unique(flow.names), flow.calls, flow.text[:LONGEST_TEXT]))
    return arguments


class _Tokens:
    """A run of tokens that is put together to names and calls."""

    def __init__(self, walk: Walk, flow: Flow) -> None:
        self._walk = walk
        self._flow = flow
        self._chain = ""
        """The name so far."""

    def read(self, run: list[int]) -> None:
        syntax = self._walk.syntax
        end = -1
        for node in run:
            gap = syntax.data[end : syntax.starts[node]].strip() if end >= 0 else b""
            kind = syntax.kinds[node]
            if kind == "token_tree":
                self._tree(node, gap)
            elif kind in _NAMES:
                self._name(syntax.text(node), gap.decode("utf-8", "replace"))
            else:
                self._end_chain()
                self._other(node)
            end = syntax.ends[node]
        self._end_chain()

    def _tree(self, node: int, gap: bytes) -> None:
        walk, opening = self._walk, self._walk.syntax.data[self._walk.syntax.starts[node]]
        inner = list(walk.syntax.children(node))
        if self._chain and opening == ord("(") and gap in (b"", b"!"):
            callee = self._chain + gap.decode()
            walk.record_call(node, callee, _arguments(walk, node), self._flow)
            self._chain = f"{callee}()"
        elif self._chain and opening == ord("[") and not gap:
            _Tokens(walk, Flow()).read(inner)
            self._chain += "[]"
        else:
            self._end_chain()
            _Tokens(walk, self._flow).read(inner)

    def _name(self, name: str, gap: str) -> None:
        if self._chain and gap in (".", "::"):
            if name == "await":
                self._walk.frame.awaits[self._chain.removesuffix("()")] = None
            else:
                self._chain += gap + name
        else:
            self._end_chain()
            self._chain = name

    def _other(self, node: int) -> None:
        syntax = self._walk.syntax
        if syntax.kinds[node] in _STRINGS:
            text = syntax.child(node, "string_content")
            if text != NONE:
                self._flow.text += syntax.text(text)[:LONGEST_TEXT]
                for name in _CAPTURED.findall(syntax.text(text)):
                    self._read_name(name)
        else:
            self._walk.visit(node, self._flow)

    def _end_chain(self) -> None:
        if self._chain and not self._chain.endswith("()"):
            self._read_name(self._chain)
        self._chain = ""

    def _read_name(self, name: str) -> None:
        self._walk.frame.reads[name] = None
        self._flow.names.append(name)

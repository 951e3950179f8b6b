"""Where JavaScript takes objects apart, and what functions without a name are given.

`const { a } = x` gives `x.a`. The parameters of a function that is handed to a call are what the
call gives it, and `{}` stands for that: in `xs.map((x) => …)` the name `x` has the value of
`xs.map().{}`, in `app.get("/", ({ query }) => …)` the name `query` that of `app.get().{}.query`.
"""

import re
from collections.abc import Iterator

from cleats.toolsets.code.facts import Step
from cleats.toolsets.code.languages.assignments import assign
from cleats.toolsets.code.languages.syntax import NONE, Syntax
from cleats.toolsets.code.languages.walk import Flow, Walk

GIVEN = "{}"
EACH = frozenset(
    {"map", "flatMap", "forEach", "filter", "reduce", "some", "every", "find", "each", "then"}
)
"""Methods that give a function what they are called on, or what is in it."""
LONGEST_CALLEE = 120
"""Bytes of what is called, with the arguments in it; longer chains are not looked at."""

_INNERMOST = re.compile(r"\([^()]*\)|\s+|[?!](?=\.)")
_NAME = re.compile(r"[\w$][\w$.\x00]*")


def destructured(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`const { a, b: { c } } = x`: every name has its own part of the value."""
    syntax = walk.syntax
    pattern = node + 1
    if pattern == syntax.stops[node] or syntax.kinds[pattern] != "object_pattern":
        return False
    steps = walk.frame.steps
    before = len(steps)
    assign(walk, node, flow)
    # Only the last one: what the defaults in the pattern do comes before it.
    whole = steps[-1] if len(steps) > before else None
    if whole is not None and whole.targets and len(whole.names) == 1 and not whole.calls:
        steps.pop()
        _take(walk, pattern, whole.names[0])
    return True


def handed(walk: Walk, node: int, _flow: Flow | None) -> bool:
    """A function without a name: what its parameters are, if it is handed to a call."""
    syntax = walk.syntax
    given = syntax.child(node, "parameters", "parameter")
    if given == NONE:
        return False
    plain, patterns = _parameters(syntax, given)
    callee = _callee(syntax, node)
    if plain and callee.rpartition(".")[2] in EACH:
        _note(walk, given, plain, f"{callee}().{GIVEN}")
    for pattern in patterns:
        _take(walk, pattern, f"{callee}().{GIVEN}" if callee else GIVEN)
    return False


def _parameters(syntax: Syntax, node: int) -> tuple[list[str], list[int]]:
    """The names among parameters, and the patterns."""
    if syntax.kinds[node] == "identifier":
        return [syntax.text(node)], []
    plain: list[str] = []
    patterns: list[int] = []
    for child in syntax.children(node):
        # TypeScript has the name and the pattern in a node of their own.
        named = syntax.child(child, "pattern") if syntax.fields[child] != "pattern" else NONE
        at = child if named == NONE else named
        if syntax.kinds[at] == "assignment_pattern":
            at += 1
        if syntax.kinds[at] == "identifier":
            plain.append(syntax.text(at))
        elif syntax.kinds[at] == "object_pattern":
            patterns.append(at)
    return plain, patterns


def _callee(syntax: Syntax, node: int) -> str:
    """What a function is handed to, without arguments; empty when that is not a name."""
    parent = syntax.parents[node]
    if syntax.kinds[parent] == "arguments":
        called = syntax.child(syntax.parents[parent], "function")
    elif syntax.kinds[parent] == "pair":
        called = syntax.child(parent, "key")
    else:
        return ""
    if called == NONE or syntax.ends[called] - syntax.starts[called] > LONGEST_CALLEE:
        return ""
    text = syntax.text(called)
    if not text.isidentifier():
        while (shorter := _INNERMOST.sub(_emptied, text)) != text:
            text = shorter
        if not _NAME.fullmatch(text):
            return ""
    return text.replace("\x00", "()")


def _emptied(match: "re.Match[str]") -> str:
    return "\x00" if match[0][0] == "(" else ""


def _take(walk: Walk, pattern: int, value: str) -> None:
    for name, part in _parts(walk.syntax, pattern, value):
        _note(walk, pattern, [name], part)


def _note(walk: Walk, node: int, names: list[str], value: str) -> None:
    syntax = walk.syntax
    line = syntax.line(syntax.starts[node])
    walk.frame.steps.append(Step(line, names, [value], [], [], "", walk.block))


def _parts(syntax: Syntax, node: int, value: str) -> Iterator[tuple[str, str]]:
    """Every name in a pattern, and what of the value it is given."""
    kind = syntax.kinds[node]
    if kind in ("identifier", "shorthand_property_identifier_pattern"):
        yield syntax.text(node), value
    elif kind in ("assignment_pattern", "object_assignment_pattern"):
        yield from _parts(syntax, node + 1, value)
    elif kind == "object_pattern":
        for child in syntax.children(node):
            yield from _property(syntax, child, value)
    elif kind in ("array_pattern", "rest_pattern"):
        inner = f"{value}[]" if kind == "array_pattern" else value
        for child in syntax.children(node):
            yield from _parts(syntax, child, inner)


def _property(syntax: Syntax, node: int, value: str) -> Iterator[tuple[str, str]]:
    kind = syntax.kinds[node]
    if kind == "pair_pattern":
        key, inner = syntax.child(node, "key"), syntax.child(node, "value")
        if NONE in (key, inner):
            return
        name = syntax.text(key).strip("\"'")
        part = f"{value}.{name}" if name.isidentifier() else f"{value}[]"
        yield from _parts(syntax, inner, part)
    elif kind == "rest_pattern":
        yield from _parts(syntax, node, value)
    else:
        named = node + 1 if kind == "object_assignment_pattern" else node
        yield from _parts(syntax, named, f"{value}.{syntax.text(named)}")

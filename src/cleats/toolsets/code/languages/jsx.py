"""Elements in JavaScript: a component is called with its attributes, a tag is given them."""

from collections.abc import Iterator

from cleats.toolsets.code.facts import Argument
from cleats.toolsets.code.languages.syntax import NONE
from cleats.toolsets.code.languages.walk import Flow, Walk


def element(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`<Row id={a}/>` calls `Row`; `<b title={a}/>` gives `b.title` a value."""
    if flow is None:
        saved, walk.calls = walk.calls, []
        element(walk, node, value := Flow())
        walk.step(node, [], value)
        walk.calls = saved
        return True
    named = walk.syntax.child(node, "name")
    name = walk.syntax.text(named) if named != NONE else ""  # a fragment has none
    if name[:1].isupper() or "." in name:
        walk.record_call(node, name, list(_given(walk, node)), flow)
    else:
        _set(walk, node, name)
    return True


def closed(_walk: Walk, _node: int, _flow: Flow | None) -> bool:
    """The end of an element says nothing new."""
    return True


def _given(walk: Walk, node: int) -> Iterator[Argument]:
    for name, value in _attributes(walk, node):
        yield walk.argument(value, name)


def _set(walk: Walk, node: int, tag: str) -> None:
    for name, value in _attributes(walk, node):
        saved, walk.calls = walk.calls, []
        walk.visit(value, flow := Flow())
        if flow.names or flow.calls:
            walk.step(value, [f"{tag}.{name}"], flow)
        walk.calls = saved


def _attributes(walk: Walk, node: int) -> Iterator[tuple[str, int]]:
    syntax = walk.syntax
    for child in syntax.children(node):
        if syntax.kinds[child] == "jsx_expression":  # {...spread}
            yield "", child
        elif syntax.kinds[child] == "jsx_attribute":
            name, value = child + 1, syntax.stops[child + 1]
            if value < syntax.stops[child]:
                yield syntax.text(name), value

"""What a program asks by the operator `in`, in the languages that have it as one."""

from cleats.toolsets.code.facts import Invocation
from cleats.toolsets.code.languages.walk import Flow, Walk


def membership(walk: Walk, node: int, flow: Flow | None) -> bool:
    """`x in xs` is kept as a call of `in`: whoever asks it first, may use `x` afterwards."""
    syntax = walk.syntax
    left = node + 1
    right = syntax.stops[left]
    stop = syntax.stops[node]
    if right >= stop or syntax.stops[right] != stop:
        return False
    if not syntax.data[syntax.ends[left] : syntax.starts[right]].rstrip().endswith(b"in"):
        return False
    saved = walk.calls
    if flow is None:
        walk.calls = []
    arguments = [walk.argument(left), walk.argument(right)]
    if arguments[0].names:
        walk.calls.append(Invocation("in", arguments, syntax.line(syntax.starts[node])))
    if flow is None:
        walk.step(node, [], Flow())
    walk.calls = saved
    return True

"""What an address begins with: who chooses only what comes behind a host chooses no host."""

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from cleats.toolsets.code.facts import BEHIND, Invocation, Step

_ADDRESS = re.compile(
    r"(?:location:\s*|redirect:)?(?:https?://[\w-][^/]*/|\.{0,2}/[^/\\\s]|[?#])", re.IGNORECASE
)
"""One with a host, a path or a query: what comes behind cannot make it another host's."""
_FORMATS = frozenset({"fmt.Sprintf", "String.format", "sprintf", "util.format"})
"""Functions whose result begins as the first argument does."""


def is_formatted(step: Step) -> bool:
    """Whether the value of a step is that of a function which puts values into a text."""
    return bool(step.outer) and step.calls[step.outer[0]].callee in _FORMATS


def is_rooted(
    names: Sequence[str],
    calls: Sequence[Invocation],
    text: str,
    rooted: AbstractSet[str],
    is_ours: Callable[[str], bool],
) -> bool:
    """Whether a value begins with what nobody else chose.

    Args:
        names: What it is made of, as a step or an argument says it.
        calls: The calls in it.
        text: The literal text in it.
        rooted: Names whose value begins so.
        is_ours: Whether nobody else chose the value of a name.
    """
    if text and not text.startswith(BEHIND):
        return _ADDRESS.match(text) is not None
    if not names:
        made = [
            argument.text
            for call in calls[:1]
            if call.callee in _FORMATS
            for argument in call.arguments[:1]
        ]
        return any(_ADDRESS.match(each) for each in made)
    if names[0] in rooted:
        return True
    # Without a slash between them, they may as well be one or the other.
    joined = len(names) > 1 and not calls and text.startswith(f"{BEHIND}/")
    return joined and is_ours(names[0])

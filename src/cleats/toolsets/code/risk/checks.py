"""What a program asks about a value before it uses it: whether it is one of those allowed.

Only what is asked is read here. That the answer is heeded is taken for granted: nobody asks whether
a name is allowed, and goes on with it if it is not.
"""

from collections.abc import Iterator, Sequence

from cleats.toolsets.code.facts import Invocation
from cleats.toolsets.code.risk.rules import CallRule

RECEIVER = -1
"""The object that a method is called on, among the positions that a rule checks."""

_REQUESTS, _FILES = ["redirect", "ssrf"], ["path", "file-write"]
_VOUCHING = {
    "host": _REQUESTS,
    "hostname": _REQUESTS,
    "netloc": _REQUESTS,
    "origin": _REQUESTS,
    "domain": _REQUESTS,
    "parents": _FILES,
}
"""Parts of a value: who asks whether one is allowed asks it about the whole, for some sinks."""


_REGISTERS = frozenset({"get", "post", "put", "patch", "delete", "all", "use"})


def is_registered(call: Invocation) -> bool:
    """Whether a call takes a function without a name that is to answer requests: a handler."""
    if call.callee.rpartition(".")[2] not in _REGISTERS or not call.arguments:
        return False
    last = call.arguments[-1]
    return not (last.names or last.calls or last.text)


def asked(rule: CallRule, call: Invocation, receiver: str) -> list[str]:
    """The names that a call asks about.

    An element is one of many, and which of them is meant is not known, so it is left out. Nor is a
    name that is compared with literal text alone: `url.startswith("http")` allows nearly all.
    """
    arguments = call.arguments
    names = [
        name
        for position, argument in enumerate(arguments)
        if position in rule.checks
        for name in argument.names
    ]
    if RECEIVER in rule.checks and (
        not arguments or any(argument.names or argument.calls for argument in arguments)
    ):
        names.append(receiver)
    return [name for name in names if not name.endswith("[]")]


def vouched(
    call: Invocation, calls: Sequence[Invocation], values: Sequence[int]
) -> Iterator[tuple[int, str, list[str]]]:
    """The values of arguments that are parts, of what they are, and for which sinks that is good.

    `calls` are those of the step: in `allowed.contains(uri.getHost())` the part is a call. Nothing
    is said of an argument without a value.
    """
    for argument, value in zip(call.arguments, values, strict=True):
        if not value:
            continue
        for name in (*argument.names, *(calls[inner].callee for inner in argument.calls)):
            whole, _, part = name.rpartition(".")
            cleans = _VOUCHING.get(part.lower().removeprefix("get"))
            if cleans:
                yield value, whole, cleans

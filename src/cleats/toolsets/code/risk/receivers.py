"""Methods of what has no name: `(base / name).read_text()`.

Such a call says no receiver. What is in the object is kept as part of the value around the call.
"""

from collections.abc import Sequence

from cleats.toolsets.code.facts import Argument, Invocation, Step


def is_nameless(call: Invocation, calls: Sequence[Invocation]) -> bool:
    """Whether a method is called on what is no name, at once or after others that take nothing."""
    first, _, rest = call.callee.partition("()")
    if "." in first:
        return False
    return not rest or any(each.callee == first and not each.arguments for each in calls)


def around(step: Step, position: int) -> Step | Argument:
    """What the value of a call goes into: an argument of another, or the step itself."""
    for call in step.calls:
        for argument in call.arguments:
            if position in argument.calls:
                return argument
    return step

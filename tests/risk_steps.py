"""Functions made of steps by hand, and what is concluded about them alone."""

from collections.abc import Iterable, Sequence

from cleats.toolsets.code.facts import Argument, Chunk, Invocation, Step
from cleats.toolsets.code.risk.linking import conclude
from cleats.toolsets.code.risk.local import assess
from cleats.toolsets.code.risk.rules import load
from cleats.toolsets.code.risk.solving import solve
from cleats.toolsets.code.risk.summary import Risk, Summary

RULES = load()


def arg(*names: str, calls: Sequence[int] = (), text: str = "", keyword: str = "") -> Argument:
    return Argument(list(names), list(calls), text, keyword)


def call(callee: str, *arguments: Argument, line: int = 1) -> Invocation:
    return Invocation(callee, list(arguments), line)


def step(
    line: int,
    target: str = "",
    names: Iterable[str] = (),
    calls: Sequence[Invocation] = (),
    *,
    text: str = "",
    block: int = 0,
) -> Step:
    """A statement whose value is its names and its last call."""
    calls = [Invocation(each.callee, each.arguments, line) for each in calls]
    outer = [len(calls) - 1] if calls else []
    return Step(line, [target] if target else [], list(names), calls, outer, text, block)


def function(
    *steps: Step,
    params: Sequence[str] = (),
    loops: int = 0,
    signature: str = "",
    decorators: Sequence[str] = (),
) -> Chunk:
    return Chunk(
        "function",
        "f",
        0,
        1,
        1,
        9,
        params=list(params),
        loops=loops,
        steps=list(steps),
        signature=signature,
        decorators=list(decorators),
    )


def summary(chunk: Chunk, lang: str = "python", imports: Sequence[str] = ()) -> Summary:
    found = assess(chunk, lang, RULES, imports)
    assert found is not None
    return found


def risk(chunk: Chunk, lang: str = "python", imports: Sequence[str] = ()) -> Risk:
    found = summary(chunk, lang, imports)
    return conclude(found, solve(found, "a.py", {})) or Risk()


def flows(chunk: Chunk, lang: str = "python", imports: Sequence[str] = ()) -> list[str]:
    return [str(flow) for flow in risk(chunk, lang, imports).flows]

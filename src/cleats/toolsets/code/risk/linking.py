"""Flows across calls: a source in one function, the sink in another, others between.

A flow belongs to the function where both ends meet: the one in which the value of a source (its
own, or one that a function it calls returns) goes into a sink, or into a call whose parameter leads
to one. `via` names the functions between. The function with the sink keeps its sink but is given no
flow of its callers, or a helper would be blamed once for each of them.

Every round works out functions from what the round before knew about the functions they call, and
a round only has those for which something changed. So the answer does not depend on the order of
the input, a chain of n calls takes n rounds, and recursion ends when nothing changes any more.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cleats.toolsets.code.risk.resolution import Directory, Function, parameter
from cleats.toolsets.code.risk.rules import SEVERITIES
from cleats.toolsets.code.risk.solving import MOST_HOPS, Danger, Facts, Solved, Target, solve
from cleats.toolsets.code.risk.summary import Risk, Sanitizer, Sink, Source, Summary

_ROUNDS = MOST_HOPS + 2


class Linkable(NamedTuple):
    """A function as it is kept between builds."""

    key: int
    path: str
    name: str
    lang: str
    imports: Sequence[str]
    params: Sequence[str]
    summary: Summary | None


class _Edge(NamedTuple):
    call: int
    target: int


def link(functions: Iterable[Linkable]) -> dict[int, Risk]:
    """What is concluded about each function, by its key; those without anything are left out."""
    ordered = sorted(functions, key=lambda each: (each.path, each.name, each.key))
    directory = Directory([_function(one) for one in ordered])
    edges = [_edges(directory, ordered, number) for number in range(len(ordered))]
    callers: list[list[int]] = [[] for _ in ordered]
    for number, own in enumerate(edges):
        for edge in own:
            callers[edge.target].append(number)
    solved = _fixpoint(ordered, edges, callers)
    concluded = {}
    for one, result in zip(ordered, solved, strict=True):
        summary = one.summary
        if summary is not None and (result is not None or _speaks(summary)):
            risk = conclude(summary, result or Solved(capped=summary.capped))
            if risk is not None:
                concluded[one.key] = risk
    return concluded


def _speaks(summary: Summary) -> bool:
    return bool(summary.sources or summary.sinks or summary.sanitizers)


def _concerned(
    functions: Sequence[Linkable],
    edges: Sequence[Sequence[_Edge]],
    callers: Sequence[Sequence[int]],
) -> list[int]:
    """The functions that a flow may go through.

    Its ends meet in a function from which calls lead both to a source and to a sink; it goes
    through that one and through what calls lead to from there.
    """
    sources = [n for n, one in enumerate(functions) if one.summary and one.summary.sources]
    sinks = [n for n, one in enumerate(functions) if one.summary and one.summary.sinks]
    meeting = _reached(sources, callers) & _reached(sinks, callers)
    callees = [[edge.target for edge in own] for own in edges]
    return sorted(_reached(meeting, callees))


def _reached(start: Iterable[int], steps: Sequence[Sequence[int]]) -> set[int]:
    seen = set(start)
    waiting = list(seen)
    while waiting:
        for following in steps[waiting.pop()]:
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return seen


def _function(one: Linkable) -> Function:
    is_target = one.summary is not None and one.summary.is_callable
    return Function(one.path, one.name, one.lang, one.imports, one.params, is_target)


def _fixpoint(
    functions: Sequence[Linkable],
    edges: Sequence[Sequence[_Edge]],
    callers: Sequence[Sequence[int]],
) -> list[Solved | None]:
    solved: list[Solved | None] = [None] * len(functions)
    facts = [_NOTHING] * len(functions)
    concerned = _concerned(functions, edges, callers)
    waiting = [number for number in concerned if functions[number].summary is not None]
    within = set(waiting)
    params = {number: _wired(functions, edges[number], number) for number in waiting}
    for _ in range(_ROUNDS):
        results = []
        for number in waiting:
            one = functions[number]
            targets = {
                edge.call: Target(functions[edge.target].name, facts[edge.target], taken)
                for edge, taken in zip(edges[number], params[number], strict=True)
            }
            results.append(solve(one.summary or Summary(), one.path, targets))
        changed = set[int]()
        for number, result in zip(waiting, results, strict=True):
            solved[number] = result
            if result.facts != facts[number]:
                facts[number] = result.facts
                changed.update(within.intersection(callers[number]))
        if not changed:
            return solved
        waiting = sorted(changed)
    for number in waiting:
        unfinished = solved[number]
        if unfinished is not None:
            unfinished.capped = True
    return solved


def _edges(directory: Directory, functions: Sequence[Linkable], number: int) -> list[_Edge]:
    summary = functions[number].summary
    if summary is None:
        return []
    found = []
    for position, call in enumerate(summary.calls):
        if call.cleans:
            continue
        target = directory.find(number, call.callee, call.count)
        if target is not None:
            found.append(_Edge(position, target))
    return found


def _wired(
    functions: Sequence[Linkable], edges: Sequence[_Edge], number: int
) -> list[list[int | None]]:
    """For each edge, and each input of its call, the parameter that it becomes."""
    calls = (functions[number].summary or Summary()).calls
    return [
        [
            parameter(functions[edge.target].params, given.position, given.keyword)
            for given in calls[edge.call].inputs
        ]
        for edge in edges
    ]


_NOTHING = Facts()


def conclude(summary: Summary, solved: Solved) -> Risk | None:
    """Put together what is said about one function; None when there is nothing to say."""
    sources = {source.name: source for source in summary.sources}
    sources.update({source.name: source for source, _ in solved.met if source.name not in sources})
    dangers: list[Sink | Danger] = [sink for sink in summary.sinks if sink.alone]
    dangers.extend(danger for _, danger in solved.met)
    parts: list[Source | Sink | Danger | Sanitizer] = [
        *sources.values(),
        *dangers,
        *summary.sanitizers,
    ]
    if not parts:
        return None
    severity = max((SEVERITIES.index(danger.severity) for danger in dangers), default=0)
    return Risk(
        sources=list(sources),
        sinks=_distinct(danger.name for danger in dangers),
        sanitizers=_distinct(each.name for each in summary.sanitizers),
        tags=_distinct(tag for part in parts for tag in part.tags),
        categories=_distinct(part.category for part in parts),
        severity=SEVERITIES[severity or int(bool(sources))],
        flows=solved.flows,
        capped=solved.capped,
    )


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))

"""Flows across calls: a source in one function, the sink in another, others between.

A flow belongs to the function where both ends meet: the one in which the value of a source (its
own, or one that a function it calls returns) goes into a sink, or into a call whose parameter leads
to one. `via` names the functions between. The function with the sink keeps its sink but is given no
flow of its callers, or a helper would be blamed once for each of them.

Every round works out functions from what the round before knew about the functions they call, and
a round only has those for which something changed. So the answer does not depend on the order of
the input, a chain of n calls takes n rounds, and recursion ends when nothing changes any more.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from cleats.toolsets.code.risk.links import Linkable, Links
from cleats.toolsets.code.risk.resolution import parameter
from cleats.toolsets.code.risk.rules import SEVERITIES
from cleats.toolsets.code.risk.solving import MOST_HOPS, Danger, Facts, Solved, Target, solve
from cleats.toolsets.code.risk.summary import Risk, Sanitizer, Sink, Source, Summary

__all__ = ["Linkable", "link", "relink"]

_ROUNDS = MOST_HOPS + 2

Summaries: TypeAlias = Mapping[int, Summary | None]


def link(functions: Iterable[Linkable]) -> dict[int, Risk]:
    """What is concluded about each function, by its key; those without anything are left out."""
    every = list(functions)
    summaries = {one.key: one.summary for one in every}
    found = relink(Links(), (), every, lambda _: summaries)
    return {key: risk for key, risk in found.items() if risk is not None}


def relink(
    links: Links,
    gone: Iterable[str],
    come: Iterable[Linkable],
    read: Callable[[Sequence[int]], Summaries],
) -> dict[int, Risk | None]:
    """What is concluded after a change, about all for which it may be something else.

    Args:
        links: What was known before; it is brought up to date.
        gone: The files whose functions are no more, or not as they were.
        come: The functions that these files, and new ones, have now.
        read: Gives the summaries of functions.
    """
    change = links.change(gone, come)
    summaries = read(list(dict.fromkeys((*change.affected, *change.within))))
    solved = _fixpoint(links, change.within, summaries)
    concluded: dict[int, Risk | None] = {}
    for key in change.affected:
        summary, result = summaries[key], solved.get(key)
        concluded[key] = None
        if summary is not None and (result is not None or _speaks(summary)):
            concluded[key] = conclude(summary, result or Solved(capped=summary.capped))
    return concluded


def _speaks(summary: Summary) -> bool:
    return bool(summary.sources or summary.sinks or summary.sanitizers)


def _fixpoint(links: Links, within: Sequence[int], summaries: Summaries) -> dict[int, Solved]:
    """Work out functions and all that they lead to, in the order given."""
    facts: dict[int, Facts] = {}
    solved: dict[int, Solved] = {}
    waiting = [key for key in within if summaries[key] is not None]
    rank = {key: number for number, key in enumerate(waiting)}
    callers: dict[int, list[int]] = {key: [] for key in within}
    for key in waiting:
        for target in links.targets(key):
            callers[target].append(key)
    wired = {key: _wired(links, key, summaries[key] or Summary()) for key in waiting}
    for _ in range(_ROUNDS):
        results = []
        for key in waiting:
            targets = {
                position: Target(links.nodes[target].name, facts.get(target, _NOTHING), taken)
                for position, target, taken in wired[key]
            }
            results.append(solve(summaries[key] or Summary(), links.paths[key], targets))
        changed = set[int]()
        for key, result in zip(waiting, results, strict=True):
            solved[key] = result
            if result.facts != facts.get(key, _NOTHING):
                facts[key] = result.facts
                changed.update(callers[key])
        if not changed:
            return solved
        waiting = sorted(changed, key=rank.__getitem__)
    for key in waiting:
        solved[key].capped = True
    return solved


def _wired(links: Links, key: int, summary: Summary) -> list[tuple[int, int, list[int | None]]]:
    """Each call that goes somewhere, where, and for each of its inputs the parameter it becomes."""
    return [
        (
            call.position,
            call.target,
            [
                parameter(links.nodes[call.target].params, given.position, given.keyword)
                for given in summary.calls[call.position].inputs
            ],
        )
        for call in links.nodes[key].calls
        if call.target is not None
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

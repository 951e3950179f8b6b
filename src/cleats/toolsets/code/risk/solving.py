"""From a function's graph of values to flows, given what is known about the functions it calls.

An origin is a parameter (its position) or a source. For every node it is worked out which origins
its value may have, for which categories of sinks the value has been made harmless on the way, and
through which functions it went. Where two ways lead from one origin to one place, the better one
is kept: the one that was cleaned less, then the shorter, then the first by name, so that the answer
does not depend on the order of anything.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from cleats.toolsets.code.risk.summary import Call, Flow, Sink, Source, Summary

MOST_FLOWS = 150
"""Of one function."""
MOST_REACHED = 64
"""Sinks that a function's parameters reach, and values that it returns."""
MOST_HOPS = 6
"""Functions between a source and a sink; beyond, nobody believes the answer."""
ROUNDS = 4
HOP = 0.9
"""What is left of the confidence in a flow after each function it goes through."""


class Danger(NamedTuple):
    """A sink, wherever it is."""

    path: str
    line: int
    name: str
    category: str
    severity: str
    confidence: float
    tags: tuple[str, ...]


class Trail(NamedTuple):
    """How a value got somewhere. The smaller one is the better one."""

    cleaned: tuple[str, ...] = ()
    via: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, int, tuple[str, ...], tuple[str, ...]]:
        return len(self.cleaned), len(self.via), self.via, self.cleaned


SourceKey: TypeAlias = tuple[str, int, str]
Origin: TypeAlias = int | SourceKey
Trails: TypeAlias = dict[Origin, Trail]
K = TypeVar("K")


class Facts(Struct):
    """What callers need to know about a function."""

    returns: Trails = {}
    reaches: dict[tuple[int, Danger], Trail] = {}
    entries: dict[SourceKey, Source] = {}
    """The sources in `returns`."""


class Target(NamedTuple):
    """A function that a call goes to."""

    name: str
    facts: Facts
    params: Sequence[int | None]
    """For each input of the call the parameter that it becomes."""


class Solved(Struct):
    facts: Facts = field(default_factory=Facts)
    flows: list[Flow] = []
    met: list[tuple[Source, Danger]] = []
    """The source and the sink of each flow."""
    capped: bool = False


def solve(summary: Summary, path: str, targets: Mapping[int, Target]) -> Solved:
    """Work out one function. `targets` has the calls, by position, whose bodies are known."""
    return _Solver(summary, path, targets).solved()


class _Solver:
    def __init__(self, summary: Summary, path: str, targets: Mapping[int, Target]) -> None:
        self.summary = summary
        self.path = path
        self.targets = targets
        self.entries: dict[SourceKey, Source] = {}
        self.capped = summary.capped
        self.nodes: list[Trails] = [{position: _START} for position in range(summary.params)]
        for source in summary.sources:
            key = (path, source.line, source.name)
            self.entries[key] = source
            self.nodes.append({key: Trail(_joined(source.cleaned, ()))})
        self.first = len(self.nodes)
        self.nodes.extend({} for _ in summary.calls)

    def solved(self) -> Solved:
        # A call may depend on a later one, in a loop; each round carries values one step back.
        for _ in range(ROUNDS):
            changed = False
            for number in range(len(self.summary.calls)):
                changed |= self._pass(number)
            if not changed:
                break
        facts = Facts()
        flows: dict[tuple[SourceKey, Danger], Trail] = {}
        for sink in self.summary.sinks:
            danger = _danger(sink, self.path)
            for node in sink.nodes:
                self._meet(self.nodes[node], danger, _START, facts, flows)
        for number, target in self.targets.items():
            self._enter(self.summary.calls[number], target, facts, flows)
        for node in self.summary.returns:
            for origin, trail in self.nodes[node].items():
                _keep(facts.returns, origin, trail)
        facts.returns = self._bounded(facts.returns, _origin_order)
        facts.reaches = self._bounded(facts.reaches, lambda key: key)
        facts.entries = {
            origin: self.entries[origin] for origin in facts.returns if not isinstance(origin, int)
        }
        kept = sorted(flows)[:MOST_FLOWS]
        self.capped |= len(kept) < len(flows)
        met = [(self.entries[key], danger) for key, danger in kept]
        return Solved(facts, [self._flow(key, flows[key]) for key in kept], met, self.capped)

    def _pass(self, number: int) -> bool:
        """Let values through a call; whether its result has got anything new."""
        call = self.summary.calls[number]
        result = self.nodes[self.first + number]
        target = self.targets.get(number)
        if target is not None:
            return self._through(call, target, result)
        changed = False
        for given in call.inputs:
            for node in given.nodes:
                for origin, trail in list(self.nodes[node].items()):
                    out = _cleaned(trail, call.cleans) if call.cleans else trail
                    changed |= _keep(result, origin, out)
        return changed

    def _through(self, call: Call, target: Target, result: Trails) -> bool:
        changed = False
        for origin, inner in target.facts.returns.items():
            if not isinstance(origin, int):
                self.entries.setdefault(origin, target.facts.entries[origin])
                changed |= self._carry(result, origin, _START, target.name, inner)
                continue
            for given, param in zip(call.inputs, target.params, strict=True):
                if param == origin:
                    for node in given.nodes:
                        for outer_origin, outer in list(self.nodes[node].items()):
                            changed |= self._carry(result, outer_origin, outer, target.name, inner)
        return changed

    def _carry(self, result: Trails, origin: Origin, outer: Trail, name: str, inner: Trail) -> bool:
        trail = _follow(outer, name, inner)
        if len(trail.via) > MOST_HOPS:
            self.capped = True
            return False
        return _keep(result, origin, trail)

    def _enter(
        self,
        call: Call,
        target: Target,
        facts: Facts,
        flows: dict[tuple[SourceKey, Danger], Trail],
    ) -> None:
        """What the function called does with its parameters, it does with what is given to it."""
        for (param, danger), inner in target.facts.reaches.items():
            for given, meant in zip(call.inputs, target.params, strict=True):
                if meant != param:
                    continue
                step = _follow(_START, target.name, inner)
                for node in given.nodes:
                    self._meet(self.nodes[node], danger, step, facts, flows)

    def _meet(
        self,
        trails: Trails,
        danger: Danger,
        step: Trail,
        facts: Facts,
        flows: dict[tuple[SourceKey, Danger], Trail],
    ) -> None:
        for origin, trail in trails.items():
            if danger.category in trail.cleaned:
                continue
            whole = Trail(_joined(trail.cleaned, step.cleaned), (*trail.via, *step.via))
            if len(whole.via) > MOST_HOPS:
                self.capped = True
            elif isinstance(origin, int):
                _keep(facts.reaches, (origin, danger), whole)
            else:
                _keep(flows, (origin, danger), whole)

    def _bounded(self, found: dict[K, Trail], order: Callable[[K], Any]) -> dict[K, Trail]:
        kept = sorted(found, key=order)
        if len(kept) > MOST_REACHED:
            self.capped = True
            kept = kept[:MOST_REACHED]
        return {key: found[key] for key in kept}

    def _flow(self, key: tuple[SourceKey, Danger], trail: Trail) -> Flow:
        origin, danger = key
        source = self.entries[origin]
        sure = min(1.0, source.confidence * danger.confidence + 0.1) * HOP ** len(trail.via)
        return Flow(
            source.name,
            danger.name,
            danger.category,
            danger.severity,
            round(sure, 2),
            source.line,
            danger.line,
            list(trail.via),
            origin[0] if origin[0] != self.path else "",
            danger.path if danger.path != self.path else "",
        )


_START = Trail()
_NOWHERE: SourceKey = ("", 0, "")


def _follow(outer: Trail, name: str, inner: Trail) -> Trail:
    return Trail(_joined(outer.cleaned, inner.cleaned), (*outer.via, name, *inner.via))


def _cleaned(trail: Trail, categories: Sequence[str]) -> Trail:
    return Trail(_joined(trail.cleaned, categories), trail.via)


def _joined(left: Iterable[str], right: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*left, *right}))


def _danger(sink: Sink, path: str) -> Danger:
    return Danger(
        path, sink.line, sink.name, sink.category, sink.severity, sink.confidence, tuple(sink.tags)
    )


def _origin_order(origin: Origin) -> tuple[int, int, SourceKey]:
    return (0, origin, _NOWHERE) if isinstance(origin, int) else (1, 0, origin)


def _keep(found: dict[K, Trail], key: K, trail: Trail) -> bool:
    """Put in the better trail; whether that changed anything."""
    known = found.get(key)
    if known is not None and known.order <= trail.order:
        return False
    found[key] = trail
    return True

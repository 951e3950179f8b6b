"""Solves the value graph of one function for flows, given the facts about its callees.

An origin is a parameter (its position) or a source. For every node the solver finds the possible
origins of its value, the categories of sinks for which the value was made harmless on the way, and
the functions it went through. Of two paths from one origin to one node, the better one is kept: the
one cleaned for fewer categories, then the shorter, then the first by name, so that the result does
not depend on any order.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from cleats.toolsets.code.analysis.risk.summary import CallNode, FunctionSummary, RiskFlow, RiskSink, RiskSource

MAX_FUNCTION_FLOWS = 150
"""The most flows of one function."""
MAX_FUNCTION_FACTS = 64
"""The most sinks that the parameters of a function reach, and the most values that it returns."""
MAX_FLOW_HOPS = 6
"""The most functions between a source and a sink; longer flows are not credible."""
MAX_LOCAL_ROUNDS = 4
HOP_CONFIDENCE_FACTOR = 0.9
"""The factor for the confidence in a flow for each function that it goes through."""


class LocatedSink(NamedTuple):
    """A sink with its file."""

    path: str
    line: int
    name: str
    category: str
    severity: str
    confidence: float
    tags: tuple[str, ...]


class FlowPath(NamedTuple):
    """The way of a value from its origin. The smaller path is the better one."""

    cleaned: tuple[str, ...] = ()
    via: tuple[str, ...] = ()

    @property
    def sort_key(self) -> tuple[int, int, tuple[str, ...], tuple[str, ...]]:
        return len(self.cleaned), len(self.via), self.via, self.cleaned


SourceKey: TypeAlias = tuple[str, int, str]
Origin: TypeAlias = int | SourceKey
PathsByOrigin: TypeAlias = dict[Origin, FlowPath]
K = TypeVar("K")


class FunctionFacts(Struct):
    """The facts about a function that its callers need."""

    returns: PathsByOrigin = {}
    reaches: dict[tuple[int, LocatedSink], FlowPath] = {}
    returned_sources: dict[SourceKey, RiskSource] = {}
    """The sources in `returns`."""


class CallTarget(NamedTuple):
    """The function that a call goes to."""

    name: str
    facts: FunctionFacts
    params: Sequence[int | None]
    """The parameter that each input of the call becomes."""


class FlowSolution(Struct):
    facts: FunctionFacts = field(default_factory=FunctionFacts)
    flows: list[RiskFlow] = []
    flow_ends: list[tuple[RiskSource, LocatedSink]] = []
    """The source and the sink of each flow."""
    capped: bool = False


def solve_function(summary: FunctionSummary, path: str, targets: Mapping[int, CallTarget]) -> FlowSolution:
    """Solve one function; `targets` are the resolved calls by position."""
    return _FunctionSolver(summary, path, targets).solve()


class _FunctionSolver:
    def __init__(self, summary: FunctionSummary, path: str, targets: Mapping[int, CallTarget]) -> None:
        self.summary = summary
        self.path = path
        self.targets = targets
        self.sources: dict[SourceKey, RiskSource] = {}
        self.capped = summary.capped
        self.nodes: list[PathsByOrigin] = [{position: _EMPTY_PATH} for position in range(summary.params)]
        for source in summary.sources:
            key = (path, source.line, source.name)
            self.sources[key] = source
            self.nodes.append({key: FlowPath(_merge_sorted(source.cleaned, ()))})
        self.first_call_node = len(self.nodes)
        self.nodes.extend({} for _ in summary.calls)

    def solve(self) -> FlowSolution:
        # In a loop a call can depend on a later one; each round carries values one call back.
        for _ in range(MAX_LOCAL_ROUNDS):
            changed = False
            for number in range(len(self.summary.calls)):
                changed |= self._propagate_call(number)
            if not changed:
                break
        facts = FunctionFacts()
        flows: dict[tuple[SourceKey, LocatedSink], FlowPath] = {}
        for sink in self.summary.sinks:
            located_sink = _locate_sink(sink, self.path)
            for node in sink.nodes:
                self._record_reached_sink(self.nodes[node], located_sink, _EMPTY_PATH, facts, flows)
        for number, target in self.targets.items():
            self._apply_target_sinks(self.summary.calls[number], target, facts, flows)
        for node in self.summary.returns:
            for origin, flow_path in self.nodes[node].items():
                _keep_better(facts.returns, origin, flow_path)
        facts.returns = self._limit_entries(facts.returns, _origin_sort_key)
        facts.reaches = self._limit_entries(facts.reaches, lambda key: key)
        facts.returned_sources = {
            origin: self.sources[origin] for origin in facts.returns if not isinstance(origin, int)
        }
        kept_flows = sorted(flows)[:MAX_FUNCTION_FLOWS]
        self.capped |= len(kept_flows) < len(flows)
        flow_ends = [(self.sources[key], located_sink) for key, located_sink in kept_flows]
        return FlowSolution(facts, [self._build_flow(key, flows[key]) for key in kept_flows], flow_ends, self.capped)

    def _propagate_call(self, number: int) -> bool:
        """Propagate values through a call; return True if its result has changed."""
        call = self.summary.calls[number]
        result = self.nodes[self.first_call_node + number]
        target = self.targets.get(number)
        if target is not None:
            return self._propagate_through_target(call, target, result)
        changed = False
        for call_input in call.inputs:
            for node in call_input.nodes:
                for origin, flow_path in list(self.nodes[node].items()):
                    cleaned_path = _add_cleaned(flow_path, call.cleans) if call.cleans else flow_path
                    changed |= _keep_better(result, origin, cleaned_path)
        return changed

    def _propagate_through_target(self, call: CallNode, target: CallTarget, result: PathsByOrigin) -> bool:
        changed = False
        for origin, inner_path in target.facts.returns.items():
            if not isinstance(origin, int):
                self.sources.setdefault(origin, target.facts.returned_sources[origin])
                changed |= self._extend_path(result, origin, _EMPTY_PATH, target.name, inner_path)
                continue
            for call_input, param in zip(call.inputs, target.params, strict=True):
                if param == origin:
                    for node in call_input.nodes:
                        for outer_origin, outer_path in list(self.nodes[node].items()):
                            changed |= self._extend_path(result, outer_origin, outer_path, target.name, inner_path)
        return changed

    def _extend_path(
        self, result: PathsByOrigin, origin: Origin, outer_path: FlowPath, name: str, inner_path: FlowPath
    ) -> bool:
        flow_path = _join_paths(outer_path, name, inner_path)
        if len(flow_path.via) > MAX_FLOW_HOPS:
            self.capped = True
            return False
        return _keep_better(result, origin, flow_path)

    def _apply_target_sinks(
        self,
        call: CallNode,
        target: CallTarget,
        facts: FunctionFacts,
        flows: dict[tuple[SourceKey, LocatedSink], FlowPath],
    ) -> None:
        """Apply the sinks that the parameters of a callee reach to the inputs of the call."""
        for (param, located_sink), inner_path in target.facts.reaches.items():
            for call_input, input_param in zip(call.inputs, target.params, strict=True):
                if input_param != param:
                    continue
                call_path = _join_paths(_EMPTY_PATH, target.name, inner_path)
                for node in call_input.nodes:
                    self._record_reached_sink(self.nodes[node], located_sink, call_path, facts, flows)

    def _record_reached_sink(
        self,
        paths: PathsByOrigin,
        located_sink: LocatedSink,
        call_path: FlowPath,
        facts: FunctionFacts,
        flows: dict[tuple[SourceKey, LocatedSink], FlowPath],
    ) -> None:
        for origin, flow_path in paths.items():
            if located_sink.category in flow_path.cleaned:
                continue
            full_path = FlowPath(_merge_sorted(flow_path.cleaned, call_path.cleaned), (*flow_path.via, *call_path.via))
            if len(full_path.via) > MAX_FLOW_HOPS:
                self.capped = True
            elif isinstance(origin, int):
                _keep_better(facts.reaches, (origin, located_sink), full_path)
            else:
                _keep_better(flows, (origin, located_sink), full_path)

    def _limit_entries(self, entries: dict[K, FlowPath], sort_key: Callable[[K], Any]) -> dict[K, FlowPath]:
        keys = sorted(entries, key=sort_key)
        if len(keys) > MAX_FUNCTION_FACTS:
            self.capped = True
            keys = keys[:MAX_FUNCTION_FACTS]
        return {key: entries[key] for key in keys}

    def _build_flow(self, key: tuple[SourceKey, LocatedSink], flow_path: FlowPath) -> RiskFlow:
        origin, located_sink = key
        source = self.sources[origin]
        confidence = min(1.0, source.confidence * located_sink.confidence + 0.1) * HOP_CONFIDENCE_FACTOR ** len(
            flow_path.via
        )
        return RiskFlow(
            source.name,
            located_sink.name,
            located_sink.category,
            located_sink.severity,
            round(confidence, 2),
            source.line,
            located_sink.line,
            list(flow_path.via),
            origin[0] if origin[0] != self.path else "",
            located_sink.path if located_sink.path != self.path else "",
        )


_EMPTY_PATH = FlowPath()
_NO_SOURCE_KEY: SourceKey = ("", 0, "")


def _join_paths(outer_path: FlowPath, name: str, inner_path: FlowPath) -> FlowPath:
    return FlowPath(_merge_sorted(outer_path.cleaned, inner_path.cleaned), (*outer_path.via, name, *inner_path.via))


def _add_cleaned(flow_path: FlowPath, categories: Sequence[str]) -> FlowPath:
    return FlowPath(_merge_sorted(flow_path.cleaned, categories), flow_path.via)


def _merge_sorted(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*first, *second}))


def _locate_sink(sink: RiskSink, path: str) -> LocatedSink:
    return LocatedSink(path, sink.line, sink.name, sink.category, sink.severity, sink.confidence, tuple(sink.tags))


def _origin_sort_key(origin: Origin) -> tuple[int, int, SourceKey]:
    return (0, origin, _NO_SOURCE_KEY) if isinstance(origin, int) else (1, 0, origin)


def _keep_better(paths: dict[K, FlowPath], key: K, flow_path: FlowPath) -> bool:
    """Store the path if it is better than the current one; return True if it was stored."""
    current = paths.get(key)
    if current is not None and current.sort_key <= flow_path.sort_key:
        return False
    paths[key] = flow_path
    return True

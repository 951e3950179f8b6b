"""Flows across calls: the source in one function, the sink in another, with others in between.

A flow belongs to the function where both ends meet: the one in which the value of a source (its
own, or one returned by a called function) goes into a sink, or into a call whose parameter leads to
one. `via` names the functions in between. The function with the sink reports its sink but not the
flows of its callers; otherwise a helper would be reported once for each caller.

Every round solves functions with the facts that the previous round found about their callees, and a
round includes only functions for which something changed. So the result does not depend on the
order of the input, a chain of n calls takes n rounds, and recursion ends when nothing changes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from cleats.toolsets.code.analysis.risk.call_graph import CallGraph, LinkableFunction
from cleats.toolsets.code.analysis.risk.call_resolution import find_parameter
from cleats.toolsets.code.analysis.risk.rules import SEVERITY_LEVELS
from cleats.toolsets.code.analysis.risk.summary import FunctionSummary, Risk, RiskFlow, RiskSink, RiskSource

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

    def extend(self, cleaned: Iterable[str], via: Iterable[str] = ()) -> "FlowPath":
        """Return the path of the same value further on."""
        return FlowPath(tuple(sorted({*self.cleaned, *cleaned})), (*self.via, *via))


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


class FunctionSolver:
    """Solves one function; `targets` are the resolved calls by position."""

    def __init__(self, summary: FunctionSummary, path: str, targets: Mapping[int, CallTarget]) -> None:
        self.summary = summary
        self.path = path
        self.targets = targets
        self.capped = summary.capped
        self.facts = FunctionFacts()
        self.flows: dict[tuple[SourceKey, LocatedSink], FlowPath] = {}
        self.sources: dict[SourceKey, RiskSource] = {}
        self.nodes: list[PathsByOrigin] = [{position: _EMPTY_PATH} for position in range(summary.params)]
        for source in summary.sources:
            key = (path, source.line, source.name)
            self.sources[key] = source
            self.nodes.append({key: _EMPTY_PATH.extend(source.cleaned)})
        self.first_call_node = len(self.nodes)
        self.nodes.extend({} for _ in summary.calls)

    def solve(self) -> FlowSolution:
        # In a loop a call can depend on a later one; each round carries values one call back.
        for _ in range(MAX_LOCAL_ROUNDS):
            if not sum(self._propagate_call(number) for number in range(len(self.summary.calls))):
                break
        for sink in self.summary.sinks:
            located_sink = LocatedSink(
                self.path, sink.line, sink.name, sink.category, sink.severity, sink.confidence, tuple(sink.tags)
            )
            self._record_reached_sink(self._iter_paths(sink.nodes), located_sink, _EMPTY_PATH)
        for number, target in self.targets.items():
            # The sinks that the parameters of a callee reach are reached by the inputs of the call.
            for (param, located_sink), inner_path in target.facts.reaches.items():
                call_path = FlowPath(inner_path.cleaned, (target.name, *inner_path.via))
                self._record_reached_sink(self._iter_input_paths(number, target, param), located_sink, call_path)
        facts = self.facts
        for origin, flow_path in self._iter_paths(self.summary.returns):
            _keep_better(facts.returns, origin, flow_path)
        facts.returns = self._limit_entries(facts.returns, lambda origin: (not isinstance(origin, int), origin))
        facts.reaches = self._limit_entries(facts.reaches, lambda key: key)
        facts.returned_sources = {key: self.sources[key] for key in facts.returns if not isinstance(key, int)}
        kept_flows = sorted(self.flows)[:MAX_FUNCTION_FLOWS]
        self.capped |= len(kept_flows) < len(self.flows)
        flow_ends = [(self.sources[key], located_sink) for key, located_sink in kept_flows]
        flows = [self._build_flow(*key, self.flows[key]) for key in kept_flows]
        return FlowSolution(facts, flows, flow_ends, self.capped)

    def _iter_paths(self, nodes: Iterable[int]) -> Iterator[tuple[Origin, FlowPath]]:
        for node in nodes:
            yield from list(self.nodes[node].items())  # the result of a call can be its own input

    def _iter_input_paths(self, number: int, target: CallTarget, param: int) -> Iterator[tuple[Origin, FlowPath]]:
        """Yield the paths of the inputs of a call that become a parameter of its target."""
        for call_input, input_param in zip(self.summary.calls[number].inputs, target.params, strict=True):
            if input_param == param:
                yield from self._iter_paths(call_input.nodes)

    def _propagate_call(self, number: int) -> bool:
        call, target = self.summary.calls[number], self.targets.get(number)
        result = self.nodes[self.first_call_node + number]
        changed = False
        if target is None:
            for call_input in call.inputs:
                for origin, flow_path in self._iter_paths(call_input.nodes):
                    changed |= _keep_better(result, origin, flow_path.extend(call.cleans) if call.cleans else flow_path)
            return changed
        for inner_origin, inner_path in target.facts.returns.items():
            outer_paths: Iterable[tuple[Origin, FlowPath]] = [(inner_origin, _EMPTY_PATH)]
            if isinstance(inner_origin, int):
                outer_paths = self._iter_input_paths(number, target, inner_origin)
            else:
                self.sources.setdefault(inner_origin, target.facts.returned_sources[inner_origin])
            for origin, outer_path in outer_paths:
                flow_path = outer_path.extend(inner_path.cleaned, (target.name, *inner_path.via))
                changed |= self._is_short(flow_path) and _keep_better(result, origin, flow_path)
        return changed

    def _is_short(self, flow_path: FlowPath) -> bool:
        is_short = len(flow_path.via) <= MAX_FLOW_HOPS
        self.capped |= not is_short
        return is_short

    def _record_reached_sink(
        self, paths: Iterable[tuple[Origin, FlowPath]], located_sink: LocatedSink, call_path: FlowPath
    ) -> None:
        for origin, flow_path in paths:
            if located_sink.category in flow_path.cleaned:
                continue
            full_path = flow_path.extend(call_path.cleaned, call_path.via)
            if not self._is_short(full_path):
                continue
            if isinstance(origin, int):
                _keep_better(self.facts.reaches, (origin, located_sink), full_path)
            else:
                _keep_better(self.flows, (origin, located_sink), full_path)

    def _limit_entries(self, entries: dict[K, FlowPath], sort_key: Callable[[K], Any]) -> dict[K, FlowPath]:
        keys = sorted(entries, key=sort_key)
        self.capped |= len(keys) > MAX_FUNCTION_FACTS
        return {key: entries[key] for key in keys[:MAX_FUNCTION_FACTS]}

    def _build_flow(self, origin: SourceKey, sink: LocatedSink, flow_path: FlowPath) -> RiskFlow:
        source = self.sources[origin]
        confidence = min(1.0, source.confidence * sink.confidence + 0.1)
        return RiskFlow(
            source.name,
            sink.name,
            sink.category,
            sink.severity,
            round(confidence * HOP_CONFIDENCE_FACTOR ** len(flow_path.via), 2),
            source.line,
            sink.line,
            list(flow_path.via),
            origin[0] if origin[0] != self.path else "",
            sink.path if sink.path != self.path else "",
        )


_EMPTY_PATH = FlowPath()


def _keep_better(paths: dict[K, FlowPath], key: K, flow_path: FlowPath) -> bool:
    current = paths.get(key)
    if current is not None and current.sort_key <= flow_path.sort_key:
        return False
    paths[key] = flow_path
    return True


__all__ = ["LinkableFunction", "link_functions", "update_links"]

_MAX_ROUNDS = MAX_FLOW_HOPS + 2

SummariesByKey: TypeAlias = Mapping[int, FunctionSummary | None]


def link_functions(functions: Iterable[LinkableFunction]) -> dict[int, Risk]:
    """Return the risk of each function by its key, without functions that have none."""
    all_functions = list(functions)
    summaries = {function.key: function.summary for function in all_functions}
    risks = update_links(CallGraph(), (), all_functions, lambda _: summaries)
    return {key: risk for key, risk in risks.items() if risk is not None}


def update_links(
    call_graph: CallGraph,
    removed_paths: Iterable[str],
    added_functions: Iterable[LinkableFunction],
    load_summaries: Callable[[Sequence[int]], SummariesByKey],
) -> dict[int, Risk | None]:
    """Update the call graph and return the risk of every function that a change can affect.

    The files of removed or changed functions are removed; all functions that these and new files have now are added.
    """
    change = call_graph.apply_change(removed_paths, added_functions)
    summaries = load_summaries(list(dict.fromkeys((*change.affected, *change.on_flow))))
    solutions = _solve_to_fixpoint(call_graph, change.on_flow, summaries)
    risks: dict[int, Risk | None] = {}
    for key in change.affected:
        summary, solution = summaries[key], solutions.get(key)
        risks[key] = None
        if summary is not None and (solution or summary.sources or summary.sinks or summary.sanitizers):
            risks[key] = build_risk(summary, solution or FlowSolution(capped=summary.capped))
    return risks


def _solve_to_fixpoint(
    call_graph: CallGraph, keys: Sequence[int], summaries: SummariesByKey
) -> dict[int, FlowSolution]:
    facts: dict[int, FunctionFacts] = {}
    solutions: dict[int, FlowSolution] = {}
    pending = [key for key in keys if summaries[key] is not None]
    rank = {key: number for number, key in enumerate(pending)}
    callers = call_graph.find_callers(pending)
    resolved_calls = {key: _resolve_inputs(call_graph, key, summaries[key] or FunctionSummary()) for key in pending}
    for _ in range(_MAX_ROUNDS):
        results = []
        for key in pending:
            targets = {
                position: CallTarget(call_graph.nodes[target].name, facts.get(target, _EMPTY_FACTS), parameters)
                for position, target, parameters in resolved_calls[key]
            }
            summary = summaries[key] or FunctionSummary()
            results.append(FunctionSolver(summary, call_graph.paths[key], targets).solve())
        changed = set[int]()
        for key, result in zip(pending, results, strict=True):
            solutions[key] = result
            if result.facts != facts.get(key, _EMPTY_FACTS):
                facts[key] = result.facts
                changed.update(callers[key])
        if not changed:
            return solutions
        pending = sorted(changed, key=rank.__getitem__)
    for key in pending:
        solutions[key].capped = True
    return solutions


def _resolve_inputs(
    call_graph: CallGraph, key: int, summary: FunctionSummary
) -> list[tuple[int, int, list[int | None]]]:
    """Return position, target, and the parameter for each input, of every resolved call."""
    return [
        (
            call.position,
            call.target,
            [
                find_parameter(call_graph.nodes[call.target].params, call_input.position, call_input.keyword)
                for call_input in summary.calls[call.position].inputs
            ],
        )
        for call in call_graph.nodes[key].calls
        if call.target is not None
    ]


_EMPTY_FACTS = FunctionFacts()


def build_risk(summary: FunctionSummary, solution: FlowSolution) -> Risk | None:
    """Combine the results for one function into its risk, or None if there is nothing to report."""
    sources = {source.name: source for source in summary.sources}
    for source, _ in solution.flow_ends:
        sources.setdefault(source.name, source)
    reported_sinks: list[RiskSink | LocatedSink] = [sink for sink in summary.sinks if sink.alone]
    reported_sinks.extend(reported_sink for _, reported_sink in solution.flow_ends)
    parts = (*sources.values(), *reported_sinks, *summary.sanitizers)
    if not parts:
        return None
    severity = max((SEVERITY_LEVELS.index(sink.severity) for sink in reported_sinks), default=0)
    return Risk(
        sources=list(sources),
        sinks=list(dict.fromkeys(sink.name for sink in reported_sinks)),
        sanitizers=list(dict.fromkeys(sanitizer.name for sanitizer in summary.sanitizers)),
        tags=list(dict.fromkeys(tag for part in parts for tag in part.tags)),
        categories=list(dict.fromkeys(part.category for part in parts)),
        severity=SEVERITY_LEVELS[severity or int(bool(sources))],
        flows=solution.flows,
        capped=solution.capped,
    )

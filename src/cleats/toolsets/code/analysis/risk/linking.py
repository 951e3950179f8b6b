"""Flows across calls: the source in one function, the sink in another, with others in between.

A flow belongs to the function where both ends meet: the one in which the value of a source (its
own, or one returned by a called function) goes into a sink, or into a call whose parameter leads to
one. `via` names the functions in between. The function with the sink reports its sink but not the
flows of its callers; otherwise a helper would be reported once for each caller.

Every round solves functions with the facts that the previous round found about their callees, and a
round includes only functions for which something changed. So the result does not depend on the
order of the input, a chain of n calls takes n rounds, and recursion ends when nothing changes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from cleats.toolsets.code.analysis.risk.call_graph import CallGraph, LinkableFunction
from cleats.toolsets.code.analysis.risk.call_resolution import find_parameter
from cleats.toolsets.code.analysis.risk.flow_solver import (
    MAX_FLOW_HOPS,
    CallTarget,
    FlowSolution,
    FunctionFacts,
    LocatedSink,
    solve_function,
)
from cleats.toolsets.code.analysis.risk.rules import SEVERITY_LEVELS
from cleats.toolsets.code.analysis.risk.summary import FunctionSummary, Risk, RiskSanitizer, RiskSink, RiskSource

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

    Args:
        call_graph: The call graph before the change; it is updated.
        removed_paths: The files whose functions were removed or changed.
        added_functions: The functions that these files, and new ones, have now.
        load_summaries: Returns the summaries of functions.
    """
    change = call_graph.apply_change(removed_paths, added_functions)
    summaries = load_summaries(list(dict.fromkeys((*change.affected, *change.on_flow))))
    solutions = _solve_to_fixpoint(call_graph, change.on_flow, summaries)
    risks: dict[int, Risk | None] = {}
    for key in change.affected:
        summary, solution = summaries[key], solutions.get(key)
        risks[key] = None
        if summary is not None and (solution is not None or _has_findings(summary)):
            risks[key] = build_risk(summary, solution or FlowSolution(capped=summary.capped))
    return risks


def _has_findings(summary: FunctionSummary) -> bool:
    return bool(summary.sources or summary.sinks or summary.sanitizers)


def _solve_to_fixpoint(
    call_graph: CallGraph, keys: Sequence[int], summaries: SummariesByKey
) -> dict[int, FlowSolution]:
    """Solve functions and everything that they call, in the given order."""
    facts: dict[int, FunctionFacts] = {}
    solutions: dict[int, FlowSolution] = {}
    pending = [key for key in keys if summaries[key] is not None]
    rank = {key: number for number, key in enumerate(pending)}
    callers: dict[int, list[int]] = {key: [] for key in keys}
    for key in pending:
        for target in call_graph.iter_targets(key):
            callers[target].append(key)
    resolved_calls = {key: _resolve_inputs(call_graph, key, summaries[key] or FunctionSummary()) for key in pending}
    for _ in range(_MAX_ROUNDS):
        results = []
        for key in pending:
            targets = {
                position: CallTarget(call_graph.nodes[target].name, facts.get(target, _EMPTY_FACTS), parameters)
                for position, target, parameters in resolved_calls[key]
            }
            results.append(solve_function(summaries[key] or FunctionSummary(), call_graph.paths[key], targets))
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
    sources.update({source.name: source for source, _ in solution.flow_ends if source.name not in sources})
    reported_sinks: list[RiskSink | LocatedSink] = [sink for sink in summary.sinks if sink.alone]
    reported_sinks.extend(reported_sink for _, reported_sink in solution.flow_ends)
    parts: list[RiskSource | RiskSink | LocatedSink | RiskSanitizer] = [
        *sources.values(),
        *reported_sinks,
        *summary.sanitizers,
    ]
    if not parts:
        return None
    severity = max((SEVERITY_LEVELS.index(reported_sink.severity) for reported_sink in reported_sinks), default=0)
    return Risk(
        sources=list(sources),
        sinks=_unique_values(reported_sink.name for reported_sink in reported_sinks),
        sanitizers=_unique_values(sanitizer.name for sanitizer in summary.sanitizers),
        tags=_unique_values(tag for part in parts for tag in part.tags),
        categories=_unique_values(part.category for part in parts),
        severity=SEVERITY_LEVELS[severity or int(bool(sources))],
        flows=solution.flows,
        capped=solution.capped,
    )


def _unique_values(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))

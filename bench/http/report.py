"""The figures as a table, and the targets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bench.calls.machine import MAX_OTHERS_SHARE
from bench.http.measure import RouteSample
from bench.ratios import Ratio, divide_figures

BARE_ROUTE = "bare Starlette /health"


class RouteTarget(NamedTuple):
    """The highest CPU cost of a route, as a multiple of a reference."""

    route: str
    reference: str
    max_ratio: float


ROUTE_TARGETS = (
    RouteTarget("GET /health", BARE_ROUTE, 1.6),
    RouteTarget("POST /search", "search in process", 1.5),
)


def render_report(
    samples: Mapping[str, Sequence[RouteSample]],
    in_process_costs: Mapping[str, Sequence[float]],
    hang_up_times: Sequence[float],
    others_share: float,
    notes: Sequence[str],
) -> str:
    """Render the report with the best round of each, as noise only makes a figure worse."""
    rough = ": the figures are rough, run again when it is quiet" if others_share > MAX_OTHERS_SHARE else ""
    costs = _best_costs(samples, in_process_costs)
    return "\n".join(
        [
            f"Other processes took {others_share:.0%} of the CPUs{rough}.",
            "",
            *_render_table(samples, costs),
            "",
            *([f"streams hung up and cleaned up in {min(hang_up_times):.0f} ms"] if hang_up_times else []),
            *notes,
            "",
            "Targets",
            *_render_targets(costs),
        ]
    )


def compute_ratios(
    samples: Mapping[str, Sequence[RouteSample]], in_process_costs: Mapping[str, Sequence[float]]
) -> list[Ratio]:
    """Compute the CPU cost of routes relative to a bare route and to the tool without HTTP."""
    costs = _best_costs(samples, in_process_costs)
    all_ratios = []
    for route in samples:
        if route != BARE_ROUTE:
            references = (BARE_ROUTE, f"{route.rpartition('/')[2]} in process")
            reference_costs = {name: costs[name] for name in references if name in costs}
            all_ratios += divide_figures(f"{route}, CPU", costs[route], reference_costs)
    return all_ratios


def _best_costs(
    samples: Mapping[str, Sequence[RouteSample]], in_process_costs: Mapping[str, Sequence[float]]
) -> dict[str, float]:
    costs = {name: min(sample.cpu_us for sample in rounds) for name, rounds in samples.items()}
    return costs | {f"{tool} in process": min(rounds) for tool, rounds in in_process_costs.items()}


def _render_table(samples: Mapping[str, Sequence[RouteSample]], costs: Mapping[str, float]) -> Iterator[str]:
    width = max(map(len, costs))
    yield f"{'':{width}}  {'requests/s':>10}  {'CPU µs':>8}"
    for name, cost in costs.items():
        rate = max((sample.rate for sample in samples.get(name, ())), default=0)
        yield f"{name:{width}}  {f'{rate:,.0f}' if rate else '-':>10}  {cost:8.1f}"


def _render_targets(costs: Mapping[str, float]) -> Iterator[str]:
    for target in ROUTE_TARGETS:
        promise = f"{target.route} at most {target.max_ratio:g}x {target.reference}"
        if target.route not in costs or target.reference not in costs:
            yield f"  -     {promise}: not measured"
            continue
        ratio = costs[target.route] / costs[target.reference]
        yield f"  {'pass' if ratio <= target.max_ratio else 'FAIL'}  {promise}: {ratio:.2f}x"

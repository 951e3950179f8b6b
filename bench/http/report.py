"""The figures as a table, and the targets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bench.calls.machine import QUIET
from bench.http.measure import Sample
from bench.ratios import Ratio, divided

BARE = "bare Starlette /health"


class Target(NamedTuple):
    """What a route may cost: CPU, as a multiple of something else's."""

    route: str
    beside: str
    most: float


TARGETS = (
    Target("GET /health", BARE, 1.6),
    Target("POST /search", "search in process", 1.5),
)


def text(
    samples: Mapping[str, Sequence[Sample]],
    alone: Mapping[str, Sequence[float]],
    hung_up: Sequence[float],
    others: float,
    notes: Sequence[str],
) -> str:
    """The whole report. The best round is shown: noise only ever makes a figure worse."""
    rough = ": the figures are rough, run again when it is quiet" if others > QUIET else ""
    costs = _costs(samples, alone)
    return "\n".join(
        [
            f"Other processes took {others:.0%} of the CPUs{rough}.",
            "",
            *_table(samples, costs),
            "",
            *([f"streams hung up and cleaned up in {min(hung_up):.0f} ms"] if hung_up else []),
            *notes,
            "",
            "Targets",
            *_targets(costs),
        ]
    )


def ratios(
    samples: Mapping[str, Sequence[Sample]], alone: Mapping[str, Sequence[float]]
) -> list[Ratio]:
    """CPU of a route to that of a bare one, and of a tool to the same without HTTP."""
    costs = _costs(samples, alone)
    found = []
    for route in samples:
        if route != BARE:
            beside = (BARE, f"{route.rpartition('/')[2]} in process")
            theirs = {name: costs[name] for name in beside if name in costs}
            found += divided(f"{route}, CPU", costs[route], theirs)
    return found


def _costs(
    samples: Mapping[str, Sequence[Sample]], alone: Mapping[str, Sequence[float]]
) -> dict[str, float]:
    costs = {name: min(each.cpu_us for each in rounds) for name, rounds in samples.items()}
    return costs | {f"{tool} in process": min(rounds) for tool, rounds in alone.items()}


def _table(samples: Mapping[str, Sequence[Sample]], costs: Mapping[str, float]) -> Iterator[str]:
    width = max(map(len, costs))
    yield f"{'':{width}}  {'requests/s':>10}  {'CPU µs':>8}"
    for name, cost in costs.items():
        rate = max((each.rate for each in samples.get(name, ())), default=0)
        yield f"{name:{width}}  {f'{rate:,.0f}' if rate else '-':>10}  {cost:8.1f}"


def _targets(costs: Mapping[str, float]) -> Iterator[str]:
    for target in TARGETS:
        promise = f"{target.route} at most {target.most:g}x {target.beside}"
        if target.route not in costs or target.beside not in costs:
            yield f"  -     {promise}: not measured"
            continue
        ratio = costs[target.route] / costs[target.beside]
        yield f"  {'pass' if ratio <= target.most else 'FAIL'}  {promise}: {ratio:.2f}x"

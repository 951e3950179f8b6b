"""Figures to text and JSON: the table, its ratios to the stock SDK, and the targets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal

from bench.calls.machine import QUIET
from bench.calls.measure import WINDOW, Sample
from bench.calls.servers import BASELINE, OURS
from bench.ratios import Ratio


@dataclass(frozen=True, slots=True)
class Metric:
    """One column. Noise only ever makes a figure worse, so the best round is shown."""

    field: str
    heading: str
    unit: str
    best: Callable[[Sequence[float]], float] = min


START: Sequence[Metric] = (
    Metric("initialize_ms", "to initialize", "ms"),
    Metric("first_call_ms", "to first call", "ms"),
    Metric("start_cpu_ms", "CPU to first call", "ms"),
    Metric("peak_mb", "peak memory", "MB"),
)
CALLS: Sequence[Metric] = (
    Metric("sequential_rate", "sequential", "calls/s", best=max),
    Metric("parallel_rate", f"{WINDOW}-way", "calls/s", best=max),
    Metric("sequential_cpu_us", "CPU, sequential", "µs/call"),
    Metric("parallel_cpu_us", f"CPU, {WINDOW}-way", "µs/call"),
)
METRICS = (*START, *CALLS)


@dataclass(frozen=True, slots=True)
class Target:
    """What our server promises: a metric, as a multiple of a peer's."""

    promise: str
    field: str
    peer: str
    bound: Literal["at most", "at least"]
    factor: float

    def holds(self, ratio: float) -> bool:
        return ratio <= self.factor if self.bound == "at most" else ratio >= self.factor


TARGETS: Sequence[Target] = (
    Target("start to first call", "first_call_ms", BASELINE, "at most", 1.15),
    Target("sequential calls", "sequential_rate", BASELINE, "at least", 8.0),
    Target("sequential calls", "sequential_rate", "typescript", "at least", 0.8),
    Target("CPU per call", "sequential_cpu_us", BASELINE, "at most", 0.15),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One server: its rounds, or why there are none."""

    name: str
    title: str
    rounds: Sequence[Sample] = ()
    problem: str | None = None

    def best(self, metric: Metric) -> float:
        return metric.best(self.values(metric))

    def values(self, metric: Metric) -> list[float]:
        return [getattr(sample, metric.field) for sample in self.rounds]


def text(rows: Sequence[Row], calls: int, others: float) -> str:
    """The whole report, for a terminal. `others` is the share of the CPUs we did not have."""
    rounds = max((len(row.rounds) for row in rows), default=0)
    rough = ": the figures are rough, run again when it is quiet" if others > QUIET else ""
    return "\n".join(
        [
            f"Rounds: {rounds}, best shown. Calls: {calls:,} each way. Ratios: to {BASELINE}.",
            f"Other processes took {others:.0%} of the CPUs{rough}.",
            "",
            *_table("start", START, rows),
            "",
            *_table("calls", CALLS, rows),
            "",
            *_problems(rows),
            f"Targets{' (a rough run settles nothing)' if rough else ''}",
            *_targets(rows),
        ]
    )


def as_json(rows: Sequence[Row], calls: int, others: float) -> dict[str, Any]:
    """Every figure of every round, and the ratios, for a machine."""
    baseline = _measured(rows).get(BASELINE)
    return {
        "calls": calls,
        "othersCpuShare": others,
        "servers": {
            row.name: {
                "title": row.title,
                "problem": row.problem,
                "metrics": _summary(row, baseline),
                "rounds": [asdict(sample) for sample in row.rounds],
            }
            for row in rows
        },
        "targets": [
            {
                **asdict(target),
                "ratio": ratio,
                "holds": None if ratio is None else target.holds(ratio),
            }
            for target, ratio in _ratios(rows)
        ],
    }


def ratios(rows: Sequence[Row]) -> list[Ratio]:
    """Ours to each peer's, metric by metric."""
    measured = _measured(rows)
    if OURS not in measured:
        return []
    return [
        Ratio(
            f"{metric.heading}, {metric.unit}",
            peer,
            measured[OURS].best(metric) / row.best(metric),
            more=metric.best is max,
        )
        for metric in METRICS
        for peer, row in measured.items()
        if peer != OURS
    ]


def _table(title: str, metrics: Sequence[Metric], rows: Sequence[Row]) -> Iterator[str]:
    baseline = _measured(rows).get(BASELINE)
    lines = [
        [title, *(metric.heading for metric in metrics)],
        ["", *(metric.unit for metric in metrics)],
        *([row.title, *_cells(row, metrics, baseline)] for row in rows if row.rounds),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *cells in lines:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *padded])


def _cells(row: Row, metrics: Sequence[Metric], baseline: Row | None) -> Iterator[str]:
    for metric in metrics:
        value = row.best(metric)
        ratio = "" if baseline is None else f" {_times(value / baseline.best(metric)):>6}"
        yield f"{_number(value)}{ratio}"


def _problems(rows: Sequence[Row]) -> Iterator[str]:
    troubled = [row for row in rows if row.problem is not None]
    if troubled:
        yield "Not measured"
        yield from (f"  {row.title}: {row.problem}" for row in troubled)
        yield ""


def _targets(rows: Sequence[Row]) -> Iterator[str]:
    measured = _measured(rows)
    for target, ratio in _ratios(rows):
        promise = f"{target.promise} {target.bound} {target.factor:g}x {target.peer}"
        if ratio is None:
            yield f"  -     {promise}: not measured"
            continue
        metric = _metric(target)
        ours, theirs = (_number(measured[name].best(metric)) for name in (OURS, target.peer))
        verdict = "pass" if target.holds(ratio) else "FAIL"
        yield f"  {verdict}  {promise}: {_times(ratio)} ({ours} to {theirs} {metric.unit})"


def _ratios(rows: Sequence[Row]) -> Iterator[tuple[Target, float | None]]:
    measured = _measured(rows)
    for target in TARGETS:
        if OURS in measured and target.peer in measured:
            metric = _metric(target)
            yield target, measured[OURS].best(metric) / measured[target.peer].best(metric)
        else:
            yield target, None


def _summary(row: Row, baseline: Row | None) -> dict[str, Any]:
    if not row.rounds:
        return {}
    return {
        metric.field: {
            "best": row.best(metric),
            "median": median(row.values(metric)),
            "ratio": None if baseline is None else row.best(metric) / baseline.best(metric),
        }
        for metric in METRICS
    }


def _measured(rows: Sequence[Row]) -> Mapping[str, Row]:
    return {row.name: row for row in rows if row.rounds}


def _metric(target: Target) -> Metric:
    return next(metric for metric in METRICS if metric.field == target.field)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _times(ratio: float) -> str:
    return f"{ratio:.1f}x" if ratio >= 10 else f"{ratio:.2f}x"

"""The report as text and JSON: the table, its ratios to the stock SDK, and the targets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal

from bench.calls.machine import MAX_OTHERS_SHARE
from bench.calls.measure import PARALLEL_CALLS, CallSample
from bench.calls.servers import BASELINE_NAME, OUR_NAME
from bench.ratios import Ratio


@dataclass(frozen=True, slots=True)
class CallMetric:
    """One column. Noise only ever makes a figure worse, so the best round is shown."""

    field: str
    heading: str
    unit: str
    best: Callable[[Sequence[float]], float] = min


START_METRICS: Sequence[CallMetric] = (
    CallMetric("initialize_ms", "to initialize", "ms"),
    CallMetric("first_call_ms", "to first call", "ms"),
    CallMetric("start_cpu_ms", "CPU to first call", "ms"),
    CallMetric("peak_mb", "peak memory", "MB"),
)
CALL_METRICS: Sequence[CallMetric] = (
    CallMetric("sequential_rate", "sequential", "calls/s", best=max),
    CallMetric("parallel_rate", f"{PARALLEL_CALLS}-way", "calls/s", best=max),
    CallMetric("sequential_cpu_us", "CPU, sequential", "µs/call"),
    CallMetric("parallel_cpu_us", f"CPU, {PARALLEL_CALLS}-way", "µs/call"),
)
ALL_METRICS = (*START_METRICS, *CALL_METRICS)


@dataclass(frozen=True, slots=True)
class CallCostTarget:
    """A promise of our server: a metric as a multiple of a peer's."""

    promise: str
    field: str
    peer: str
    bound: Literal["at most", "at least"]
    factor: float

    def is_met(self, ratio: float) -> bool:
        return ratio <= self.factor if self.bound == "at most" else ratio >= self.factor


CALL_TARGETS: Sequence[CallCostTarget] = (
    CallCostTarget("start to first call", "first_call_ms", BASELINE_NAME, "at most", 1.15),
    CallCostTarget("sequential calls", "sequential_rate", BASELINE_NAME, "at least", 8.0),
    CallCostTarget("sequential calls", "sequential_rate", "typescript", "at least", 0.8),
    CallCostTarget("CPU per call", "sequential_cpu_us", BASELINE_NAME, "at most", 0.15),
)


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server: its rounds, or the reason for having none."""

    name: str
    title: str
    rounds: Sequence[CallSample] = ()
    problem: str | None = None

    def best_value(self, metric: CallMetric) -> float:
        return metric.best(self.list_values(metric))

    def list_values(self, metric: CallMetric) -> list[float]:
        return [getattr(sample, metric.field) for sample in self.rounds]


def render_report(rows: Sequence[ServerRow], calls: int, others_share: float) -> str:
    """Render the report for a terminal; `others_share` is the CPU share of other processes."""
    rounds = max((len(row.rounds) for row in rows), default=0)
    rough = ": the figures are rough, run again when it is quiet" if others_share > MAX_OTHERS_SHARE else ""
    return "\n".join(
        [
            f"Rounds: {rounds}, best shown. Calls: {calls:,} each way. Ratios: to {BASELINE_NAME}.",
            f"Other processes took {others_share:.0%} of the CPUs{rough}.",
            "",
            *_render_table("start", START_METRICS, rows),
            "",
            *_render_table("calls", CALL_METRICS, rows),
            "",
            *_render_problems(rows),
            f"Targets{' (a rough run settles nothing)' if rough else ''}",
            *_render_targets(rows),
        ]
    )


def build_json_report(rows: Sequence[ServerRow], calls: int, others_share: float) -> dict[str, Any]:
    """Build a document with every figure of every round and the ratios."""
    baseline = _index_measured(rows).get(BASELINE_NAME)
    return {
        "calls": calls,
        "othersCpuShare": others_share,
        "servers": {
            row.name: {
                "title": row.title,
                "problem": row.problem,
                "metrics": _summarize_row(row, baseline),
                "rounds": [asdict(sample) for sample in row.rounds],
            }
            for row in rows
        },
        "targets": [
            {
                **asdict(target),
                "ratio": ratio,
                "holds": None if ratio is None else target.is_met(ratio),
            }
            for target, ratio in _compute_target_ratios(rows)
        ],
    }


def compute_ratios(rows: Sequence[ServerRow]) -> list[Ratio]:
    """Compute our ratio to each peer for every metric."""
    measured = _index_measured(rows)
    if OUR_NAME not in measured:
        return []
    return [
        Ratio(
            f"{metric.heading}, {metric.unit}",
            peer,
            measured[OUR_NAME].best_value(metric) / row.best_value(metric),
            more=metric.best is max,
        )
        for metric in ALL_METRICS
        for peer, row in measured.items()
        if peer != OUR_NAME
    ]


def _render_table(title: str, metrics: Sequence[CallMetric], rows: Sequence[ServerRow]) -> Iterator[str]:
    baseline = _index_measured(rows).get(BASELINE_NAME)
    lines = [
        [title, *(metric.heading for metric in metrics)],
        ["", *(metric.unit for metric in metrics)],
        *([row.title, *_render_cells(row, metrics, baseline)] for row in rows if row.rounds),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *cells in lines:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *padded])


def _render_cells(row: ServerRow, metrics: Sequence[CallMetric], baseline: ServerRow | None) -> Iterator[str]:
    for metric in metrics:
        value = row.best_value(metric)
        ratio = "" if baseline is None else f" {_format_ratio(value / baseline.best_value(metric)):>6}"
        yield f"{_format_number(value)}{ratio}"


def _render_problems(rows: Sequence[ServerRow]) -> Iterator[str]:
    failed_rows = [row for row in rows if row.problem is not None]
    if failed_rows:
        yield "Not measured"
        yield from (f"  {row.title}: {row.problem}" for row in failed_rows)
        yield ""


def _render_targets(rows: Sequence[ServerRow]) -> Iterator[str]:
    measured = _index_measured(rows)
    for target, ratio in _compute_target_ratios(rows):
        promise = f"{target.promise} {target.bound} {target.factor:g}x {target.peer}"
        if ratio is None:
            yield f"  -     {promise}: not measured"
            continue
        metric = _find_metric(target)
        cleats, peer = (_format_number(measured[name].best_value(metric)) for name in (OUR_NAME, target.peer))
        verdict = "pass" if target.is_met(ratio) else "FAIL"
        yield f"  {verdict}  {promise}: {_format_ratio(ratio)} ({cleats} to {peer} {metric.unit})"


def _compute_target_ratios(rows: Sequence[ServerRow]) -> Iterator[tuple[CallCostTarget, float | None]]:
    measured = _index_measured(rows)
    for target in CALL_TARGETS:
        if OUR_NAME in measured and target.peer in measured:
            metric = _find_metric(target)
            yield target, measured[OUR_NAME].best_value(metric) / measured[target.peer].best_value(metric)
        else:
            yield target, None


def _summarize_row(row: ServerRow, baseline: ServerRow | None) -> dict[str, Any]:
    if not row.rounds:
        return {}
    return {
        metric.field: {
            "best": row.best_value(metric),
            "median": median(row.list_values(metric)),
            "ratio": None if baseline is None else row.best_value(metric) / baseline.best_value(metric),
        }
        for metric in ALL_METRICS
    }


def _index_measured(rows: Sequence[ServerRow]) -> Mapping[str, ServerRow]:
    return {row.name: row for row in rows if row.rounds}


def _find_metric(target: CallCostTarget) -> CallMetric:
    return next(metric for metric in ALL_METRICS if metric.field == target.field)


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _format_ratio(ratio: float) -> str:
    return f"{ratio:.1f}x" if ratio >= 10 else f"{ratio:.2f}x"

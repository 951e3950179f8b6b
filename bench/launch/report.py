"""The figures as a table, and the targets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple

from bench.calls.machine import MAX_OTHERS_SHARE
from bench.launch.measure import LaunchFigures
from bench.ratios import Ratio, divide_figures

FIGURE_TITLES = {
    "list": "list of runs, ms",
    "filtered": "list by product and state, ms",
    "status": "status of a run, ms",
    "start": "start to list of tools, ms",
    "start_cpu": "start to list of tools, CPU ms",
    "steps_per_second": "steps recorded a second",
    "run_cpu": "a whole run without git and Hugo, CPU s",
    "tools_cpu": "git and Hugo in it, CPU s",
}

LaunchRounds = Mapping[str, Mapping[str, Sequence[LaunchFigures]]]
"""The rounds by case, then by contestant."""


class LaunchTarget(NamedTuple):
    """The highest cost of an operation."""

    promise: str
    case: str
    field: str
    max_value: float


LAUNCH_TARGETS = (
    LaunchTarget("list at 10,000 runs", "10,000 runs", "list", 50),
    LaunchTarget("filtered list at 10,000 runs", "10,000 runs", "filtered", 50),
    LaunchTarget("status at 10,000 runs", "10,000 runs", "status", 5),
    LaunchTarget("a whole run beyond git and Hugo, CPU s", "the sample", "run_cpu", 10),
)


def render_report(rounds: LaunchRounds, others_share: float, problems: Sequence[str]) -> str:
    """Render the report with the best round of each, as noise only makes a figure worse."""
    rough = ": the figures are rough, run again when it is quiet" if others_share > MAX_OTHERS_SHARE else ""
    return "\n".join(
        [
            f"Other processes took {others_share:.0%} of the CPUs{rough}.",
            "",
            *_render_lines(rounds),
            "",
            "Targets",
            *_render_targets(rounds),
            *(f"FAIL  {problem}" for problem in problems),
        ]
    )


def compute_ratios(rounds: LaunchRounds) -> list[Ratio]:
    """Compute our ratio to each peer for every figure that both have."""
    return [
        ratio
        for case, measured in rounds.items()
        for field in fields(LaunchFigures)
        for ratio in divide_figures(
            f"{case}: {FIGURE_TITLES[field.name]}",
            best_value(measured.get("cleats", ()), field.name),
            {name: best_value(peer_rounds, field.name) for name, peer_rounds in measured.items() if name != "cleats"},
            more_is_better=field.name == "steps_per_second",
        )
    ]


def best_value(rounds: Sequence[LaunchFigures], field: str) -> float | None:
    """Return the best value of several rounds."""
    values: list[float] = [value for figures in rounds if (value := getattr(figures, field)) is not None]
    if not values:
        return None
    return max(values) if field == "steps_per_second" else min(values)


def _render_lines(rounds: LaunchRounds) -> Iterator[str]:
    for case, measured in rounds.items():
        for field in fields(LaunchFigures):
            cells = [
                f"{name} {value:,.2f}"
                for name, contestant_rounds in measured.items()
                if (value := best_value(contestant_rounds, field.name)) is not None
            ]
            if cells:
                yield f"{case:<14}{FIGURE_TITLES[field.name]:<42}{'   '.join(cells)}"


def _render_targets(rounds: LaunchRounds) -> Iterator[str]:
    for target in LAUNCH_TARGETS:
        value = best_value(rounds.get(target.case, {}).get("cleats", ()), target.field)
        if value is not None:
            verdict = "ok  " if value <= target.max_value else "OVER"
            yield f"{verdict}  {target.promise}: {value:.2f} of {target.max_value:g}"

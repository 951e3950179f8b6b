"""The figures as a table, and the targets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple

from bench.calls.machine import QUIET
from bench.launch.measure import Figures
from bench.ratios import Ratio, divided

TITLES = {
    "list": "list of runs, ms",
    "filtered": "list by product and state, ms",
    "status": "status of a run, ms",
    "start": "start to list of tools, ms",
    "start_cpu": "start to list of tools, CPU ms",
    "steps_per_second": "steps recorded a second",
    "run_cpu": "a whole run without git and Hugo, CPU s",
    "tools_cpu": "git and Hugo in it, CPU s",
}

Rounds = Mapping[str, Mapping[str, Sequence[Figures]]]
"""By what was measured, then by who was."""


class Target(NamedTuple):
    """What something may cost."""

    promise: str
    case: str
    field: str
    most: float


TARGETS = (
    Target("list at 10,000 runs", "10,000 runs", "list", 50),
    Target("filtered list at 10,000 runs", "10,000 runs", "filtered", 50),
    Target("status at 10,000 runs", "10,000 runs", "status", 5),
    Target("a whole run beyond git and Hugo, CPU s", "the sample", "run_cpu", 10),
)


def text(rounds: Rounds, others: float, problems: Sequence[str]) -> str:
    """The whole report. The best round is shown: noise only ever makes a figure worse."""
    rough = ": the figures are rough, run again when it is quiet" if others > QUIET else ""
    return "\n".join(
        [
            f"Other processes took {others:.0%} of the CPUs{rough}.",
            "",
            *_lines(rounds),
            "",
            "Targets",
            *_targets(rounds),
            *(f"FAIL  {problem}" for problem in problems),
        ]
    )


def ratios(rounds: Rounds) -> list[Ratio]:
    """Ours to each peer's, for every figure that both have."""
    return [
        ratio
        for case, measured in rounds.items()
        for field in fields(Figures)
        for ratio in divided(
            f"{case}: {TITLES[field.name]}",
            best(measured.get("cleats", ()), field.name),
            {name: best(each, field.name) for name, each in measured.items() if name != "cleats"},
            more=field.name == "steps_per_second",
        )
    ]


def best(rounds: Sequence[Figures], field: str) -> float | None:
    """The best of several rounds."""
    known: list[float] = [value for each in rounds if (value := getattr(each, field)) is not None]
    if not known:
        return None
    return max(known) if field == "steps_per_second" else min(known)


def _lines(rounds: Rounds) -> Iterator[str]:
    for case, measured in rounds.items():
        for field in fields(Figures):
            cells = [
                f"{name} {value:,.2f}"
                for name, each in measured.items()
                if (value := best(each, field.name)) is not None
            ]
            if cells:
                yield f"{case:<14}{TITLES[field.name]:<42}{'   '.join(cells)}"


def _targets(rounds: Rounds) -> Iterator[str]:
    for target in TARGETS:
        value = best(rounds.get(target.case, {}).get("cleats", ()), target.field)
        if value is not None:
            verdict = "ok  " if value <= target.most else "OVER"
            yield f"{verdict}  {target.promise}: {value:.2f} of {target.most:g}"

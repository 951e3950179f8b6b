"""The figures as a table, and the targets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple

from bench.calls.machine import MAX_OTHERS_SHARE
from bench.ratios import Ratio, divide_figures
from bench.skills.measure import SkillFigures

FIGURE_TITLES = {
    "start_wall": "start to first list, ms",
    "build": "build the catalogue, CPU ms",
    "idle_refresh": "refresh, nothing changed, CPU ms",
    "busy_refresh": "refresh, 1 % changed, CPU ms",
    "echo_wall": "echo, ms",
    "load_wall": "load by name, ms",
    "missing_wall": "wrong name with suggestions, ms",
    "echo_during_wall": "longest echo during a refresh, ms",
    "description": "description, characters",
    "memory": "peak memory, MB",
}


class SkillTarget(NamedTuple):
    """The highest cost of an operation with ten thousand skills."""

    promise: str
    field: str
    max_value: float
    baseline_field: str = ""


SKILL_TARGETS = (
    SkillTarget("catalogue built", "build", 500),
    SkillTarget("refresh with nothing changed", "idle_refresh", 60),
    SkillTarget("load by name beyond an echo", "load_wall", 1, "echo_wall"),
    SkillTarget("wrong name with suggestions", "missing_wall", 10),
    SkillTarget("description", "description", 8000),
)
TARGET_SKILL_COUNT = 10_000

SkillRounds = Mapping[int, Mapping[str, Sequence[SkillFigures]]]


def render_report(sizes: SkillRounds, others_share: float, problems: Sequence[str]) -> str:
    """Render the report with the best round of each, as noise only makes a figure worse."""
    rough = ": the figures are rough, run again when it is quiet" if others_share > MAX_OTHERS_SHARE else ""
    return "\n".join(
        [
            f"Other processes took {others_share:.0%} of the CPUs{rough}.",
            "",
            *_render_table(sizes),
            "",
            f"Targets at {TARGET_SKILL_COUNT:,} skills",
            *_render_targets(sizes),
            *(f"FAIL  {problem}" for problem in problems),
        ]
    )


def compute_ratios(sizes: SkillRounds) -> list[Ratio]:
    """Compute our ratio to each peer for every count of skills and every shared figure."""
    return [
        ratio
        for count, per_size in sizes.items()
        for field in fields(SkillFigures)
        for ratio in divide_figures(
            f"{count:,} skills: {FIGURE_TITLES[field.name]}",
            _best_value(per_size["cleats"], field.name),
            {name: _best_value(rounds, field.name) for name, rounds in per_size.items() if name != "cleats"},
        )
    ]


def _render_table(sizes: SkillRounds) -> Iterator[str]:
    columns = [(count, name) for count, per_size in sizes.items() for name in per_size]
    rows = [["skills", *(f"{count:,}" for count, _ in columns)]]
    rows.append(["", *(name for _, name in columns)])
    for field in fields(SkillFigures):
        cells = [_format_cell(_best_value(sizes[count][name], field.name)) for count, name in columns]
        rows.append([FIGURE_TITLES[field.name], *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *cells in rows:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *padded])


def _render_targets(sizes: SkillRounds) -> Iterator[str]:
    rounds = sizes.get(TARGET_SKILL_COUNT, {}).get("cleats", ())
    for target in SKILL_TARGETS:
        value = _best_value(rounds, target.field)
        if value is None:
            yield f"  -     {target.promise}: not measured"
            continue
        value -= (_best_value(rounds, target.baseline_field) or 0) if target.baseline_field else 0
        verdict = "pass" if value <= target.max_value else "FAIL"
        yield f"  {verdict}  {target.promise}: {value:,.2f}, at most {target.max_value:g}"


def _best_value(rounds: Sequence[SkillFigures], field: str) -> float | None:
    values = [value for figures in rounds if (value := getattr(figures, field)) is not None]
    return min(values) if values else None


def _format_cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"

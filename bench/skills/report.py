"""The figures as a table, and the targets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple

from bench.calls.machine import QUIET
from bench.ratios import Ratio, divided
from bench.skills.measure import Figures

TITLES = {
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


class Target(NamedTuple):
    """What ten thousand skills may cost."""

    promise: str
    field: str
    most: float
    beyond: str = ""


TARGETS = (
    Target("catalogue built", "build", 500),
    Target("refresh with nothing changed", "idle_refresh", 60),
    Target("load by name beyond an echo", "load_wall", 1, "echo_wall"),
    Target("wrong name with suggestions", "missing_wall", 10),
    Target("description", "description", 8000),
)
LARGEST = 10_000

Sizes = Mapping[int, Mapping[str, Sequence[Figures]]]


def text(sizes: Sizes, others: float, problems: Sequence[str]) -> str:
    """The whole report. The best round is shown: noise only ever makes a figure worse."""
    rough = ": the figures are rough, run again when it is quiet" if others > QUIET else ""
    return "\n".join(
        [
            f"Other processes took {others:.0%} of the CPUs{rough}.",
            "",
            *_table(sizes),
            "",
            f"Targets at {LARGEST:,} skills",
            *_targets(sizes),
            *(f"FAIL  {problem}" for problem in problems),
        ]
    )


def ratios(sizes: Sizes) -> list[Ratio]:
    """Ours to each peer's, for every number of skills and every figure that both have."""
    return [
        ratio
        for count, per_size in sizes.items()
        for field in fields(Figures)
        for ratio in divided(
            f"{count:,} skills: {TITLES[field.name]}",
            _best(per_size["cleats"], field.name),
            {
                name: _best(rounds, field.name)
                for name, rounds in per_size.items()
                if name != "cleats"
            },
        )
    ]


def _table(sizes: Sizes) -> Iterator[str]:
    columns = [(count, name) for count, per_size in sizes.items() for name in per_size]
    rows = [["skills", *(f"{count:,}" for count, _ in columns)]]
    rows.append(["", *(name for _, name in columns)])
    for field in fields(Figures):
        cells = [_cell(_best(sizes[count][name], field.name)) for count, name in columns]
        rows.append([TITLES[field.name], *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *cells in rows:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *padded])


def _targets(sizes: Sizes) -> Iterator[str]:
    rounds = sizes.get(LARGEST, {}).get("cleats", ())
    for target in TARGETS:
        value = _best(rounds, target.field)
        if value is None:
            yield f"  -     {target.promise}: not measured"
            continue
        value -= (_best(rounds, target.beyond) or 0) if target.beyond else 0
        verdict = "pass" if value <= target.most else "FAIL"
        yield f"  {verdict}  {target.promise}: {value:,.2f}, at most {target.most:g}"


def _best(rounds: Sequence[Figures], field: str) -> float | None:
    values = [value for each in rounds if (value := getattr(each, field)) is not None]
    return min(values) if values else None


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"

"""Figures to text: tables of the best rounds, and the targets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.assets.measure import Pace, Start
from bench.calls.machine import QUIET
from bench.ratios import Ratio, divided

START = "start to first answer, nine schemas"
VALIDATE = "validate_asset, 20 kB"
DIFF = "diff_assets, 2 x 20 kB"
SIZES = "validate_asset of "

RPC, BARE, PACKAGE = "cleats, rpc wire", "bare loop, jsonschema-rs", "bare loop, jsonschema"

Figures = Mapping[str, Mapping[str, Sequence[Any]]]


def size(amount: int) -> str:
    """The heading of one size."""
    return f"{SIZES}{amount / 1000:,.0f} kB"


def text(figures: Figures, others: float) -> str:
    """The whole report. Noise only ever makes a figure worse, so the best round is shown."""
    rough = ": rough figures, run again when it is quiet" if others > QUIET else ""
    rounds = len(figures[VALIDATE][RPC])
    return "\n".join(
        [
            f"Best of {rounds} rounds. Other processes took {others:.0%} of the CPUs{rough}.",
            "",
            *_starts(figures[START]),
            *_paces(VALIDATE, figures[VALIDATE]),
            *_paces(DIFF, figures[DIFF]),
            *_sizes(figures),
            "Targets",
            *_targets(figures),
        ]
    )


def ratios(figures: Figures) -> list[Ratio]:
    """Ours to the bare loops: rates where the wire counts, CPU where the work does."""
    found = []
    for part, rows in figures.items():
        if part != START:
            peers = {name: rows[name] for name in (BARE, PACKAGE) if name in rows}
            found += divided(
                f"{part}, calls/s",
                _rate(rows[RPC]),
                {name: _rate(each) for name, each in peers.items()},
                more=True,
            )
            found += divided(
                f"{part}, CPU", _cpu(rows[RPC]), {name: _cpu(each) for name, each in peers.items()}
            )
    return found


def _starts(rows: Mapping[str, Sequence[Start]]) -> Iterator[str]:
    yield f"{START:<38}{'wall ms':>12}{'CPU ms':>12}"
    for title, found in rows.items():
        wall, cpu = min(f.wall_ms for f in found), min(f.cpu_ms for f in found)
        yield f"  {title:<36}{wall:>12,.0f}{cpu:>12,.0f}"
    yield ""


def _paces(heading: str, rows: Mapping[str, Sequence[Pace]]) -> Iterator[str]:
    yield f"{heading:<38}{'calls/s':>12}{'CPU µs':>12}"
    for title, found in rows.items():
        yield f"  {title:<36}{_rate(found):>12,.0f}{_cpu(found):>12,.0f}"
    yield ""


def _sizes(figures: Figures) -> Iterator[str]:
    yield f"{SIZES + '…':<20}{'calls/s':>12}{'CPU µs':>12}{'bare CPU µs':>14}{'ratio':>8}"
    for part, rows in figures.items():
        if part.startswith(SIZES):
            ours, bare = rows[RPC], rows[BARE]
            yield (
                f"  {part.removeprefix(SIZES):<18}{_rate(ours):>12,.0f}{_cpu(ours):>12,.0f}"
                f"{_cpu(bare):>14,.0f}{_cpu(ours) / _cpu(bare):>8.2f}"
            )
    yield ""


def _targets(figures: Figures) -> Iterator[str]:
    rows = figures[VALIDATE]
    start = min(f.cpu_ms for f in figures[START][RPC])
    faster = _rate(rows[RPC]) / _rate(rows[PACKAGE])
    slower = _rate(rows[BARE]) / _rate(rows[RPC])
    dearer = _cpu(rows[RPC]) / _cpu(rows[BARE])
    for promise, value, holds in (
        ("round trips over the jsonschema package, at least 15x", f"{faster:.1f}x", faster >= 15),
        ("round trips of the bare limit, within 2x", f"{slower:.2f}x", slower <= 2),
        ("CPU of the bare limit, within 2x", f"{dearer:.2f}x", dearer <= 2),
        ("CPU from start to first answer, at most 200 ms", f"{start:.0f} ms", start <= 200),
    ):
        yield f"  {'pass' if holds else 'FAIL'}  {promise}: {value}"


def _rate(found: Sequence[Pace]) -> float:
    return max(f.rate for f in found)


def _cpu(found: Sequence[Pace]) -> float:
    return min(f.cpu_us for f in found)

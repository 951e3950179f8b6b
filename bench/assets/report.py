"""The report of the figures: tables of the best rounds, and the targets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.assets.measure import AssetPace, AssetStart
from bench.calls.machine import MAX_OTHERS_SHARE
from bench.ratios import Ratio, divide_figures

START_HEADING = "start to first answer, nine schemas"
VALIDATE_HEADING = "validate_asset, 20 kB"
DIFF_HEADING = "diff_assets, 2 x 20 kB"
SIZES_HEADING = "validate_asset of "

RPC_TITLE, BARE_TITLE, PACKAGE_TITLE = "cleats, rpc wire", "bare loop, jsonschema-rs", "bare loop, jsonschema"

AssetFigures = Mapping[str, Mapping[str, Sequence[Any]]]


def format_size_heading(amount: int) -> str:
    """Format the heading of one size."""
    return f"{SIZES_HEADING}{amount / 1000:,.0f} kB"


def render_report(figures: AssetFigures, others_share: float) -> str:
    """Render the report with the best round of each, as noise only makes a figure worse."""
    rough = ": rough figures, run again when it is quiet" if others_share > MAX_OTHERS_SHARE else ""
    rounds = len(figures[VALIDATE_HEADING][RPC_TITLE])
    return "\n".join(
        [
            f"Best of {rounds} rounds. Other processes took {others_share:.0%} of the CPUs{rough}.",
            "",
            *_render_starts(figures[START_HEADING]),
            *_render_paces(VALIDATE_HEADING, figures[VALIDATE_HEADING]),
            *_render_paces(DIFF_HEADING, figures[DIFF_HEADING]),
            *_render_sizes(figures),
            "Targets",
            *_render_targets(figures),
        ]
    )


def compute_ratios(figures: AssetFigures) -> list[Ratio]:
    """Compute our ratios to the bare loops: rates for the wire, CPU for the work."""
    all_ratios = []
    for part, rows in figures.items():
        if part != START_HEADING:
            peers = {name: rows[name] for name in (BARE_TITLE, PACKAGE_TITLE) if name in rows}
            all_ratios += divide_figures(
                f"{part}, calls/s",
                _best_rate(rows[RPC_TITLE]),
                {name: _best_rate(figures_of_peer) for name, figures_of_peer in peers.items()},
                more_is_better=True,
            )
            all_ratios += divide_figures(
                f"{part}, CPU",
                _best_cpu(rows[RPC_TITLE]),
                {name: _best_cpu(figures_of_peer) for name, figures_of_peer in peers.items()},
            )
    return all_ratios


def _render_starts(rows: Mapping[str, Sequence[AssetStart]]) -> Iterator[str]:
    yield f"{START_HEADING:<38}{'wall ms':>12}{'CPU ms':>12}"
    for title, starts in rows.items():
        wall, cpu = min(f.wall_ms for f in starts), min(f.cpu_ms for f in starts)
        yield f"  {title:<36}{wall:>12,.0f}{cpu:>12,.0f}"
    yield ""


def _render_paces(heading: str, rows: Mapping[str, Sequence[AssetPace]]) -> Iterator[str]:
    yield f"{heading:<38}{'calls/s':>12}{'CPU µs':>12}"
    for title, paces in rows.items():
        yield f"  {title:<36}{_best_rate(paces):>12,.0f}{_best_cpu(paces):>12,.0f}"
    yield ""


def _render_sizes(figures: AssetFigures) -> Iterator[str]:
    yield f"{SIZES_HEADING + '…':<20}{'calls/s':>12}{'CPU µs':>12}{'bare CPU µs':>14}{'ratio':>8}"
    for part, rows in figures.items():
        if part.startswith(SIZES_HEADING):
            our_paces, bare_paces = rows[RPC_TITLE], rows[BARE_TITLE]
            yield (
                f"  {part.removeprefix(SIZES_HEADING):<18}"
                f"{_best_rate(our_paces):>12,.0f}{_best_cpu(our_paces):>12,.0f}"
                f"{_best_cpu(bare_paces):>14,.0f}"
                f"{_best_cpu(our_paces) / _best_cpu(bare_paces):>8.2f}"
            )
    yield ""


def _render_targets(figures: AssetFigures) -> Iterator[str]:
    rows = figures[VALIDATE_HEADING]
    start = min(f.cpu_ms for f in figures[START_HEADING][RPC_TITLE])
    faster = _best_rate(rows[RPC_TITLE]) / _best_rate(rows[PACKAGE_TITLE])
    slower = _best_rate(rows[BARE_TITLE]) / _best_rate(rows[RPC_TITLE])
    dearer = _best_cpu(rows[RPC_TITLE]) / _best_cpu(rows[BARE_TITLE])
    for promise, value, holds in (
        ("round trips over the jsonschema package, at least 15x", f"{faster:.1f}x", faster >= 15),
        ("round trips of the bare limit, within 2x", f"{slower:.2f}x", slower <= 2),
        ("CPU of the bare limit, within 2x", f"{dearer:.2f}x", dearer <= 2),
        ("CPU from start to first answer, at most 200 ms", f"{start:.0f} ms", start <= 200),
    ):
        yield f"  {'pass' if holds else 'FAIL'}  {promise}: {value}"


def _best_rate(paces: Sequence[AssetPace]) -> float:
    return max(f.rate for f in paces)


def _best_cpu(paces: Sequence[AssetPace]) -> float:
    return min(f.cpu_us for f in paces)

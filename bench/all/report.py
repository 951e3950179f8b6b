"""One table of ratios, and the changes between two runs."""

from collections.abc import Iterator, Mapping, Sequence

from bench.all.running import BenchmarkRun
from bench.calls.machine import MAX_OTHERS_SHARE
from bench.ratios import Ratio

MAX_NOISE_CHANGE = 0.05
"""The largest relative change that two runs of one commit show as well."""


def render_report(run: BenchmarkRun) -> str:
    """Render the ratios of a run, with the problems of benchmarks that did not run."""
    rows = [
        (name, ratio.name, ratio.beside, format_ratio(ratio.value), _describe_direction(ratio))
        for name, outcome in run.outcomes.items()
        for ratio in outcome.ratios
    ]
    headings = ("bench", "our figure", "to that of", "ratio", "better is")
    return "\n".join([f"{run.commit}, {run.machine}", "", *_render_table(headings, rows), *_render_notes(run)])


def render_comparison(old: BenchmarkRun, new: BenchmarkRun) -> str:
    """Render every ratio of two runs side by side, and list those that only one run has."""
    before, after = _index_ratios(old), _index_ratios(new)
    rows = []
    for key, ratio in after.items():
        if key in before:
            change = ratio.value / before[key].value - 1
            values = (format_ratio(before[key].value), format_ratio(ratio.value), f"{change:+.0%}")
            rows.append((*key, *values, _judge_change(ratio, change)))
    headings = ("bench", "our figure", "to that of", old.commit, new.commit, "change", "")
    lines = [*_render_table(headings, rows)]
    for run, run_ratios, other_ratios in ((old, before, after), (new, after, before)):
        lines += [f"only in {run.commit}: {', '.join(key)}" for key in run_ratios if key not in other_ratios]
    if old.machine != new.machine:
        lines.append(f"two machines: {old.machine}; {new.machine}")
    return "\n".join(lines)


def format_ratio(ratio: float) -> str:
    """Format a ratio with as many digits as it deserves."""
    return f"{ratio:.1f}x" if ratio >= 10 else f"{ratio:.2f}x"


def _index_ratios(run: BenchmarkRun) -> Mapping[tuple[str, str, str], Ratio]:
    return {
        (name, ratio.name, ratio.beside): ratio for name, outcome in run.outcomes.items() for ratio in outcome.ratios
    }


def _judge_change(ratio: Ratio, change: float) -> str:
    if abs(change) <= MAX_NOISE_CHANGE:
        return ""
    return "better" if (change > 0) == ratio.more else "WORSE"


def _describe_direction(ratio: Ratio) -> str:
    return "more" if ratio.more else "less"


def _render_notes(run: BenchmarkRun) -> Iterator[str]:
    yield ""
    for name, outcome in run.outcomes.items():
        if outcome.problem:
            yield f"bench.{name}: {outcome.problem}"
        if outcome.others > MAX_OTHERS_SHARE:
            yield f"bench.{name}: others took {outcome.others:.0%} of the CPUs; rough"


def _render_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    lines = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(_pad_cells(line, widths)).rstrip()


def _pad_cells(line: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for column, (cell, width) in enumerate(zip(line, widths, strict=True)):
        yield cell.rjust(width) if 3 <= column <= 5 else cell.ljust(width)

"""One table of ratios, and what changed between two runs."""

from collections.abc import Iterator, Mapping, Sequence

from bench.all.running import Run
from bench.calls.machine import QUIET
from bench.ratios import Ratio

SAME = 0.05
"""A change that two runs of one commit show as well."""


def text(run: Run) -> str:
    """The ratios of a run, with the problems of what did not run."""
    rows = [
        (name, each.name, each.beside, times(each.value), _wanted(each))
        for name, outcome in run.outcomes.items()
        for each in outcome.ratios
    ]
    heads = ("bench", "our figure", "to that of", "ratio", "better is")
    return "\n".join([f"{run.commit}, {run.machine}", "", *_table(heads, rows), *_notes(run)])


def compared(old: Run, new: Run) -> str:
    """Every ratio of two runs side by side; what only one of them has is said."""
    before, after = _found(old), _found(new)
    rows = []
    for key, ratio in after.items():
        if key in before:
            change = ratio.value / before[key].value - 1
            values = (times(before[key].value), times(ratio.value), f"{change:+.0%}")
            rows.append((*key, *values, _verdict(ratio, change)))
    heads = ("bench", "our figure", "to that of", old.commit, new.commit, "change", "")
    lines = [*_table(heads, rows)]
    for run, mine, others in ((old, before, after), (new, after, before)):
        lines += [f"only in {run.commit}: {', '.join(key)}" for key in mine if key not in others]
    if old.machine != new.machine:
        lines.append(f"two machines: {old.machine}; {new.machine}")
    return "\n".join(lines)


def times(ratio: float) -> str:
    """A ratio with as many digits as it deserves."""
    return f"{ratio:.1f}x" if ratio >= 10 else f"{ratio:.2f}x"


def _found(run: Run) -> Mapping[tuple[str, str, str], Ratio]:
    return {
        (name, each.name, each.beside): each
        for name, outcome in run.outcomes.items()
        for each in outcome.ratios
    }


def _verdict(ratio: Ratio, change: float) -> str:
    if abs(change) <= SAME:
        return ""
    return "better" if (change > 0) == ratio.more else "WORSE"


def _wanted(ratio: Ratio) -> str:
    return "more" if ratio.more else "less"


def _notes(run: Run) -> Iterator[str]:
    yield ""
    for name, outcome in run.outcomes.items():
        if outcome.problem:
            yield f"bench.{name}: {outcome.problem}"
        if outcome.others > QUIET:
            yield f"bench.{name}: others took {outcome.others:.0%} of the CPUs; rough"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(_cells(line, widths)).rstrip()


def _cells(line: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for place, (cell, width) in enumerate(zip(line, widths, strict=True)):
        yield cell.rjust(width) if 3 <= place <= 5 else cell.ljust(width)

"""The figures as tables: everyone beside ours, with ratios."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from bench.calls.machine import QUIET
from bench.code.measure import Figures
from bench.code.quality import Outcome
from bench.ratios import Ratio, divided

TITLES = {
    "build_wall": "index, s",
    "build_cpu": "index, CPU s",
    "parse_cpu": "parsing alone, CPU s",
    "peak": "largest process, MB",
    "disk": "index on disk, MB",
    "idle_wall": "refresh, nothing changed, s",
    "idle_cpu": "refresh, nothing changed, CPU s",
    "update_wall": "refresh, one file changed, s",
    "update_cpu": "refresh, one file changed, CPU s",
    "cold": "open and first answer, ms",
    "median": "answer, median ms",
    "slowest": "answer, slowest of 100, ms",
    "filtered_median": "with filters, median ms",
    "filtered_slowest": "with filters, slowest of 100, ms",
    "stdio_median": "over MCP stdio, median ms",
    "stdio_slowest": "over MCP stdio, slowest of 100, ms",
}
OURS = "cleats"


def text(
    costs: Mapping[str, Mapping[str, Figures]],
    outcomes: Sequence[Outcome],
    others: float,
    problems: Sequence[str],
) -> str:
    """The whole report, in Markdown."""
    rough = ": the times are rough, run again when it is quiet" if others > QUIET else ""
    lines = [f"Other processes took {others:.0%} of the CPUs{rough}.", ""]
    for corpus, contestants in costs.items():
        lines += [f"Costs on {corpus}", "", *_costs(contestants), ""]
    if outcomes:
        lines += ["Answers (nDCG@10 / at the top / among ten)", "", *_quality(outcomes), ""]
    return "\n".join([*lines, *(f"FAIL  {problem}" for problem in problems)])


def ratios(costs: Mapping[str, Mapping[str, Figures]], outcomes: Sequence[Outcome]) -> list[Ratio]:
    """Ours to each peer's: every cost, and the worth of the answers."""
    found = []
    for title, contestants in costs.items():
        if OURS in contestants:
            corpus = title.partition(":")[0]
            peers = {name: each for name, each in contestants.items() if name != OURS}
            for field in fields(Figures):
                theirs = {name: getattr(each, field.name) for name, each in peers.items()}
                ours = getattr(contestants[OURS], field.name)
                found += divided(f"{corpus}: {TITLES[field.name]}", ours, theirs)
    scores = {(each.corpus, each.kind, each.system): each.score.ndcg for each in outcomes}
    for (corpus, kind, system), score in scores.items():
        if system != OURS:
            ours = scores.get((corpus, kind, OURS))
            found += divided(f"{corpus}: {kind}, nDCG@10", ours, {system: score}, more=True)
    return found


def _costs(contestants: Mapping[str, Figures]) -> Iterator[str]:
    rows = [["", *contestants]]
    for field in fields(Figures):
        values = [getattr(each, field.name) for each in contestants.values()]
        if any(value is not None for value in values):
            own = getattr(contestants[OURS], field.name) if OURS in contestants else None
            rows.append([TITLES[field.name], *(_cell(value, own) for value in values)])
    yield from _table(rows)


def _quality(outcomes: Sequence[Outcome]) -> Iterator[str]:
    systems = list(dict.fromkeys(each.system for each in outcomes))
    found = {(each.corpus, each.kind, each.system): each.score for each in outcomes}
    rows = [["questions", "count", *systems]]
    for corpus, kind in dict.fromkeys((each.corpus, each.kind) for each in outcomes):
        scores = [found.get((corpus, kind, system)) for system in systems]
        count = next(score.questions for score in scores if score is not None)
        cells = [
            "-" if each is None else f"{each.ndcg:.3f} / {each.hit:.2f} / {each.recall:.2f}"
            for each in scores
        ]
        rows.append([f"{corpus}, {kind}", str(count), *cells])
    yield from _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    head, *body = rows
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in body)


def _cell(value: float | None, own: float | None) -> str:
    if value is None:
        return "-"
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    return f"{shown} ({value / own:.2f}x)" if own else shown

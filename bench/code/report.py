"""The figures as tables: all contestants next to ours, with ratios."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from bench.calls.machine import MAX_OTHERS_SHARE
from bench.code.measure import SearchFigures
from bench.code.quality import TaskOutcome
from bench.ratios import Ratio, divide_figures

FIGURE_TITLES = {
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
OUR_NAME = "cleats"


def render_report(
    costs: Mapping[str, Mapping[str, SearchFigures]],
    outcomes: Sequence[TaskOutcome],
    others_share: float,
    problems: Sequence[str],
) -> str:
    """Render the whole report in Markdown."""
    rough = ": the times are rough, run again when it is quiet" if others_share > MAX_OTHERS_SHARE else ""
    lines = [f"Other processes took {others_share:.0%} of the CPUs{rough}.", ""]
    for corpus, contestants in costs.items():
        lines += [f"Costs on {corpus}", "", *_render_costs(contestants), ""]
    if outcomes:
        lines += ["Answers (nDCG@10 / at the top / among ten)", "", *_render_quality(outcomes), ""]
    return "\n".join([*lines, *(f"FAIL  {problem}" for problem in problems)])


def compute_ratios(costs: Mapping[str, Mapping[str, SearchFigures]], outcomes: Sequence[TaskOutcome]) -> list[Ratio]:
    """Compute our ratio to each peer for every cost and for the quality of the answers."""
    all_ratios = []
    for title, contestants in costs.items():
        if OUR_NAME in contestants:
            corpus = title.partition(":")[0]
            peers = {name: item for name, item in contestants.items() if name != OUR_NAME}
            for field in fields(SearchFigures):
                peer_values = {name: getattr(item, field.name) for name, item in peers.items()}
                our_value = getattr(contestants[OUR_NAME], field.name)
                all_ratios += divide_figures(f"{corpus}: {FIGURE_TITLES[field.name]}", our_value, peer_values)
    scores = {(item.corpus, item.kind, item.system): item.score.ndcg for item in outcomes}
    for (corpus, kind, system), score in scores.items():
        if system != OUR_NAME:
            our_value = scores.get((corpus, kind, OUR_NAME))
            all_ratios += divide_figures(f"{corpus}: {kind}, nDCG@10", our_value, {system: score}, more_is_better=True)
    return all_ratios


def _render_costs(contestants: Mapping[str, SearchFigures]) -> Iterator[str]:
    rows = [["", *contestants]]
    for field in fields(SearchFigures):
        values = [getattr(figures, field.name) for figures in contestants.values()]
        if any(value is not None for value in values):
            our_value = getattr(contestants[OUR_NAME], field.name) if OUR_NAME in contestants else None
            rows.append([FIGURE_TITLES[field.name], *(_render_cell(value, our_value) for value in values)])
    yield from _render_table(rows)


def _render_quality(outcomes: Sequence[TaskOutcome]) -> Iterator[str]:
    systems = list(dict.fromkeys(item.system for item in outcomes))
    scores_by_key = {(item.corpus, item.kind, item.system): item.score for item in outcomes}
    rows = [["questions", "count", *systems]]
    for corpus, kind in dict.fromkeys((item.corpus, item.kind) for item in outcomes):
        scores = [scores_by_key.get((corpus, kind, system)) for system in systems]
        count = next(score.questions for score in scores if score is not None)
        cells = ["-" if item is None else f"{item.ndcg:.3f} / {item.hit:.2f} / {item.recall:.2f}" for item in scores]
        rows.append([f"{corpus}, {kind}", str(count), *cells])
    yield from _render_table(rows)


def _render_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    heading, *body = rows
    yield f"| {' | '.join(heading)} |"
    yield f"|{'---|' * len(heading)}"
    yield from (f"| {' | '.join(row)} |" for row in body)


def _render_cell(value: float | None, our_value: float | None) -> str:
    if value is None:
        return "-"
    number = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    return f"{number} ({value / our_value:.2f}x)" if our_value else number

"""The result for readers: a table of scenarios, the exclusions, and the problems."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from conformance.exclusions import RELAYED_SCENARIOS, SuiteExclusion
from conformance.inspector import PROTOCOL_ERAS
from conformance.verdict import RELAY_MARK, ScenarioVerdict

ABSENT_CELL = "-"
REPORT_COLUMNS = 100


@dataclass(slots=True)
class ConformanceReport:
    """The results of every run, by its title."""

    suite: dict[str, list[ScenarioVerdict]] = field(default_factory=dict)
    inspector: dict[str, dict[str, str]] = field(default_factory=dict)
    """The problem of each probe and era, empty if there is none."""

    errors: list[str] = field(default_factory=list)

    def list_problems(self) -> list[str]:
        """Return everything that must not happen."""
        return [
            *self.errors,
            *(
                f"{title}: {verdict.scenario}: {problem}"
                for title, verdicts in self.suite.items()
                for verdict in verdicts
                for problem in verdict.problems
            ),
            *(
                f"Inspector, {era}: {probe}: {problem}"
                for probe, eras in self.inspector.items()
                for era, problem in eras.items()
                if problem
            ),
        ]


def render_report(report: ConformanceReport, exclusions: Sequence[SuiteExclusion]) -> Iterator[str]:
    """Render the report as lines of text."""
    yield from render_table(_build_suite_rows(report.suite))
    yield ""
    yield "Exclusions"
    for number, exclusion in enumerate(exclusions, 1):
        yield from wrap_with_indent(f"[{number}] ", exclusion.reason)
        scope = f"{' and '.join(exclusion.transports)}, {' and '.join(exclusion.revisions)}"
        yield from wrap_with_indent("    ", f"{scope}: {', '.join(exclusion.what)}")
    relayed = ", ".join(f"{part} ({scenario})" for scenario, part in RELAYED_SCENARIOS.items())
    yield from wrap_with_indent(f"[{RELAY_MARK}] ", f"passes by the relay's own doing: {relayed}")
    yield ""
    yield from render_table(_build_inspector_rows(report.inspector))
    yield ""
    problems = report.list_problems()
    for problem in problems:
        yield from wrap_with_indent("FAIL ", problem)
    yield _summarize(report.suite, len(problems))


def _build_suite_rows(suite: Mapping[str, Sequence[ScenarioVerdict]]) -> Iterator[Sequence[str]]:
    yield ["scenario", *suite]
    cells: dict[str, dict[str, ScenarioVerdict]] = {}
    for title, verdicts in suite.items():
        for verdict in verdicts:
            cells.setdefault(verdict.scenario, {})[title] = verdict
    scored = {name: any(cell.scored for cell in row.values()) for name, row in cells.items()}
    for name in sorted(cells, key=lambda name: (not scored[name], name)):
        label = name if scored[name] else f"{name} (not scored)"
        yield [label, *(str(cells[name].get(title, ABSENT_CELL)) for title in suite)]


def _build_inspector_rows(inspector: Mapping[str, Mapping[str, str]]) -> Iterator[Sequence[str]]:
    yield ["MCP Inspector over stdio", *PROTOCOL_ERAS]
    for probe, eras in inspector.items():
        yield [probe, *("FAIL" if eras[era] else "pass" for era in PROTOCOL_ERAS)]


def render_table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Render rows as columns; the first row is the header."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for number, row in enumerate(table):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)


def wrap_with_indent(lead: str, text: str) -> Iterator[str]:
    """Wrap a text; `lead` starts its first line."""
    yield from wrap(text, REPORT_COLUMNS, initial_indent=lead, subsequent_indent="    ", break_on_hyphens=False)


def _summarize(suite: Mapping[str, Sequence[ScenarioVerdict]], problems: int) -> str:
    verdicts = [verdict for run_verdicts in suite.values() for verdict in run_verdicts if verdict.scored]
    passed = sum(verdict.word == "pass" for verdict in verdicts)
    excluded = sum(verdict.word == "excluded" for verdict in verdicts)
    summary = f"Scored scenarios: {passed} pass, {excluded} excluded"
    return f"{summary}. {problems} problem(s)." if problems else f"{summary}. All is well."

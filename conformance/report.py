"""The result, for a reader: a table of scenarios, the exclusions, and what is wrong."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from conformance.exclusions import RELAYED, Exclusion
from conformance.inspector import ERAS
from conformance.verdict import RELAY, Verdict

ABSENT = "-"
WIDTH = 100


@dataclass(slots=True)
class Report:
    """What every run found, by its title."""

    suite: dict[str, list[Verdict]] = field(default_factory=dict)
    inspector: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each probe and era what went wrong, or nothing."""

    wrong: list[str] = field(default_factory=list)

    def problems(self) -> list[str]:
        """Everything that must not be."""
        return [
            *self.wrong,
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


def lines(report: Report, exclusions: Sequence[Exclusion]) -> Iterator[str]:
    """The report as text."""
    yield from _table(_suite_rows(report.suite))
    yield ""
    yield "Exclusions"
    for number, exclusion in enumerate(exclusions, 1):
        yield from _hanging(f"[{number}] ", exclusion.reason)
        where = f"{' and '.join(exclusion.transports)}, {' and '.join(exclusion.revisions)}"
        yield from _hanging("    ", f"{where}: {', '.join(exclusion.what)}")
    relayed = ", ".join(f"{part} ({scenario})" for scenario, part in RELAYED.items())
    yield from _hanging(f"[{RELAY}] ", f"passes by the relay's own doing: {relayed}")
    yield ""
    yield from _table(_inspector_rows(report.inspector))
    yield ""
    problems = report.problems()
    for problem in problems:
        yield from _hanging("FAIL ", problem)
    yield _summary(report.suite, len(problems))


def _suite_rows(suite: Mapping[str, Sequence[Verdict]]) -> Iterator[Sequence[str]]:
    yield ["scenario", *suite]
    cells: dict[str, dict[str, Verdict]] = {}
    for title, verdicts in suite.items():
        for verdict in verdicts:
            cells.setdefault(verdict.scenario, {})[title] = verdict
    scored = {name: any(each.scored for each in row.values()) for name, row in cells.items()}
    for name in sorted(cells, key=lambda name: (not scored[name], name)):
        shown = name if scored[name] else f"{name} (not scored)"
        yield [shown, *(str(cells[name].get(title, ABSENT)) for title in suite)]


def _inspector_rows(inspector: Mapping[str, Mapping[str, str]]) -> Iterator[Sequence[str]]:
    yield ["MCP Inspector over stdio", *ERAS]
    for probe, eras in inspector.items():
        yield [probe, *("FAIL" if eras[era] else "pass" for era in ERAS)]


def _table(rows: Iterator[Sequence[str]]) -> Iterator[str]:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for number, row in enumerate(table):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)


def _hanging(lead: str, text: str) -> Iterator[str]:
    yield from wrap(
        text, WIDTH, initial_indent=lead, subsequent_indent="    ", break_on_hyphens=False
    )


def _summary(suite: Mapping[str, Sequence[Verdict]], problems: int) -> str:
    verdicts = [verdict for each in suite.values() for verdict in each if verdict.scored]
    passed = sum(verdict.word == "pass" for verdict in verdicts)
    excluded = sum(verdict.word == "excluded" for verdict in verdicts)
    said = f"Scored scenarios: {passed} pass, {excluded} excluded"
    return f"{said}. {problems} problem(s)." if problems else f"{said}. All is well."

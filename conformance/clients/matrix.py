"""The result for readers: a row for each client, a column for each check, and the problems."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.clients.session import SessionReport
from conformance.report import render_table, wrap_with_indent

ABSENT_CELL = "-"


@dataclass(slots=True)
class ClientResult:
    """The sessions of one client by what was registered, such as `user`."""

    title: str
    version: str
    sessions: dict[str, SessionReport] = field(default_factory=dict)
    is_second_try: bool = False

    @property
    def first_session(self) -> SessionReport:
        return next(iter(self.sessions.values()))

    def list_problems(self) -> list[str]:
        """Return everything that must not happen."""
        return [
            f"{self.title}, {scope}: {problem}"
            for scope, session in self.sessions.items()
            for problem in session.list_problems()
        ]


def render_matrix(results: Sequence[ClientResult], skipped: Mapping[str, str]) -> Iterator[str]:
    """Render the results as lines of text."""
    titles = list(dict.fromkeys(title for result in results for title in result.first_session.checks))
    rows = [["agent client", "version", *titles, "project", "seconds"]]
    rows += [_build_row(result, titles) for result in results]
    yield from render_table(rows)
    yield ""
    for title, reason in skipped.items():
        yield from wrap_with_indent("skipped ", f"{title}: {reason}")
    for result in results:
        if hosts := sorted({host for session in result.sessions.values() for host in session.foreign_hosts}):
            yield from wrap_with_indent("refused ", f"{result.title} asked for {', '.join(hosts)}")
        if result.is_second_try:
            yield f"retried {result.title}: the first try failed"
    problems = [problem for result in results for problem in result.list_problems()]
    for problem in problems:
        yield from wrap_with_indent("FAIL ", problem)
    passed = sum(not result.list_problems() for result in results)
    yield f"Agent clients: {passed} of {len(results)} pass, {len(skipped)} skipped."


def _build_row(result: ClientResult, titles: Sequence[str]) -> list[str]:
    cells = [_render_cell(result.first_session, title) for title in titles]
    project = result.sessions.get("project")
    project_cell = ABSENT_CELL if project is None else "FAIL" if project.list_problems() else "pass"
    seconds = sum(item.seconds for item in result.sessions.values())
    return [result.title, result.version, *cells, project_cell, f"{seconds:.0f}"]


def _render_cell(session: SessionReport, title: str) -> str:
    if title not in session.checks:
        return ABSENT_CELL
    if session.checks[title]:
        return "FAIL"
    return "on demand" if title == "tools" and session.was_discovered else "pass"

"""Reports for continuous integration: JUnit, annotations of GitHub, and a changelog."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from cleats.contract.compat.findings import ContractFinding
from cleats.contract.compat.report import CONTRACT_HEADING, escape_control_characters, find_line
from cleats.contract.compat.rules import BumpLevel, FindingSeverity
from cleats.contract.compat.verdict import ContractReport

ANNOTATION_COMMANDS: Final = {
    FindingSeverity.ERROR: "error",
    FindingSeverity.WARNING: "warning",
    FindingSeverity.INFO: "notice",
}


def render_junit(report: ContractReport, fail_on: BumpLevel) -> str:
    """Render JUnit XML: a case for every finding, failed from a level on, and one for the version."""
    cases = [_make_junit_case(finding, fail_on) for finding in report.findings]
    missing = "".join(f"<failure message={quoteattr(_clean(sentence))}/>" for sentence in report.missing)
    cases.append(f'<testcase classname="contract" name="version">{missing}</testcase>')
    failures = sum("<failure" in case for case in cases)
    body = "\n".join(f"  {case}" for case in cases)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name="cleats contract" tests="{len(cases)}" failures="{failures}">\n{body}\n</testsuite>\n'
    )


def _make_junit_case(finding: ContractFinding, fail_on: BumpLevel) -> str:
    name = f"{finding.rule.id} {finding.pointer}".strip()
    attributes = f"classname={quoteattr(_clean(finding.tool or 'contract'))} name={quoteattr(_clean(name))}"
    message = _clean(finding.message)
    if finding.rule.level.rank >= fail_on.rank:
        return f"<testcase {attributes}><failure message={quoteattr(message)}/></testcase>"
    return f"<testcase {attributes}><system-out>{escape(message)}</system-out></testcase>"


def _clean(text: str) -> str:
    return escape_control_characters(" ".join(text.split()))


def render_annotations(report: ContractReport, path: str, text: str = "") -> str:
    """Render workflow commands, which GitHub shows beside the lines of the file."""
    lines = [_make_annotation(finding, path, text) for finding in report.findings]
    lines += [f"::error file={_escape_property(path)}::{_escape_data(sentence)}" for sentence in report.missing]
    return "".join(f"{line}\n" for line in lines)


def _make_annotation(finding: ContractFinding, path: str, text: str) -> str:
    command = ANNOTATION_COMMANDS[finding.rule.severity]
    title = f"{finding.rule.id} {finding.tool or CONTRACT_HEADING}"
    place = f"file={_escape_property(path)},line={find_line(text, finding)},title={_escape_property(title)}"
    return f"::{command} {place}::{_escape_data(finding.message)}"


def _escape_data(text: str) -> str:
    return _clean(text).replace("%", "%25")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


def render_changelog(report: ContractReport) -> str:
    """Render the changes as sections of a changelog, in Markdown."""
    title = f"## {report.new_version}" if report.new_version else "## Unreleased"
    sections = [title, ""]
    for heading, findings in groupby(sorted(report.findings, key=_find_heading), key=_find_heading):
        sections += [f"### {heading}", "", *_list_changes(findings), ""]
    return "\n".join(sections)


def _find_heading(finding: ContractFinding) -> str:
    if finding.rule.level is BumpLevel.MAJOR:
        return "Breaking"
    return "Added" if finding.rule.id.endswith("_ADDED") and not finding.rule.security else "Changed"


def _list_changes(findings: Iterator[ContractFinding]) -> Iterator[str]:
    for finding in findings:
        place = f"`{finding.tool}`" if finding.tool else "The server"
        yield f"- {place}: {_clean(finding.message)}"

"""A report as people and machines read it: text, Markdown, SARIF. No colour; that is the CLI's."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from cleats.contract.compat.findings import Finding, Proof
from cleats.contract.compat.rules import RULES, Level, Rule, Severity
from cleats.contract.compat.verdict import Report

CONTRACT: Final = "(the contract)"
"""The heading of what concerns no single tool."""


def render(report: Report) -> str:
    """Plain text: each tool with its changes, then what is missing."""
    lines = [headline(report)]
    for tool, found in groupby(report.findings, key=lambda one: one.tool):
        lines += ["", tool or CONTRACT]
        for one in found:
            lines += _lines(one)
    if report.missing:
        lines += ["", "Missing:", *(f"  - {sentence}" for sentence in report.missing)]
    return "\n".join(map(printable, lines)) + "\n"


def printable(line: str) -> str:
    """Without control characters: another server's words must not steer our terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def headline(report: Report) -> str:
    """The whole report in one line."""
    versions = ""
    if report.old_version is not None or report.new_version is not None:
        versions = f" {report.old_version or 'none'} → {report.new_version or 'none'}"
        if report.old_version == report.new_version:
            versions = f" {report.new_version}"
    if not report.findings:
        return f"Contract{versions}: nothing changed."
    breaking = len(report.at_least(Level.MAJOR)) or "none"
    changes = f"{len(report.findings)} change{'s' if len(report.findings) > 1 else ''}"
    bump = ""
    if report.declared is not None:
        bump = f"; needs a {report.required} bump, declares {report.declared}"
    return f"Contract{versions}: {changes}, {breaking} breaking{bump}."


def _lines(found: Finding) -> Iterator[str]:
    yield f"  {found.rule.level:<5}  {found.rule.id}  {found.pointer}".rstrip()
    yield f"         {found.message}"
    if found.proof is Proof.UNPROVEN:
        yield "         Cannot be proved safe, so it counts as breaking."
    if found.witness is not None:
        yield f"         {_story(found)}: {_json(found.witness.instance)}"


def _story(found: Finding) -> str:
    if found.rule.id.startswith("INPUT_"):
        return "Accepted before, refused now"
    return "Possible now, forbidden before"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def markdown(report: Report) -> str:
    """For a pull request: the same, as a table."""
    lines = [f"**{headline(report)}**", ""]
    if report.findings:
        lines += ["| Level | Rule | Where | What |", "|---|---|---|---|"]
        lines += [_row(found) for found in report.findings]
        lines.append("")
    if report.missing:
        lines += ["Missing:", "", *(f"- {_cell(sentence)}" for sentence in report.missing), ""]
    return "\n".join(lines)


def _row(found: Finding) -> str:
    where = f"{found.tool or CONTRACT} {f'`{found.pointer}`' if found.pointer else ''}".strip()
    what = found.message
    if found.proof is Proof.UNPROVEN:
        what += " Cannot be proved safe."
    if found.witness is not None:
        what += f" {_story(found)}: `{_json(found.witness.instance)}`"
    cells = (found.rule.level.value, f"`{found.rule.id}`", where, what)
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Safe inside a table: what another server wrote must not become markup of ours."""
    flat = printable(" ".join(text.split()))
    return flat.replace("|", "\\|").replace("<", "&lt;")


def explain(rule: Rule) -> str:
    """What a rule looks for and what it obliges to."""
    bump = f"needs a {rule.level} bump" if rule.level is not Level.NONE else "needs no bump"
    lines = [rule.id, "", f"  {rule.purpose}", "", f"  The contract's version {bump}."]
    if rule.integer:
        lines.append("  The schemaVersion of each tool that it touches has to rise.")
    return "\n".join(lines)


SARIF_LEVELS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}


def sarif(report: Report, uri: str) -> dict[str, Any]:
    """SARIF 2.1.0, which code hosts show beside the changed file; `uri` is the snapshot's."""
    used = sorted({found.rule.id for found in report.findings})
    driver = {"name": "cleats contract", "rules": [_sarif_rule(RULES[name]) for name in used]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {"tool": {"driver": driver}, "results": [_result(f, uri) for f in report.findings]}
        ],
    }


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.purpose},
        "defaultConfiguration": {"level": SARIF_LEVELS[rule.severity]},
    }


def _result(found: Finding, uri: str) -> dict[str, Any]:
    text = found.message
    if found.witness is not None:
        text += f" {_story(found)}: {_json(found.witness.instance)}"
    place = {"fullyQualifiedName": f"{found.tool or ''}{found.pointer}"}
    return {
        "ruleId": found.rule.id,
        "level": SARIF_LEVELS[found.rule.severity],
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": uri}},
                "logicalLocations": [place],
            }
        ],
    }

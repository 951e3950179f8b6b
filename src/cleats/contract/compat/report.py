"""Rendering of reports for people and machines: text, Markdown, SARIF. The CLI adds colour."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from cleats.contract.compat.findings import ContractFinding, Proof
from cleats.contract.compat.rules import RULES, BumpLevel, ContractRule, FindingSeverity
from cleats.contract.compat.verdict import ContractReport

CONTRACT_HEADING: Final = "(the contract)"
"""The heading for findings that concern no single tool."""


def render_text(report: ContractReport) -> str:
    """Render plain text: each tool with its changes, then the missing bumps."""
    lines = [format_headline(report)]
    for tool, findings in groupby(report.findings, key=lambda finding: finding.tool):
        lines += ["", tool or CONTRACT_HEADING]
        for finding in findings:
            lines += _format_finding(finding)
    if report.missing:
        lines += ["", "Missing:", *(f"  - {sentence}" for sentence in report.missing)]
    return "\n".join(map(escape_control_characters, lines)) + "\n"


def escape_control_characters(line: str) -> str:
    """Escape control characters: the words of another server must not control our terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in line
    )


def format_headline(report: ContractReport) -> str:
    """Summarize the report in one line."""
    versions = ""
    if report.old_version is not None or report.new_version is not None:
        versions = f" {report.old_version or 'none'} → {report.new_version or 'none'}"
        if report.old_version == report.new_version:
            versions = f" {report.new_version}"
    if not report.findings:
        return f"Contract{versions}: nothing changed."
    breaking = len(report.filter_by_level(BumpLevel.MAJOR)) or "none"
    changes = f"{len(report.findings)} change{'s' if len(report.findings) > 1 else ''}"
    bump = ""
    if report.declared is not None:
        bump = f"; needs a {report.required} bump, declares {report.declared}"
    return f"Contract{versions}: {changes}, {breaking} breaking{bump}."


def _format_finding(finding: ContractFinding) -> Iterator[str]:
    yield f"  {finding.rule.level:<5}  {finding.rule.id}  {finding.pointer}".rstrip()
    yield f"         {finding.message}"
    if finding.proof is Proof.UNPROVEN:
        yield "         Cannot be proved safe, so it counts as breaking."
    if finding.witness is not None:
        yield f"         {_describe_witness(finding)}: {_encode_json(finding.witness.instance)}"


def _describe_witness(finding: ContractFinding) -> str:
    if finding.rule.id.startswith("INPUT_"):
        return "Accepted before, refused now"
    return "Possible now, forbidden before"


def _encode_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def render_markdown(report: ContractReport) -> str:
    """Render the report for a pull request, with the findings as a table."""
    lines = [f"**{format_headline(report)}**", ""]
    if report.findings:
        lines += ["| Level | Rule | Where | What |", "|---|---|---|---|"]
        lines += [_format_table_row(finding) for finding in report.findings]
        lines.append("")
    if report.missing:
        lines += ["Missing:", "", *(f"- {_escape_table_cell(sentence)}" for sentence in report.missing), ""]
    return "\n".join(lines)


def _format_table_row(finding: ContractFinding) -> str:
    location = f"{finding.tool or CONTRACT_HEADING} {f'`{finding.pointer}`' if finding.pointer else ''}".strip()
    description = finding.message
    if finding.proof is Proof.UNPROVEN:
        description += " Cannot be proved safe."
    if finding.witness is not None:
        description += f" {_describe_witness(finding)}: `{_encode_json(finding.witness.instance)}`"
    cells = (finding.rule.level.value, f"`{finding.rule.id}`", location, description)
    return f"| {' | '.join(map(_escape_table_cell, cells))} |"


def _escape_table_cell(text: str) -> str:
    """Escape text for a table cell: the words of another server must not become our markup."""
    flat = escape_control_characters(" ".join(text.split()))
    return flat.replace("|", "\\|").replace("<", "&lt;")


def explain_rule(rule: ContractRule) -> str:
    """Describe a rule's purpose and the bump it requires."""
    bump = f"needs a {rule.level} bump" if rule.level is not BumpLevel.NONE else "needs no bump"
    lines = [rule.id, "", f"  {rule.purpose}", "", f"  The contract's version {bump}."]
    if rule.integer:
        lines.append("  The schemaVersion of each tool that it touches has to rise.")
    return "\n".join(lines)


SARIF_LEVELS: Final = {FindingSeverity.ERROR: "error", FindingSeverity.WARNING: "warning", FindingSeverity.INFO: "note"}


def render_sarif(report: ContractReport, uri: str) -> dict[str, Any]:
    """Render SARIF 2.1.0, which code hosts show next to the changed file.

    `uri` is the address of the snapshot.
    """
    rule_ids = sorted({finding.rule.id for finding in report.findings})
    driver = {"name": "cleats contract", "rules": [_make_sarif_rule(RULES[name]) for name in rule_ids]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "results": [_make_sarif_result(reported_finding, uri) for reported_finding in report.findings],
            }
        ],
    }


def _make_sarif_rule(rule: ContractRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.purpose},
        "defaultConfiguration": {"level": SARIF_LEVELS[rule.severity]},
    }


def _make_sarif_result(finding: ContractFinding, uri: str) -> dict[str, Any]:
    text = finding.message
    if finding.witness is not None:
        text += f" {_describe_witness(finding)}: {_encode_json(finding.witness.instance)}"
    logical_location = {"fullyQualifiedName": f"{finding.tool or ''}{finding.pointer}"}
    return {
        "ruleId": finding.rule.id,
        "level": SARIF_LEVELS[finding.rule.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}}, "logicalLocations": [logical_location]}],
    }

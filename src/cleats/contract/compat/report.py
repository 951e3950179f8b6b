"""Rendering of reports for people and machines: text, Markdown, SARIF. The CLI adds colour."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from cleats.contract.compat.findings import ContractFinding, Proof
from cleats.contract.compat.rules import RULES, BumpLevel, ContractRule, FindingSeverity
from cleats.contract.compat.verdict import ContractReport
from cleats.contract.pointer import split_pointer

CONTRACT_HEADING: Final = "(the contract)"
"""The heading for findings that concern no single tool."""


def render_text(report: ContractReport) -> str:
    """Render plain text: breaking changes first, each tool with its own, then the missing bumps."""
    lines = [format_headline(report)]
    has_both = len({finding.is_breaking for finding in report.findings}) > 1
    for is_breaking, section in groupby(report.findings, key=lambda finding: finding.is_breaking):
        if has_both:
            lines += ["", "Breaking:" if is_breaking else "Not breaking:"]
        for tool, findings in groupby(section, key=lambda finding: finding.tool):
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
    suspicious = sum(finding.rule.security for finding in report.findings)
    changes = f"{len(report.findings)} change{'s' if len(report.findings) > 1 else ''}"
    warning = f", {suspicious} suspicious" if suspicious else ""
    declared = "" if report.declared is None else f", declares {report.declared}"
    return f"Contract{versions}: {changes}, {breaking} breaking{warning}; needs a {report.required} bump{declared}."


def _format_finding(finding: ContractFinding) -> Iterator[str]:
    yield f"  {finding.rule.level:<5}  {finding.rule.id}  {finding.pointer}".rstrip()
    yield f"         {finding.message}"
    if finding.proof is Proof.UNPROVEN:
        yield "         Cannot be proved safe, so it counts as breaking."
    if finding.witness is not None:
        yield f"         {_describe_witness(finding)}: {_shorten(_encode_json(finding.witness.instance))}"


def _describe_witness(finding: ContractFinding) -> str:
    if finding.witness is not None and not finding.witness.is_refused:
        return "Used before, unknown now" if finding.rule.id.startswith("INPUT_") else "Answered before, unknown now"
    if finding.rule.id.startswith("INPUT_"):
        return "Accepted before, refused now"
    return "Possible now, forbidden before"


MAX_WITNESS_CHARACTERS: Final = 400
"""The length to which a witness is cut in reports for people; JSON has it whole."""


def _shorten(text: str) -> str:
    if len(text) <= MAX_WITNESS_CHARACTERS:
        return text
    return f"{text[: MAX_WITNESS_CHARACTERS // 2]}… ({len(text):,} characters)"


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
    location = f"{finding.tool or CONTRACT_HEADING} {finding.pointer}".strip()
    description = finding.message
    if finding.proof is Proof.UNPROVEN:
        description += " Cannot be proved safe."
    if finding.witness is not None:
        description += f" {_describe_witness(finding)}: {_shorten(_encode_json(finding.witness.instance))}"
    cells = (finding.rule.level.value, finding.rule.id, location, description)
    return f"| {' | '.join(map(_escape_table_cell, cells))} |"


def _escape_table_cell(text: str) -> str:
    """Escape text for a table cell: the words of another server must not become our markup."""
    flat = escape_control_characters(" ".join(text.split()))
    for character in "\\|[]!*_":
        flat = flat.replace(character, f"\\{character}")
    # A comment inside breaks addresses and mentions, which cannot be escaped.
    return flat.replace("<", "&lt;").replace("@", "@<!-- -->").replace("://", ":<!-- -->//")


SARIF_LEVELS: Final = {FindingSeverity.ERROR: "error", FindingSeverity.WARNING: "warning", FindingSeverity.INFO: "note"}


def render_sarif(report: ContractReport, uri: str, text: str = "") -> dict[str, Any]:
    """Render SARIF 2.1.0, which code hosts show next to the changed file.

    `uri` is the address of the snapshot, and `text` the file there, for the lines of the findings.
    """
    rule_ids = sorted({finding.rule.id for finding in report.findings})
    driver = {"name": "cleats contract", "rules": [_make_sarif_rule(RULES[name]) for name in rule_ids]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "results": [_make_sarif_result(finding, uri, text) for finding in report.findings],
            }
        ],
    }


def _make_sarif_rule(rule: ContractRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.purpose},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": SARIF_LEVELS[rule.severity]},
    }


def find_line(text: str, finding: ContractFinding) -> int:
    """Return the line of a snapshot file that a finding is about, or of the nearest place around it."""
    path = [*(["tools", finding.tool] if finding.tool else []), *split_pointer(finding.pointer)]
    lines = text.splitlines()
    found, start = 1, 0
    for depth, token in enumerate(path, 1):
        prefix = f"{' ' * 2 * depth}{json.dumps(token, ensure_ascii=False)}:"
        position = next((number for number in range(start, len(lines)) if lines[number].startswith(prefix)), None)
        if position is None:
            break
        found, start = position + 1, position + 1
    return found


def _make_sarif_result(finding: ContractFinding, uri: str, text: str) -> dict[str, Any]:
    message = finding.message
    if finding.witness is not None:
        message += f" {_describe_witness(finding)}: {_encode_json(finding.witness.instance)}"
    logical_location = {"fullyQualifiedName": f"{finding.tool or ''}{finding.pointer}"}
    return {
        "ruleId": finding.rule.id,
        "level": SARIF_LEVELS[finding.rule.severity],
        "message": {"text": message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri},
                    "region": {"startLine": find_line(text, finding)},
                },
                "logicalLocations": [logical_location],
            }
        ],
    }

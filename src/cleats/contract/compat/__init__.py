"""Comparison of two contract snapshots: changes, whom they break, and the version bump they need.

`compare_snapshots` is the entry point. Inputs may only grow and outputs may only shrink; a change
that cannot be proved safe counts as breaking. It works on our own snapshots and on those of any MCP
server.
"""

from collections.abc import Collection, Mapping
from typing import Any

from cleats.contract.compat.findings import ContractFinding, Proof, Witness
from cleats.contract.compat.renames import ToolMatching
from cleats.contract.compat.report import explain_rule, render_markdown, render_sarif, render_text
from cleats.contract.compat.rules import RULES, BumpLevel, ContractRule, FindingSeverity
from cleats.contract.compat.snapshot_diff import SnapshotError, find_differences, normalize_snapshot
from cleats.contract.compat.verdict import ContractReport, build_report

__all__ = [
    "RULES",
    "BumpLevel",
    "ContractFinding",
    "ContractReport",
    "ContractRule",
    "FindingSeverity",
    "Proof",
    "SnapshotError",
    "Witness",
    "compare_snapshots",
    "explain_rule",
    "render_markdown",
    "render_sarif",
    "render_text",
]


def compare_snapshots(
    old: Mapping[str, Any], new: Mapping[str, Any], *, ignore: Collection[str] = ()
) -> ContractReport:
    """Find every change from the old snapshot to the new one, and report the bump they need.

    `ignore` holds the ids of rules whose findings are left out.

    Raises:
        SnapshotError: One of the two is not a snapshot.
    """
    before, after = normalize_snapshot(old), normalize_snapshot(new)
    matching = ToolMatching.from_tools(before["tools"], after["tools"])
    findings = find_differences(before, after, matching)
    return build_report(before, after, matching, (finding for finding in findings if finding.rule.id not in ignore))

"""Comparison of two contract snapshots: changes, whom they break, and the version bump they need.

`compare_snapshots` is the entry point. Inputs may only grow and outputs may only shrink; a change
that cannot be proved safe counts as breaking. It works on our own snapshots and on those of any MCP
server.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from cleats.contract.compat.findings import ContractFinding, ContractSide, Proof, Witness
from cleats.contract.compat.keywords import is_same_json
from cleats.contract.compat.policy import DEFAULT_POLICY, ContractPolicy, RuleException
from cleats.contract.compat.renames import ToolMatching
from cleats.contract.compat.report import explain_rule, render_markdown, render_sarif, render_text
from cleats.contract.compat.rules import RULES, BumpLevel, ContractRule, FindingSeverity
from cleats.contract.compat.schema_diff import compare_schemas
from cleats.contract.compat.snapshot_diff import (
    SchemaComparer,
    SchemaPair,
    SnapshotError,
    find_differences,
    list_schema_pairs,
    normalize_snapshot,
)
from cleats.contract.compat.verdict import ContractReport, build_report

__all__ = [
    "RULES",
    "BumpLevel",
    "ContractFinding",
    "ContractPolicy",
    "ContractReport",
    "ContractRule",
    "FindingSeverity",
    "Proof",
    "RuleException",
    "SchemaPair",
    "SnapshotError",
    "Witness",
    "compare_snapshots",
    "explain_rule",
    "list_changed_schemas",
    "render_markdown",
    "render_sarif",
    "render_text",
]


def compare_snapshots(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    policy: ContractPolicy = DEFAULT_POLICY,
    compare: SchemaComparer | None = None,
) -> ContractReport:
    """Find every change from the old snapshot to the new one, and report the bump they need.

    `compare` compares two schemas; by default they are compared here, without a time limit.

    Raises:
        SnapshotError: One of the two is not a snapshot.
    """
    before, after = normalize_snapshot(old), normalize_snapshot(new)
    matching = ToolMatching.from_tools(before["tools"], after["tools"])
    findings = find_differences(before, after, matching, compare or partial(compare_schemas, strict=policy.strict))
    return build_report(before, after, matching, policy.apply(findings))


def list_changed_schemas(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[SchemaPair]:
    """Return the pairs of schemas that a comparison of two snapshots has to compare.

    Raises:
        SnapshotError: One of the two is not a snapshot.
    """
    before, after = normalize_snapshot(old), normalize_snapshot(new)
    matching = ToolMatching.from_tools(before["tools"], after["tools"])
    pairs = [
        pair
        for name, new_name in matching.new_names.items()
        for pair in list_schema_pairs(before, after, before["tools"][name], after["tools"][new_name])
    ]
    if "envelope" in before and "envelope" in after:
        pairs.append(SchemaPair(before["envelope"], after["envelope"], ContractSide.ENVELOPE, "/envelope"))
    return [pair for pair in pairs if not is_same_json(pair.old, pair.new)]

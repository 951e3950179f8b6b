"""Comparison of two contract snapshots: changes, whom they break, and the version bump they need.

`compare_snapshots` is the entry point, `SnapshotComparison` the one for callers that compare the
schemas themselves. Inputs may only grow and outputs may only shrink; a change that cannot be proved
safe counts as breaking. It works on our own snapshots and on those of any MCP server.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from cleats.contract.compat.findings import ContractFinding, ContractSide, Proof, Witness
from cleats.contract.compat.keywords import is_same_json
from cleats.contract.compat.policy import DEFAULT_POLICY, ContractPolicy, RuleException
from cleats.contract.compat.renames import ToolMatching
from cleats.contract.compat.report import render_markdown, render_sarif, render_text
from cleats.contract.compat.rule_pages import explain_rule
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
    "SnapshotComparison",
    "SnapshotError",
    "Witness",
    "compare_snapshots",
    "explain_rule",
    "render_markdown",
    "render_sarif",
    "render_text",
]


def compare_snapshots(
    old: Mapping[str, Any], new: Mapping[str, Any], *, policy: ContractPolicy = DEFAULT_POLICY
) -> ContractReport:
    """Find every change from the old snapshot to the new one, and report the bump they need.

    Schemas are compared here, without a time limit.

    Raises:
        SnapshotError: One of the two is not a snapshot.
    """
    return SnapshotComparison(old, new).build_report(policy, partial(compare_schemas, strict=policy.strict))


class SnapshotComparison:
    """Two snapshots, normalized, with their tools matched by name.

    Raises:
        SnapshotError: One of the two is not a snapshot.
    """

    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        self._old, self._new = normalize_snapshot(old), normalize_snapshot(new)
        self._matching = ToolMatching.from_tools(self._old["tools"], self._new["tools"])

    def list_changed_schemas(self) -> list[list[SchemaPair]]:
        """Return the pairs of schemas that have to be compared, grouped by tool."""
        old_tools, new_tools = self._old["tools"], self._new["tools"]
        groups = [
            list_schema_pairs(self._old, self._new, old_tools[name], new_tools[new_name])
            for name, new_name in self._matching.new_names.items()
        ]
        if "envelope" in self._old and "envelope" in self._new:
            envelopes = self._old["envelope"], self._new["envelope"]
            groups.append([SchemaPair(*envelopes, ContractSide.ENVELOPE, "/envelope")])
        changed = ([pair for pair in pairs if not is_same_json(pair.old, pair.new)] for pairs in groups)
        return [pairs for pairs in changed if pairs]

    def build_report(self, policy: ContractPolicy, compare: SchemaComparer) -> ContractReport:
        """Report every change; `compare` compares two schemas."""
        findings = find_differences(self._old, self._new, self._matching, compare)
        return build_report(self._old, self._new, self._matching, policy.apply(findings))

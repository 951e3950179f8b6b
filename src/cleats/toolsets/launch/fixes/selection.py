"""Which issue a fix attempt takes: the worst open one that has a rule and was not tried."""

from collections.abc import Collection, Mapping
from typing import Any

from cleats.toolsets.launch.issues import BLOCKING, Issue

FIX = "fix:"
"""How the steps of fix attempts begin."""


def select(
    report: Mapping[str, Any], tried: Collection[str], codes: Collection[str]
) -> Issue | None:
    """The next issue to try, or None when no rule is left for what is open.

    `codes` are the error codes that have a rule. The order is that of every list of issues:
    severity, gate, path, line, id.
    """
    issues = sorted(map(Issue.of, report["issues"]), key=lambda issue: issue.sort_key)
    for issue in issues:
        open_one = issue.status == "OPEN" and issue.severity in BLOCKING
        if open_one and issue.issue_id not in tried and issue.error_code in codes and issue.path:
            return issue
    return None


def tried(facts: Mapping[str, Any]) -> frozenset[str]:
    """The issues that earlier attempts of the run took, from what its steps returned.

    An attempt that only undid an edit by hand has not tried the issue's own rule yet.
    """
    return frozenset(
        str(said["issue_id"])
        for step, said in facts.items()
        if step.startswith(FIX) and (said["rule"] == said["error_code"] or not said["patch_ids"])
    )


def siblings(report: Mapping[str, Any], issue: Issue) -> list[Issue]:
    """Every open issue of the same code in the same file."""
    return [
        each
        for each in sorted(map(Issue.of, report["issues"]), key=lambda each: each.sort_key)
        if (each.error_code, each.path, each.status) == (issue.error_code, issue.path, "OPEN")
    ]

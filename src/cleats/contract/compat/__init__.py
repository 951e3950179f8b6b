"""Compare two snapshots of a contract: what changed, whom it breaks, which bump it needs.

`compare` is the whole of it. Inputs may only grow and outputs may only shrink; what cannot be
proved safe counts as breaking. Works on our own snapshots and on those of any MCP server.
"""

from collections.abc import Collection, Mapping
from typing import Any

from cleats.contract.compat.findings import Finding, Proof, Witness
from cleats.contract.compat.names import Naming
from cleats.contract.compat.reading import SnapshotError, admit
from cleats.contract.compat.render import explain, markdown, render, sarif
from cleats.contract.compat.rules import RULES, Level, Rule, Severity
from cleats.contract.compat.surface import differences
from cleats.contract.compat.verdict import Report, verdict

__all__ = [
    "RULES",
    "Finding",
    "Level",
    "Proof",
    "Report",
    "Rule",
    "Severity",
    "SnapshotError",
    "Witness",
    "compare",
    "explain",
    "markdown",
    "render",
    "sarif",
]


def compare(
    old: Mapping[str, Any], new: Mapping[str, Any], *, ignore: Collection[str] = ()
) -> Report:
    """Find every change from the old snapshot to the new one, and weigh them.

    `ignore` holds the ids of rules whose findings are left out.

    Raises:
        SnapshotError: one of the two is no snapshot.
    """
    before, after = admit(old), admit(new)
    naming = Naming.of(before["tools"], after["tools"])
    found = differences(before, after, naming)
    return verdict(before, after, naming, (one for one in found if one.rule.id not in ignore))

"""Comparison of snapshots in child processes, because the schemas of other servers can keep a prover busy for hours."""

import os
import pickle
from typing import Any, Final, NamedTuple

from cleats.contract.compat import ContractPolicy, ContractReport, SnapshotComparison
from cleats.contract.compat.findings import ContractFinding, ContractSide
from cleats.contract.compat.keywords import Schema, encode_canonical
from cleats.contract.compat.schema_diff import compare_schemas, make_late_finding
from cleats.contract.compat.snapshot_diff import SchemaPair

MAX_TOOL_CPU_SECONDS: Final = 5.0
"""Time for the changed schemas of one tool; all but made-up ones take milliseconds."""

PairKey = tuple[str, str, ContractSide]


class BoundedPair(NamedTuple):
    """Two schemas, and the time that their comparison may take."""

    pair: SchemaPair
    cpu_seconds: float


def compare_bounded(old: Any, new: Any, policy: ContractPolicy) -> ContractReport:
    """Compare two snapshots; a schema that takes too long is unproven, and so counts as breaking.

    Raises:
        SnapshotError: One of the two is not a snapshot.
    """
    comparison = SnapshotComparison(old, new)
    tasks = [
        BoundedPair(pair, MAX_TOOL_CPU_SECONDS / len(pairs))
        for pairs in comparison.list_changed_schemas()
        for pair in pairs
    ]
    results = dict(zip((_make_key(*task.pair[:3]) for task in tasks), _compare_pairs(tasks, policy), strict=True))

    def get_findings(before: Schema, after: Schema, side: ContractSide) -> list[ContractFinding]:
        return results.get(_make_key(before, after, side), [])

    return comparison.build_report(policy, get_findings)


def _make_key(old: Schema, new: Schema, side: ContractSide) -> PairKey:
    return encode_canonical(old), encode_canonical(new), side


def _compare_pairs(tasks: list[BoundedPair], policy: ContractPolicy) -> list[list[ContractFinding]]:
    if not tasks:
        return []
    from cleats.system.worker_pool import (  # noqa: PLC0415 - only if something changed
        MIN_TASK_CPU_SECONDS,
        WEIGHT_PER_CPU_SECOND,
        LostTask,
        ProcessPool,
    )

    def compare_pair(task: BoundedPair) -> bytes:
        old, new, side, _ = task.pair
        return pickle.dumps(compare_schemas(old, new, side, strict=policy.strict))

    def get_weight(task: BoundedPair) -> int:
        return int((task.cpu_seconds - MIN_TASK_CPU_SECONDS) * WEIGHT_PER_CPU_SECOND)

    pool = ProcessPool(compare_pair, min(len(tasks), os.cpu_count() or 1))
    return [
        [make_late_finding(task.pair.side, task.cpu_seconds)] if isinstance(result, LostTask) else pickle.loads(result)  # noqa: S301 - from our own process
        for task, result in pool.map(tasks, get_weight)
    ]

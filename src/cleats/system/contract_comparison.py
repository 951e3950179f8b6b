"""Comparison of snapshots in child processes, because the schemas of other servers can keep a prover busy for hours."""

import os
import pickle
from typing import Any, Final

from cleats.contract.compat import ContractPolicy, ContractReport, compare_snapshots, list_changed_schemas
from cleats.contract.compat.findings import ContractFinding, ContractSide
from cleats.contract.compat.keywords import Schema, encode_canonical
from cleats.contract.compat.schema_diff import compare_schemas, make_late_finding
from cleats.contract.compat.snapshot_diff import SchemaPair

MAX_COMPARISON_CPU_SECONDS: Final = 5.0
"""Time for one schema of one tool; all but made-up ones take milliseconds."""

PairKey = tuple[str, str, ContractSide]


def compare_bounded(old: Any, new: Any, policy: ContractPolicy) -> ContractReport:
    """Compare two snapshots; a schema that takes too long is unproven, and so counts as breaking.

    Raises:
        SnapshotError: One of the two is not a snapshot.
    """
    pairs = list_changed_schemas(old, new)
    results = dict(zip(map(_make_key, pairs), _compare_pairs(pairs, policy), strict=True))

    def compare(before: Schema, after: Schema, side: ContractSide) -> list[ContractFinding]:
        return results.get(_make_key(SchemaPair(before, after, side, "")), [])

    return compare_snapshots(old, new, policy=policy, compare=compare)


def _make_key(pair: SchemaPair) -> PairKey:
    return encode_canonical(pair.old), encode_canonical(pair.new), pair.side


def _compare_pairs(pairs: list[SchemaPair], policy: ContractPolicy) -> list[list[ContractFinding]]:
    if not pairs:
        return []
    from cleats.system.worker_pool import (  # noqa: PLC0415 - only if something changed
        MIN_TASK_CPU_SECONDS,
        WEIGHT_PER_CPU_SECOND,
        LostTask,
        ProcessPool,
    )

    def compare_pair(pair: SchemaPair) -> bytes:
        return pickle.dumps(compare_schemas(pair.old, pair.new, pair.side, strict=policy.strict))

    weight = int((MAX_COMPARISON_CPU_SECONDS - MIN_TASK_CPU_SECONDS) * WEIGHT_PER_CPU_SECOND)
    pool = ProcessPool(compare_pair, min(len(pairs), os.cpu_count() or 1))
    return [
        [make_late_finding(pair.side, MAX_COMPARISON_CPU_SECONDS)]
        if isinstance(result, LostTask)
        else pickle.loads(result)  # noqa: S301 - from our own process
        for pair, result in pool.map(pairs, lambda _pair: weight)
    ]

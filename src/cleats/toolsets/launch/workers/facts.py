"""The worker that collects product facts, each statement with its evidence (W2)."""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.facts import build_facts


async def run(job: WorkerJob) -> Mapping[str, Any]:
    """Write the product facts and the evidence map, without a language model."""
    inventory = job.read_json("repo_inventory.json")
    built = build_facts(CheckoutTree(job.repo, frozenset(inventory["paths"])), inventory, job.config)
    job.write("product_facts.json", built.product_facts)
    job.write("evidence_map.json", built.evidence_map)
    claims = built.evidence_map["claims"]
    return {
        "claims": len(claims),
        "facts": sum(claim["truth_status"] == "fact" for claim in claims),
        "contradictions": len(built.evidence_map["contradictions"]),
        "launch_tier_hint": "minimal" if len(claims) < 5 else "standard",
    }

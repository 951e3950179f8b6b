"""What is known about the product, each statement with its evidence (W2)."""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.source.facts import build
from cleats.toolsets.launch.source.tree import Tree
from cleats.toolsets.launch.workers.job import Job


async def run(job: Job) -> Mapping[str, Any]:
    """Write the product facts and the evidence map. No language model is asked."""
    inventory = job.json("repo_inventory.json")
    built = build(Tree(job.repo, frozenset(inventory["paths"])), inventory, job.config)
    job.write("product_facts.json", built.product_facts)
    job.write("evidence_map.json", built.evidence_map)
    claims = built.evidence_map["claims"]
    return {
        "claims": len(claims),
        "facts": sum(claim["truth_status"] == "fact" for claim in claims),
        "contradictions": len(built.evidence_map["contradictions"]),
        "launch_tier_hint": "minimal" if len(claims) < 5 else "standard",
    }

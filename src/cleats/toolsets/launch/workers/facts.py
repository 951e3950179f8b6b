"""The workers that read the source: product facts with evidence (W2), and code for the pages (W3)."""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.snippets.catalogue import build_catalogue
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.facts import build_facts
from cleats.toolsets.launch.source.evidence.repository_sources import resolve_language


async def run_facts(job: WorkerJob) -> Mapping[str, Any]:
    """Write the product facts and the evidence map, without a language model."""
    inventory = job.read_json("repo_inventory.json")
    product_facts, evidence_map = build_facts(
        CheckoutTree(job.repo, frozenset(inventory["paths"])), inventory, job.config
    )
    job.write("product_facts.json", product_facts)
    job.write("evidence_map.json", evidence_map)
    claims = evidence_map["claims"]
    return {
        "claims": len(claims),
        "facts": sum(claim["truth_status"] == "fact" for claim in claims),
        "contradictions": len(evidence_map["contradictions"]),
        "launch_tier_hint": "minimal" if len(claims) < 5 else "standard",
    }


async def run_snippets(job: WorkerJob) -> Mapping[str, Any]:
    """Write the catalogue of snippets."""
    inventory = job.read_json("repo_inventory.json")
    facts = job.read_json("product_facts.json")
    language = resolve_language(job.config, inventory)
    tree = CheckoutTree(job.repo, frozenset(inventory["paths"]))
    catalog = build_catalogue(tree, inventory, facts, language)
    job.write("snippet_catalog.json", catalog)
    valid_snippets = [snippet for snippet in catalog["snippets"] if snippet["validation"]["syntax_ok"]]
    return {"snippets": len(catalog["snippets"]), "valid": len(valid_snippets)}

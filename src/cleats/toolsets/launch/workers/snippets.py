"""The worker that collects the code that pages may show (W3)."""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.snippets.catalogue import build_catalogue
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.repository_sources import resolve_language


async def run(job: WorkerJob) -> Mapping[str, Any]:
    """Write the catalogue of snippets."""
    inventory = job.read_json("repo_inventory.json")
    facts = job.read_json("product_facts.json")
    language = resolve_language(job.config, inventory)
    tree = CheckoutTree(job.repo, frozenset(inventory["paths"]))
    catalog = build_catalogue(tree, inventory, facts, language)
    job.write("snippet_catalog.json", catalog)
    valid_snippets = [snippet for snippet in catalog["snippets"] if snippet["validation"]["syntax_ok"]]
    return {"snippets": len(catalog["snippets"]), "valid": len(valid_snippets)}

"""The code that pages may show (W3)."""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.snippets.catalog import build
from cleats.toolsets.launch.source.sources import language_of
from cleats.toolsets.launch.source.tree import Tree
from cleats.toolsets.launch.workers.job import Job


async def run(job: Job) -> Mapping[str, Any]:
    """Write the catalogue of snippets."""
    inventory = job.json("repo_inventory.json")
    facts = job.json("product_facts.json")
    language = language_of(job.config, inventory)
    tree = Tree(job.repo, frozenset(inventory["paths"]))
    catalog = build(tree, inventory, facts, language)
    job.write("snippet_catalog.json", catalog)
    valid = [each for each in catalog["snippets"] if each["validation"]["syntax_ok"]]
    return {"snippets": len(catalog["snippets"]), "valid": len(valid)}

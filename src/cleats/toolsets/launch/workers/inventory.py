"""The worker that takes the inventory of the source repository (W1, second part)."""

import os
from collections.abc import Mapping
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.git.client import HardenedGit
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree, IngestionScope
from cleats.toolsets.launch.source.evidence import inventory


async def run(job: WorkerJob) -> Mapping[str, Any]:
    """Write the inventory.

    Raises:
        ToolError: INVALID_INPUT with reason REPO_EMPTY if there is no file to read.
    """
    all_paths = CheckoutTree(job.repo).paths
    if not all_paths:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            "REPO_EMPTY: the source repository has no files at this commit.",
            details={"reason": "REPO_EMPTY", "field": "github_ref"},
        )
    scope = IngestionScope.from_config(job.config)
    tree = CheckoutTree(job.repo, frozenset(filter(scope.includes, all_paths)) - await _list_ignored_paths(job))
    if not tree.paths:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            "REPO_EMPTY: the run's ingestion leaves no file of the source repository.",
            details={"reason": "REPO_EMPTY", "field": "ingestion"},
        )
    refs = job.read_json("resolved_refs.json")["repo"]
    inventory_document = inventory.take_inventory(tree, refs["repo_url"], refs["resolved_sha"], scope)
    job.write("repo_inventory.json", inventory_document)
    return {
        "files": len(inventory_document["paths"]),
        "platform_family": inventory_document["repo_profile"]["platform_family"],
        "phantom_paths": len(inventory_document["phantom_paths"]),
    }


async def _list_ignored_paths(job: WorkerJob) -> frozenset[str]:
    """Return committed files that `.gitignore` names; only the mode `strict` excludes them."""
    if job.config.get("ingestion", {}).get("gitignore_mode") != "strict":
        return frozenset()
    git = HardenedGit(job.settings.get("git_env", {}), job.repo)
    options = ("-z", "--cached", "--ignored", "--exclude-per-directory=.gitignore")
    output = await git.run("", "ls-files", *options)
    return frozenset(os.fsdecode(path) for path in output.split(b"\0") if path)

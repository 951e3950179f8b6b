"""What the source repository holds (W1, second part)."""

from collections.abc import Mapping
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.source import inventory
from cleats.toolsets.launch.source.tree import Tree
from cleats.toolsets.launch.workers.job import Job


async def run(job: Job) -> Mapping[str, Any]:
    """Write the inventory.

    Raises:
        ToolError: INVALID_INPUT with reason REPO_EMPTY when there is no file at all.
    """
    tree = Tree(job.repo)
    if not tree.paths:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            "REPO_EMPTY: the source repository has no files at this commit.",
            details={"reason": "REPO_EMPTY", "field": "github_ref"},
        )
    refs = job.json("resolved_refs.json")["repo"]
    found = inventory.take(tree, refs["repo_url"], refs["resolved_sha"])
    job.write("repo_inventory.json", found)
    return {
        "files": len(found["paths"]),
        "platform_family": found["repo_profile"]["platform_family"],
        "phantom_paths": len(found["phantom_paths"]),
    }

"""What the source repository holds (W1, second part)."""

import os
from collections.abc import Mapping
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.source import inventory
from cleats.toolsets.launch.source.git import Git
from cleats.toolsets.launch.source.scope import Scope
from cleats.toolsets.launch.source.tree import Tree
from cleats.toolsets.launch.workers.job import Job


async def run(job: Job) -> Mapping[str, Any]:
    """Write the inventory.

    Raises:
        ToolError: INVALID_INPUT with reason REPO_EMPTY when there is no file to read.
    """
    everything = Tree(job.repo).paths
    if not everything:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            "REPO_EMPTY: the source repository has no files at this commit.",
            details={"reason": "REPO_EMPTY", "field": "github_ref"},
        )
    scope = Scope.of(job.config)
    tree = Tree(job.repo, frozenset(filter(scope.reads, everything)) - await _ignored(job))
    if not tree.paths:
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            "REPO_EMPTY: the run's ingestion leaves no file of the source repository.",
            details={"reason": "REPO_EMPTY", "field": "ingestion"},
        )
    refs = job.json("resolved_refs.json")["repo"]
    found = inventory.take(tree, refs["repo_url"], refs["resolved_sha"], scope)
    job.write("repo_inventory.json", found)
    return {
        "files": len(found["paths"]),
        "platform_family": found["repo_profile"]["platform_family"],
        "phantom_paths": len(found["phantom_paths"]),
    }


async def _ignored(job: Job) -> frozenset[str]:
    """The files that are committed though `.gitignore` names them; only `strict` minds."""
    if job.config.get("ingestion", {}).get("gitignore_mode") != "strict":
        return frozenset()
    git = Git(job.settings.get("git_env", {}), job.repo)
    words = ("-z", "--cached", "--ignored", "--exclude-per-directory=.gitignore")
    listed = await git.ask("", "ls-files", *words)
    return frozenset(os.fsdecode(each) for each in listed.split(b"\0") if each)

"""The one worker that writes the worktree (W6, second part): a bundle, through the fence.

Serves the step `apply` and each `apply:fix:<n>`. A step that was killed is simply done again.
"""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.workers.job import Job
from cleats.toolsets.launch.workers.link import within_budgets


async def run(job: Job) -> Mapping[str, Any]:
    """Apply the bundle of the step.

    Raises:
        ToolError: INVALID_INPUT with the conflicts, or ALLOWED_PATHS_VIOLATION; before the first
            write in both cases.
    """
    bundle = job.json(bundle_name(job.step))
    within_budgets(bundle, job.config["budgets"])
    fence = Fence(job.site, job.config["allowed_paths"])
    return {"patch_ids": patches.apply(bundle, fence)}


def bundle_name(step: str) -> str:
    """The artifact that a step applies."""
    kind, _, number = step.partition(":fix:")
    return (
        f"patch_bundle.delta.{number}.json" if number and kind == "apply" else "patch_bundle.json"
    )

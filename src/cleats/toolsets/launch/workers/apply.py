"""The only worker that writes to the worktree (W6, second part): it applies a patch bundle.

Serves the step `apply` and each `apply:fix:<n>`. A step that was killed is simply repeated.
"""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.workers.link import check_budgets


async def run(job: WorkerJob) -> Mapping[str, Any]:
    """Apply the patch bundle of the step.

    Raises:
        ToolError: INVALID_INPUT with the conflicts, or ALLOWED_PATHS_VIOLATION; both before the
            first write.
    """
    bundle = job.read_json(make_bundle_name(job.step))
    check_budgets(bundle, job.config["budgets"])
    fence = WorktreeGuard(job.site, job.config["allowed_paths"])
    return {"patch_ids": patches.apply_bundle(bundle, fence)}


def make_bundle_name(step: str) -> str:
    """Return the name of the artifact that a step applies."""
    kind, _, number = step.partition(":fix:")
    return f"patch_bundle.delta.{number}.json" if number and kind == "apply" else "patch_bundle.json"

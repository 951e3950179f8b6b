"""The worker that commits the change to the branch of its run (W9, first part)."""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.publish import change
from cleats.toolsets.launch.publish.change import create_publisher
from cleats.toolsets.launch.runs.job import WorkerJob


async def run(job: WorkerJob) -> Mapping[str, Any]:
    """Commit the validated pages; repeating the step makes no second commit.

    Raises:
        ToolError: as `read_change`; COMMIT_SERVICE_ERROR.
    """
    run_change = await change.read_change(job)
    job.report_progress(f"Committing {len(run_change.files)} files to {run_change.branch}")
    commit = await create_publisher(job).commit(run_change)
    return {
        "branch": run_change.branch,
        "commit_sha": commit,
        "files": [file.path for file in run_change.files],
    }

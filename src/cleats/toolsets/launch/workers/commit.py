"""The commit of a change on the branch of its run (W9, first part)."""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.publish import change
from cleats.toolsets.launch.publish.drivers import publisher
from cleats.toolsets.launch.workers.job import Job


async def run(job: Job) -> Mapping[str, Any]:
    """Commit what was validated, once however often it is asked.

    Raises:
        ToolError: as `change.read`; COMMIT_SERVICE_ERROR.
    """
    what = await change.read(job)
    job.tell(f"Committing {len(what.files)} files to {what.branch}")
    commit = await publisher(job).commit(what)
    return {
        "branch": what.branch,
        "commit_sha": commit,
        "files": [file.path for file in what.files],
    }

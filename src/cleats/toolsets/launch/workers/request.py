"""The request for a commit that was made, and how to take it back (W9, second part)."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleats.toolsets.launch.publish import change
from cleats.toolsets.launch.publish.drivers import publisher
from cleats.toolsets.launch.publish.port import Change, Requested
from cleats.toolsets.launch.workers.job import Job


async def run(job: Job) -> Mapping[str, Any]:
    """Open the request, or find the one that is open already.

    Raises:
        ToolError: as `change.read`; COMMIT_SERVICE_ERROR.
    """
    what = await change.read(job)
    commit = what.earlier[-1]
    job.tell(f"Opening a request for {what.branch}")
    opened = await publisher(job).request(what, commit)
    job.write("pr.json", _document(job, what, commit, opened))
    return {"pr_url": opened.url, "branch": what.branch, "commit_sha": commit}


def _document(job: Job, what: Change, commit: str, opened: Requested) -> dict[str, Any]:
    report = job.json(change.REPORT)
    gates: Sequence[Mapping[str, Any]] = report["gates"]
    return {
        "schema_version": "1.0",
        "run_id": job.run_id,
        "base_ref": what.base_sha,
        "branch_name": what.branch,
        "commit_shas": [commit],
        "pr_url": opened.url,
        "pr_number": opened.number,
        "pr_body": what.body,
        "affected_paths": [file.path for file in what.files],
        "rollback_steps": [
            f"Before it is merged: close the request and delete the branch {what.branch}.",
            f"After it is merged: git revert {commit} (or the merge commit) and push.",
        ],
        "validation_summary": {
            "ok": report["ok"],
            "profile": report["profile"],
            "gates_passed": sum(bool(gate["ok"]) for gate in gates),
            "gates_failed": sum(not gate["ok"] for gate in gates),
        },
    }

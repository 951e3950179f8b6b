"""The worker that publishes (W9): it commits the change to the branch of its run and opens the request."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleats.toolsets.launch.publish import change
from cleats.toolsets.launch.publish.change import create_publisher
from cleats.toolsets.launch.publish.model import ReviewRequest, RunChange
from cleats.toolsets.launch.runs.job import WorkerJob


async def run_commit(job: WorkerJob) -> Mapping[str, Any]:
    """Commit the validated pages; repeating the step makes no second commit.

    Raises:
        ToolError: as `read_change`; COMMIT_SERVICE_ERROR.
    """
    run_change = await change.read_change(job)
    job.report_progress(f"Committing {len(run_change.files)} files to {run_change.branch}")
    commit = await create_publisher(job).commit(run_change)
    return {"branch": run_change.branch, "commit_sha": commit, "files": [file.path for file in run_change.files]}


async def run_request(job: WorkerJob) -> Mapping[str, Any]:
    """Open the request, or return the one that is open already.

    Raises:
        ToolError: as `read_change`; COMMIT_SERVICE_ERROR.
    """
    run_change = await change.read_change(job)
    commit = run_change.earlier[-1]
    job.report_progress(f"Opening a request for {run_change.branch}")
    review_request = await create_publisher(job).open_request(run_change, commit)
    job.write("pr.json", _build_document(job, run_change, commit, review_request))
    return {"pr_url": review_request.url, "branch": run_change.branch, "commit_sha": commit}


def _build_document(
    job: WorkerJob, run_change: RunChange, commit: str, review_request: ReviewRequest
) -> dict[str, Any]:
    report = job.read_json(change.REPORT_FILE_NAME)
    gates: Sequence[Mapping[str, Any]] = report["gates"]
    return {
        "schema_version": "1.0",
        "run_id": job.run_id,
        "base_ref": run_change.base_sha,
        "branch_name": run_change.branch,
        "commit_shas": [commit],
        "pr_url": review_request.url,
        "pr_number": review_request.number,
        "pr_body": run_change.body,
        "affected_paths": [file.path for file in run_change.files],
        "rollback_steps": [
            f"Before it is merged: close the request and delete the branch {run_change.branch}.",
            f"After it is merged: git revert {commit} (or the merge commit) and push.",
        ],
        "validation_summary": {
            "ok": report["ok"],
            "profile": report["profile"],
            "gates_passed": sum(bool(gate["ok"]) for gate in gates),
            "gates_failed": sum(not gate["ok"] for gate in gates),
        },
    }

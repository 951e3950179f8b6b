"""The worker that publishes (W9): it commits the change to the branch of its run and opens the request.

The change is what the worktree adds to the base, described with the texts of the profile. It is read once, through the
path guard, and must match the last validation report: nothing is published that was not validated.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.config.secrets import GITHUB_API_URL, redact_url
from cleats.toolsets.launch.git.client import HardenedGit
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.page_updates import render_update_notes
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard, hash_contents, list_changed_paths
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.profiles.parts import fill_template
from cleats.toolsets.launch.publish.git_publisher import GitPublisher
from cleats.toolsets.launch.publish.http_publishers import (
    GITHUB_HEADERS,
    CommitServicePublisher,
    GitHubPublisher,
    ServiceClient,
)
from cleats.toolsets.launch.publish.model import ChangedFile, ChangePublisher, ReviewRequest, RunChange, publish_error
from cleats.toolsets.launch.runs.job import WorkerJob

REPORT_FILE_NAME: Final = "validation_report.json"


async def read_change(job: WorkerJob) -> RunChange:
    """Read the change of a job's run.

    Raises:
        ToolError: ILLEGAL_STATE, the worktree differs from what was validated, or has no change;
            ALLOWED_PATHS_VIOLATION, it has a change outside the allowed paths.
    """
    env = job.settings.get("git_env", {})
    base = str(job.facts["clone"]["site_sha"])
    files = await _read_changed_files(job, base, env)
    template_values = _collect_template_values(job, files)
    profile = model.load_named_profile(job.config["profile"], job.settings.get("profiles", ())).publishing
    service = job.config.get("commit_service", {})
    message = fill_template(service.get("commit_message_template", profile.commit_message), template_values)
    description = fill_template(service.get("commit_body_template", profile.commit_body), template_values)
    return RunChange(
        run_id=job.run_id,
        repo_url=job.config["site_repo_url"],
        base_sha=base,
        base_branch=job.config["publish"].get("base_branch", ""),
        branch=fill_template(job.config["publish"].get("branch", profile.branch), template_values),
        files=files,
        allowed_paths=job.config["allowed_paths"],
        title=_format_line(fill_template(profile.pr_title, template_values)),
        message=_format_line(message),
        body=_format_body(job, files, description),
        author=(
            _clean_signature_part(service.get("author_name", profile.author_name)),
            _clean_signature_part(service.get("author_email", profile.author_email)),
        ),
        moment=_parse_start_timestamp(job.run_id),
        bundle=await _build_patch_bundle(job, base, files, env),
        # A worktree that changed after a commit of this run needs another.
        earlier=[str(facts["commit_sha"]) for step, facts in job.facts.items() if step.partition(":")[0] == "commit"],
        draft=job.config["publish"]["draft"],
    )


async def _read_changed_files(job: WorkerJob, base: str, env: Mapping[str, str]) -> list[ChangedFile]:
    path_guard = WorktreeGuard(job.site, job.config["allowed_paths"])
    paths = await list_changed_paths(job.site, base, env)
    files = [ChangedFile(path, path_guard.read(path)) for path in paths]
    validations = [facts for step, facts in job.facts.items() if step.startswith("validate:")]
    validated_hash = validations[-1]["worktree_sha256"] if validations else ""
    if hash_contents(base, ((file.path, file.content) for file in files)) != validated_hash:
        raise ToolError(
            ErrorCode.ILLEGAL_STATE,
            "The worktree has changed since it was validated.",
            hint="Call launch_validate, then open the pull request again.",
            details={"reason": "worktree_changed"},
        )
    if not files:
        raise ToolError(
            ErrorCode.ILLEGAL_STATE,
            "The site already has all changes; nothing to publish.",
            hint="Cancel the run.",
            details={"reason": "no_changes"},
        )
    return files


async def _build_patch_bundle(
    job: WorkerJob, base: str, files: Sequence[ChangedFile], env: Mapping[str, str]
) -> dict[str, Any]:
    git = HardenedGit(env, job.site)
    listing = await git.run("", "ls-tree", "-r", "-z", "--name-only", base)
    base_paths = {name.decode(errors="surrogateescape") for name in listing.split(b"\0") if name}
    file_patches = []
    for file in files:
        old_text = None
        if file.path in base_paths:
            old_text = (await git.run("", "show", f"{base}:{file.path}")).decode()
        if old_text is not None:
            file_patches.append(patches.make_delete_patch(file.path, old_text))
        if file.content is not None:
            file_patches.append(patches.make_create_patch(file.path, file.content.decode()))
    return patches.make_bundle(file_patches)


def _collect_template_values(job: WorkerJob, files: Sequence[ChangedFile]) -> dict[str, str]:
    return {
        "run_id": job.run_id,
        "product_slug": job.config["product_slug"],
        "product_name": job.product_name,
        "family": job.config["family"],
        "platform": job.config["target_platform"],
        "repo_url": redact_url(job.config["github_repo_url"]),
        "repo_sha": str(job.facts["clone"]["repo_sha"]),
        "pages": str(len(files)),
    }


def _format_body(job: WorkerJob, files: Sequence[ChangedFile], description: str) -> str:
    """Format what a reviewer reads first: the reason, the pages, the gates that passed."""
    report = job.read_json(REPORT_FILE_NAME)
    passed = [gate["name"] for gate in report["gates"] if gate["ok"]]
    updates = job.read_json("page_updates.json")["pages"] if job.has_artifact("page_updates.json") else ()
    lines = [
        description,
        "",
        *(render_update_notes(updates, str(job.facts["clone"]["repo_sha"])) if updates else ()),
        f"Source: {redact_url(job.config['github_repo_url'])} at {job.facts['clone']['repo_sha']}",
        f"Run: {job.run_id}",
        "",
        "Files:",
        "",
        *(f"- `{file.path}`{' (removed)' if file.content is None else ''}" for file in files),
        "",
        f"Gates passed ({report['profile']}): {', '.join(passed)}",
    ]
    return "\n".join(lines)


def _format_line(text: str) -> str:
    return " ".join(text.split())[:200]


def _clean_signature_part(text: str) -> str:
    return " ".join(text.replace("<", "").replace(">", "").replace("\0", "").split()) or "cleats"


def _parse_start_timestamp(run_id: str) -> int:
    """Return the start time in a run id, which is equal on every attempt to publish."""
    try:
        return int(datetime.strptime(run_id[2:22], "%Y-%m-%dT%H-%M-%S%z").timestamp())
    except ValueError:
        return 0


def create_publisher(job: WorkerJob) -> ChangePublisher:
    """Return the driver that the configuration of the run names.

    Raises:
        ToolError: COMMIT_SERVICE_ERROR, a token that the driver needs is not set.
    """
    publish, service = job.config["publish"], job.config.get("commit_service", {})
    match publish["driver"]:
        case "service":
            url, token = service["endpoint_url"].rstrip("/"), _find_token(job, service.get("github_token_env", ""))
            return CommitServicePublisher(ServiceClient(name="The commit service", base_url=url, token=token))
        case "github":
            url, token = publish.get("endpoint_url", GITHUB_API_URL), _find_token(job, publish.get("token_env", ""))
            client = ServiceClient(name="The forge", base_url=url.rstrip("/"), token=token, headers=GITHUB_HEADERS)
            return GitHubPublisher(client)
        case _:
            return GitPublisher(job.site, job.settings.get("git_env", {}))


def _find_token(job: WorkerJob, name: str) -> str:
    if not name:
        return ""
    if name not in job.secrets:
        raise publish_error(
            f"{name}, the variable with the token of the run, is not set.",
            hint="Set it where the server runs, and list it in CLEATS_LAUNCH_SECRETS.",
            variable=name,
        )
    return job.secrets[name]


async def run_commit(job: WorkerJob) -> Mapping[str, Any]:
    """Commit the validated pages; repeating the step makes no second commit.

    Raises:
        ToolError: as `read_change`; COMMIT_SERVICE_ERROR.
    """
    run_change = await read_change(job)
    job.report_progress(f"Committing {len(run_change.files)} files to {run_change.branch}")
    commit = await create_publisher(job).commit(run_change)
    return {"branch": run_change.branch, "commit_sha": commit, "files": [file.path for file in run_change.files]}


async def run_request(job: WorkerJob) -> Mapping[str, Any]:
    """Open the request, or return the one that is open already.

    Raises:
        ToolError: as `read_change`; COMMIT_SERVICE_ERROR.
    """
    run_change = await read_change(job)
    commit = run_change.earlier[-1]
    job.report_progress(f"Opening a request for {run_change.branch}")
    review_request = await create_publisher(job).open_request(run_change, commit)
    job.write("pr.json", _build_document(job, run_change, commit, review_request))
    return {"pr_url": review_request.url, "branch": run_change.branch, "commit_sha": commit}


def _build_document(
    job: WorkerJob, run_change: RunChange, commit: str, review_request: ReviewRequest
) -> dict[str, Any]:
    report = job.read_json(REPORT_FILE_NAME)
    passed_count = sum(bool(gate["ok"]) for gate in report["gates"])
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
            "gates_passed": passed_count,
            "gates_failed": len(report["gates"]) - passed_count,
        },
    }

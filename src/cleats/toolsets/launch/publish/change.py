"""The change of a run: what its worktree has beyond the base, in the words of its profile.

It is read once, through the fence, and must be what the last report is about: nothing that was not
validated is ever published.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.config.shown import shown
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.patching.worktree import changed_paths, content_hash
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.profiles.templates import fill
from cleats.toolsets.launch.publish.port import Change, File
from cleats.toolsets.launch.source.git import Git
from cleats.toolsets.launch.workers.job import Job

REPORT: Final = "validation_report.json"


async def read(job: Job) -> Change:
    """The change of a job's run.

    Raises:
        ToolError: ILLEGAL_STATE, the worktree is not what was validated, or has no change;
            ALLOWED_PATHS_VIOLATION, it has one where none may be.
    """
    env = job.settings.get("git_env", {})
    base = str(job.facts["clone"]["site_sha"])
    files = await _files(job, base, env)
    words = _words(job, files)
    profile = model.load(job.config["profile"], job.settings.get("profiles", ())).publishing
    service = job.config.get("commit_service", {})
    message = fill(service.get("commit_message_template", profile.commit_message), words)
    about = fill(service.get("commit_body_template", profile.commit_body), words)
    return Change(
        run_id=job.run_id,
        repo_url=job.config["site_repo_url"],
        base_sha=base,
        base_branch=job.config["publish"].get("base_branch", ""),
        branch=fill(job.config["publish"].get("branch", profile.branch), words),
        files=files,
        allowed_paths=job.config["allowed_paths"],
        title=_line(fill(profile.pr_title, words)),
        message=_line(message),
        body=_body(job, files, about),
        author=(
            _name(service.get("author_name", profile.author_name)),
            _name(service.get("author_email", profile.author_email)),
        ),
        moment=_moment(job.run_id),
        bundle=await _bundle(job, base, files, env),
        earlier=_earlier(job),
        draft=job.config["publish"]["draft"],
    )


async def _files(job: Job, base: str, env: Mapping[str, str]) -> list[File]:
    fence = Fence(job.site, job.config["allowed_paths"])
    paths = await changed_paths(job.site, base, env)
    files = [File(path, fence.read(path)) for path in paths]
    if content_hash(base, ((file.path, file.content) for file in files)) != _validated(job):
        raise ToolError(
            ErrorCode.ILLEGAL_STATE,
            "The worktree has changed since it was validated.",
            hint="Call launch_validate, then open the request again.",
            details={"reason": "worktree_changed"},
        )
    if not files:
        raise ToolError(
            ErrorCode.ILLEGAL_STATE,
            "The site already has all of this; there is nothing to publish.",
            hint="Cancel the run.",
            details={"reason": "no_changes"},
        )
    return files


def _validated(job: Job) -> str:
    """The hash of the worktree that the last report is about."""
    numbers = [int(step.removeprefix("validate:")) for step in job.facts if _is_validation(step)]
    return str(job.facts[f"validate:{max(numbers)}"]["worktree_sha256"]) if numbers else ""


def _earlier(job: Job) -> list[str]:
    """The commits of this run so far: a worktree that changed after one makes another."""
    steps = [step for step in job.facts if step.partition(":")[0] == "commit"]
    return [str(job.facts[step]["commit_sha"]) for step in steps]


def _is_validation(step: str) -> bool:
    kind, _, number = step.partition(":")
    return kind == "validate" and number.isdigit()


async def _bundle(
    job: Job, base: str, files: Sequence[File], env: Mapping[str, str]
) -> dict[str, Any]:
    """The change as patches: files that go, and files that come in their place or anew."""
    git = Git(env, job.site)
    listed = await git.ask("", "ls-tree", "-r", "-z", "--name-only", base)
    there = {name.decode(errors="surrogateescape") for name in listed.split(b"\0") if name}
    made = []
    for file in files:
        before = None
        if file.path in there:
            before = (await git.ask("", "show", f"{base}:{file.path}")).decode()
        if before is not None:
            made.append(patches.delete_file(file.path, before))
        if file.content is not None:
            made.append(patches.create_file(file.path, file.content.decode()))
    return patches.bundle(made)


def _words(job: Job, files: Sequence[File]) -> dict[str, str]:
    return {
        "run_id": job.run_id,
        "product_slug": job.config["product_slug"],
        "product_name": job.config["product_name"],
        "family": job.config["family"],
        "platform": job.config["target_platform"],
        "repo_url": shown(job.config["github_repo_url"]),
        "repo_sha": str(job.facts["clone"]["repo_sha"]),
        "pages": str(len(files)),
    }


def _body(job: Job, files: Sequence[File], about: str) -> str:
    """What a reviewer reads first: why, which pages, what was checked."""
    report = job.json(REPORT)
    passed = [gate["name"] for gate in report["gates"] if gate["ok"]]
    lines = [
        about,
        "",
        f"Source: {shown(job.config['github_repo_url'])} at {job.facts['clone']['repo_sha']}",
        f"Run: {job.run_id}",
        "",
        "Files:",
        "",
        *(f"- `{file.path}`{' (removed)' if file.content is None else ''}" for file in files),
        "",
        f"Gates passed ({report['profile']}): {', '.join(passed)}",
    ]
    return "\n".join(lines)


def _line(text: str) -> str:
    """One line: a title, or the first one of a message."""
    return " ".join(text.split())[:200]


def _name(text: str) -> str:
    """A part of a signature, without what ends one."""
    return " ".join(text.replace("<", "").replace(">", "").replace("\0", "").split()) or "cleats"


def _moment(run_id: str) -> int:
    """When the run began, as its id says: the same on every attempt to publish it."""
    try:
        said = datetime.strptime(run_id[2:22], "%Y-%m-%dT%H-%M-%SZ").replace(tzinfo=UTC)
    except ValueError:
        return 0
    return int(said.timestamp())

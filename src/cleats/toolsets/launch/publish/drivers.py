"""Which driver a run publishes with."""

from cleats.toolsets.launch.config.tokens import GITHUB_API
from cleats.toolsets.launch.publish.exchange import Service
from cleats.toolsets.launch.publish.git import GitRemote
from cleats.toolsets.launch.publish.github import HEADERS, GitHub
from cleats.toolsets.launch.publish.port import Publisher, refused
from cleats.toolsets.launch.publish.service import CommitService
from cleats.toolsets.launch.workers.job import Job


def publisher(job: Job) -> Publisher:
    """The driver that the run's configuration names.

    Raises:
        ToolError: COMMIT_SERVICE_ERROR, it has no token where it needs one.
    """
    match job.config["publish"]["driver"]:
        case "service":
            given = job.config["commit_service"]
            token = _token(job, given.get("github_token_env", ""))
            return CommitService(
                Service("The commit service", given["endpoint_url"].rstrip("/"), token)
            )
        case "github":
            given = job.config["publish"]
            token = _token(job, given.get("token_env", ""))
            base = given.get("endpoint_url", GITHUB_API).rstrip("/")
            return GitHub(Service("The forge", base, token, HEADERS))
        case _:
            return GitRemote(job.site, job.settings.get("git_env", {}))


def _token(job: Job, name: str) -> str:
    if not name:
        return ""
    if name not in job.secrets:
        raise refused(
            f"{name}, which the run names as its token, is not set.",
            hint="Set it where the server runs, and list it in CLEATS_LAUNCH_SECRETS.",
            variable=name,
        )
    return job.secrets[name]

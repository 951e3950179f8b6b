"""The repositories at their commits, and what the site says about itself (W1, first part)."""

from collections.abc import Mapping
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.config.shown import shown
from cleats.toolsets.launch.source import front_matter, hugo
from cleats.toolsets.launch.source.git import SHA, clone_at, ls_remote
from cleats.toolsets.launch.source.tree import Tree
from cleats.toolsets.launch.workers.job import Job


async def run(job: Job) -> Mapping[str, Any]:
    """Have `work/repo` and `work/site`, and write what can be known before reading the source.

    Raises:
        ToolError: as `clone_at`; the message names the field that is wrong.
    """
    env = job.settings.get("git_env", {})
    job.root.joinpath("work").mkdir(parents=True, exist_ok=True)
    source = await _fetched(job, env, "github_repo_url", "github_ref")
    site = await _fetched(job, env, "site_repo_url", "site_ref")
    flows = await _workflows(job, env)
    tree = Tree(job.site)
    config = hugo.read(tree)
    job.write(
        "resolved_refs.json",
        {
            "schema_version": "1.0",
            "repo": source,
            "site": site,
            **({"workflows": flows} if flows else {}),
        },
    )
    job.write(
        "site_context.json",
        {
            "schema_version": "1.0",
            "site": {**site, "clone_path": "work/site"},
            **({"workflows": {**flows, "clone_path": "work/workflows"}} if flows else {}),
            "hugo": hugo.context(tree, config),
        },
    )
    job.write("hugo_facts.json", hugo.facts(config))
    contract = front_matter.contract(
        tree, section_roots(job.config), site["repo_url"], site["resolved_sha"]
    )
    job.write("frontmatter_contract.json", contract)
    return {
        "repo_sha": source["resolved_sha"],
        "site_sha": site["resolved_sha"],
        "repo_url": source["repo_url"],
        "site_url": site["repo_url"],
    }


def section_roots(config: Mapping[str, Any]) -> dict[str, str]:
    """Where the pages of each section lie in the site, as the configuration says."""
    layout = config.get("site_layout") or {}
    content = str(layout.get("content_root") or "content").strip("/")
    roots: dict[str, str] = {}
    for name, given in (layout.get("subdomain_roots") or {}).items():
        root = str(given).strip("/")
        inside = root == content or root.startswith(f"{content}/")
        roots[name] = root if inside else f"{content}/{root}".rstrip("/")
    return roots


async def _workflows(job: Job, env: Mapping[str, str]) -> dict[str, str]:
    """The repository with the workflows of the site, when the run names one."""
    if not job.config.get("workflows_repo_url"):
        return {}
    return await _fetched(job, env, "workflows_repo_url", "workflows_ref")


async def _fetched(
    job: Job, env: Mapping[str, str], url_field: str, ref_field: str
) -> dict[str, str]:
    url = str(job.config.get(url_field) or "")
    ref = str(job.config.get(ref_field) or "")
    if not url:
        raise _missing(url_field, "The run names no repository there.")
    sha = ref if SHA.fullmatch(ref) else ""
    if not sha:
        if ref_field == "github_ref":  # a run must read the same source every time
            raise _missing(ref_field, "It must be a full commit id.")
        sha = (await ls_remote(url, env)).find(ref)
    if not sha:
        raise _missing(ref_field, f"The repository has no {ref or 'commit'!r}.")
    target = {
        "github_ref": job.repo,
        "site_ref": job.site,
        "workflows_ref": job.site.with_name("workflows"),
    }[ref_field]
    try:
        await clone_at(url, sha, target, env, tell=job.tell)
    except ToolError as error:
        field = ref_field if error.code is ErrorCode.INVALID_INPUT else url_field
        error.details = {**(error.details or {}), "field": field}
        raise
    return {"repo_url": shown(url), "requested_ref": ref or "HEAD", "resolved_sha": sha}


def _missing(field: str, message: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_INPUT,
        f"{field}: {message}",
        details={"missing_fields": [field], "field": field},
    )

"""Which pages are written and where they go (W4)."""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats.toolsets.launch.drafting.material import Material
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.planning.plan import Planner
from cleats.toolsets.launch.planning.site import PlannedSite
from cleats.toolsets.launch.profiles.model import Profile, load
from cleats.toolsets.launch.source.git import Git
from cleats.toolsets.launch.workers.job import Job


async def run(job: Job) -> Mapping[str, Any]:
    """Write the page plan.

    Raises:
        ToolError: as `Planner.plan`; ALLOWED_PATHS_VIOLATION for a page outside the fence.
    """
    planner = Planner(
        site=PlannedSite(job.site, profile(job), job.config),
        material=material(job),
        inventory=job.json("repo_inventory.json"),
        date=await _commit_date(job),
    )
    plan = planner.plan()
    fence = Fence(job.site, job.config["allowed_paths"])
    for page in plan["pages"]:
        fence.check(page["output_path"])
    job.write("page_plan.json", plan)
    return {"pages": len(plan["pages"]), "launch_tier": plan["launch_tier"]}


def profile(job: Job) -> Profile:
    """The profile of a run, with the site laid out as its configuration says."""
    folders = [Path(each) for each in job.settings.get("profiles", ())]
    return load(job.config["profile"], folders).laid_out(job.config["site_layout"])


def material(job: Job) -> Material:
    """What the workers before found out."""
    return Material(
        facts=job.json("product_facts.json"),
        evidence=job.json("evidence_map.json"),
        catalogue=job.json("snippet_catalog.json"),
        config=job.config,
        forbidden=profile(job).brand.forbidden_topics,
    )


async def _commit_date(job: Job) -> dt.date:
    """The day of the source's commit: the one date that is the same in every run of it."""
    git = Git(job.settings.get("git_env", {}), job.repo)
    sha = str(job.config["github_ref"])
    said = await git.ask("", "show", "--no-patch", "--format=%cs", sha)
    return dt.date.fromisoformat(said.decode().strip())

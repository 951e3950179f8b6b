"""The worker that plans the pages and their paths (W4)."""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.git.client import HardenedGit
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard
from cleats.toolsets.launch.planning.page_plan import PagePlanner
from cleats.toolsets.launch.planning.planned_site import PlannedSite
from cleats.toolsets.launch.profiles.model import Profile, load_named_profile
from cleats.toolsets.launch.runs.job import WorkerJob


async def run(job: WorkerJob) -> Mapping[str, Any]:
    """Write the page plan.

    Raises:
        ToolError: as `PagePlanner.plan`; ALLOWED_PATHS_VIOLATION for a page outside the allowed
            paths.
    """
    planner = PagePlanner(
        site=PlannedSite(job.site, load_profile(job), job.config),
        material=load_material(job),
        inventory=job.read_json("repo_inventory.json"),
        date=await _read_commit_date(job),
    )
    plan = planner.build_plan()
    fence = WorktreeGuard(job.site, job.config["allowed_paths"])
    for page in plan["pages"]:
        fence.check_path(page["output_path"])
    job.write("page_plan.json", plan)
    return {"pages": len(plan["pages"]), "launch_tier": plan["launch_tier"]}


def load_profile(job: WorkerJob) -> Profile:
    """Load the profile of a run, with the site layout of its configuration."""
    folders = [Path(folder) for folder in job.settings.get("profiles", ())]
    return load_named_profile(job.config["profile"], folders).with_site_layout(job.config["site_layout"])


def load_material(job: WorkerJob) -> LaunchMaterial:
    """Load the results of the earlier workers."""
    return LaunchMaterial(
        facts=job.read_json("product_facts.json"),
        evidence=job.read_json("evidence_map.json"),
        catalogue=job.read_json("snippet_catalog.json"),
        config=job.config,
        forbidden_topics=load_profile(job).brand.forbidden_topics,
    )


async def _read_commit_date(job: WorkerJob) -> dt.date:
    """Return the date of the source's commit: the only date that is the same in every run of it."""
    git = HardenedGit(job.settings.get("git_env", {}), job.repo)
    sha = str(job.config["github_ref"])
    output = await git.run("", "show", "--no-patch", "--format=%cs", sha)
    return dt.date.fromisoformat(output.decode().strip())

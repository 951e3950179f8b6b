"""Drafts become patches against the worktree, which stays as it is (W6, first part)."""

from collections.abc import Mapping
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.patching import linking, patches
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.patching.report import diff_report
from cleats.toolsets.launch.source.tree import Tree
from cleats.toolsets.launch.workers.job import Job


async def run(job: Job) -> Mapping[str, Any]:
    """Plan the patches and say what they change.

    Raises:
        ToolError: INVALID_INPUT with LINKER_PATCHER_CONFLICT_UNRESOLVABLE for patches that do not
            fit, with LINKER_PATCHER_BUDGET_EXCEEDED for too many; ALLOWED_PATHS_VIOLATION.
    """
    plan = job.json("page_plan.json")["pages"]
    fence = Fence(job.site, job.config["allowed_paths"])
    drafts: dict[str, str] = {}
    for section in job.config["required_sections"]:
        for page in job.json(f"drafts/{section}/draft_manifest.json")["pages"]:
            drafts[fence.check(page["output_path"])] = job.read(page["artifact"]).decode()
    bundle = patches.bundle(linking.patches(drafts, plan, fence, Tree(job.site)))
    within_budgets(bundle, job.config["budgets"])
    if found := patches.conflicts(bundle, fence):
        listed = [conflict.as_json() for conflict in found]
        job.leave("patch_conflicts.json", {"schema_version": "1.0", "conflicts": listed})
        raise patches.conflict_error(found)
    job.write("patch_bundle.json", bundle)
    name = str(job.config["product_name"])
    job.write("reports/diff_report.md", diff_report(bundle, fence, name))
    return {"patches": len(bundle["patches"])}


def within_budgets(bundle: Mapping[str, Any], budgets: Mapping[str, Any]) -> None:
    """Refuse a bundle that changes more than the run may.

    Raises:
        ToolError: INVALID_INPUT with LINKER_PATCHER_BUDGET_EXCEEDED.
    """
    paths = {patch["path"] for patch in bundle["patches"]}
    writes = len(bundle["patches"])
    over = [
        {"budget": name, "used": used, "allowed": budgets[name]}
        for name, used in (("max_files_changed", len(paths)), ("max_file_writes", writes))
        if name in budgets and used > budgets[name]
    ]
    most = budgets.get("max_lines_per_file")
    for patch in bundle["patches"]:
        lines = str(patch.get("new_content", "")).count("\n")
        if most is not None and lines > most:
            over.append(
                {
                    "budget": "max_lines_per_file",
                    "used": lines,
                    "allowed": most,
                    "path": patch["path"],
                }
            )
    if over:
        first = over[0]
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            f"{first['budget']} is {first['allowed']}, and the launch would use {first['used']}.",
            hint="Raise the budget, or launch fewer sections.",
            retryable=False,
            details={"error_code": "LINKER_PATCHER_BUDGET_EXCEEDED", "over": over},
        )

"""The worker of the worktree (W6): it plans patches from drafts, then applies them.

Only `apply` and each `apply:fix:<n>` write to the worktree; a step that was killed is repeated.
"""

from collections.abc import Mapping
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.patching import linking, patches
from cleats.toolsets.launch.patching.linking import render_diff_report
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree


async def run_link(job: WorkerJob) -> Mapping[str, Any]:
    """Plan the patches and report the changes.

    Raises:
        ToolError: INVALID_INPUT with LINKER_PATCHER_CONFLICT_UNRESOLVABLE for patches that do not
            fit, with LINKER_PATCHER_BUDGET_EXCEEDED for too many; ALLOWED_PATHS_VIOLATION.
    """
    plan = job.read_json("page_plan.json")["pages"]
    fence = WorktreeGuard(job.site, job.config["allowed_paths"])
    drafts: dict[str, str] = {}
    for section in job.config["required_sections"]:
        for page in job.read_json(f"drafts/{section}/draft_manifest.json")["pages"]:
            drafts[fence.check_path(page["output_path"])] = job.read(page["artifact"]).decode()
    bundle = patches.make_bundle(linking.plan_patches(drafts, plan, fence, CheckoutTree(job.site)))
    check_budgets(bundle, job.config["budgets"])
    if patch_conflicts := patches.find_conflicts(bundle, fence):
        conflict_documents = [conflict.as_json() for conflict in patch_conflicts]
        job.write_on_failure("patch_conflicts.json", {"schema_version": "1.0", "conflicts": conflict_documents})
        raise patches.make_conflict_error(patch_conflicts)
    job.write("patch_bundle.json", bundle)
    name = str(job.config["product_name"])
    job.write("reports/diff_report.md", render_diff_report(bundle, fence, name))
    return {"patches": len(bundle["patches"])}


def check_budgets(bundle: Mapping[str, Any], budgets: Mapping[str, Any]) -> None:
    """Check that a patch bundle stays within the budgets of the run.

    Raises:
        ToolError: INVALID_INPUT with LINKER_PATCHER_BUDGET_EXCEEDED.
    """
    paths = {patch["path"] for patch in bundle["patches"]}
    writes = len(bundle["patches"])
    exceeded = [
        {"budget": name, "used": used, "allowed": budgets[name]}
        for name, used in (("max_files_changed", len(paths)), ("max_file_writes", writes))
        if name in budgets and used > budgets[name]
    ]
    max_lines = budgets.get("max_lines_per_file")
    for patch in bundle["patches"]:
        lines = str(patch.get("new_content", "")).count("\n")
        if max_lines is not None and lines > max_lines:
            exceeded.append(
                {"budget": "max_lines_per_file", "used": lines, "allowed": max_lines, "path": patch["path"]}
            )
    if exceeded:
        first = exceeded[0]
        raise ToolError(
            ErrorCode.INVALID_INPUT,
            f"{first['budget']} is {first['allowed']}, and the launch would use {first['used']}.",
            hint="Raise the budget, or launch fewer sections.",
            retryable=False,
            details={"error_code": "LINKER_PATCHER_BUDGET_EXCEEDED", "over": exceeded},
        )


async def run_apply(job: WorkerJob) -> Mapping[str, Any]:
    """Apply the patch bundle of the step.

    Raises:
        ToolError: INVALID_INPUT with the conflicts, or ALLOWED_PATHS_VIOLATION; both before the first write.
    """
    bundle = job.read_json(make_bundle_name(job.step))
    check_budgets(bundle, job.config["budgets"])
    fence = WorktreeGuard(job.site, job.config["allowed_paths"])
    return {"patch_ids": patches.apply_bundle(bundle, fence)}


def make_bundle_name(step: str) -> str:
    """Return the name of the artifact that a step applies."""
    kind, _, number = step.partition(":fix:")
    return f"patch_bundle.delta.{number}.json" if number and kind == "apply" else "patch_bundle.json"

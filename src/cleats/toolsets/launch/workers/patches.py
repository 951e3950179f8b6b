"""The worker of the worktree (W6): it plans patches from drafts, then applies them.

Only `apply` and each `apply:fix:<n>` write to the worktree; a step that was killed is repeated. New pages come after
their siblings: their weights are raised by the largest existing one. The site links to them, if the launch may change
the file that does: see `patching.navigation`.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import front_matter
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.launch_records import LaunchRecords, RecordedPage
from cleats.toolsets.launch.patching.merging import digest_lines
from cleats.toolsets.launch.patching.navigation import NAVIGATION_PLANNERS, PageChanges
from cleats.toolsets.launch.patching.page_updates import PageUpdate, plan_page_removal, plan_page_update
from cleats.toolsets.launch.patching.patches import ConflictError, SitePatch, apply_patch_to_text
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard
from cleats.toolsets.launch.profiles.model import load_named_profile
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site import pages
from cleats.toolsets.launch.site.claim_markers import index_passed_programs, refresh_evidence_list, strip_evidence_list
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """All changes of the site; `updates` is empty if no earlier run wrote any of the pages."""

    patches: tuple[SitePatch, ...]
    updates: tuple[PageUpdate, ...]


def plan_change(
    drafts: Mapping[str, str], plan: Sequence[Mapping[str, Any]], guard: WorktreeGuard, job: WorkerJob
) -> PlannedChange:
    """Plan all changes of the site: the drafts by path, the links that lead to them, and the record of the launch.

    A page of an earlier run is merged with the edits of people. Any other existing page is a conflict.
    """
    tree = CheckoutTree(job.site)
    claims = {claim["claim_id"]: claim for claim in job.read_json("evidence_map.json")["claims"]}
    refresh_evidence = partial(
        refresh_evidence_list,
        claims=claims,
        commit=str(job.config["github_ref"]),
        programs=index_passed_programs(job.read_json("snippet_catalog.json")),
    )
    records = LaunchRecords(lambda path: _read_page(guard, path), job.config["allowed_paths"])
    entries = {entry["output_path"]: entry for entry in plan}
    offsets = _find_weight_offsets(drafts, records, tree)
    is_update = any(records.find_page(path) for path in drafts)
    updates: list[PageUpdate] = []
    planned_patches: list[SitePatch] = []
    for path, draft in sorted(drafts.items()):
        text = _raise_weight(draft, offsets[path])
        page = _read_page(guard, path)
        update = plan_page_update(path, text, page, records, refresh_evidence)
        if update is None or page is None:
            planned_patches.append(patches.make_create_patch(path, text))
        elif update.new_text != page:
            planned_patches.append(patches.make_text_patch(path, page, update.new_text or ""))
        updates += [update] if update else []
        if update is not None and update.drafted is not None:
            records.set_page(path, _make_record(job, entries[path], update.drafted, offsets[path]))
    removals = list(_plan_removals(drafts, job, guard, records)) if is_update else []
    profile = load_named_profile(job.config["profile"], job.settings.get("profiles", ()))
    changes = PageChanges(
        plan=[entry for entry in plan if entry["output_path"] in drafts],
        new_paths=frozenset(update.path for update in updates if update.change == "new"),
        removed_paths=[update.path for update in removals if update.change == "removed"],
        product_name=job.product_name,
        section_titles={section.name: section.title for section in profile.sections},
        read_page=partial(_read_page, guard),
    )
    planned_patches += NAVIGATION_PLANNERS[profile.site.kind](changes)
    for update in removals:
        updates.append(update)
        if update.change == "removed":
            planned_patches.append(patches.make_delete_patch(update.path, _read_page(guard, update.path) or ""))
            records.set_page(update.path, None)
    for record_path, (old_text, new_text) in records.list_changed_files().items():
        planned_patches.append(patches.make_whole_file_patch(record_path, old_text, new_text))
    return PlannedChange(tuple(planned_patches), tuple(updates) if is_update else ())


def _make_record(job: WorkerJob, entry: Mapping[str, Any], draft: str, weight_offset: int) -> RecordedPage:
    return RecordedPage(
        product=format_product_key(job.config),
        section=entry["section"],
        locale=entry["token_mappings"]["LOCALE"],
        repo_sha=str(job.config["github_ref"]),
        weight_offset=weight_offset,
        digests=digest_lines(strip_evidence_list(draft)),
    )


def format_product_key(config: Mapping[str, Any]) -> str:
    """Return the name under which the record keeps the pages of a product."""
    return f"{config['product_slug']}/{config['target_platform']}"


def _find_weight_offsets(drafts: Mapping[str, str], records: LaunchRecords, tree: CheckoutTree) -> dict[str, int]:
    """Return what is added to the weight of each page; an update keeps what the first run added."""
    recorded_offsets: dict[str, int] = {}
    for path in drafts:
        if (page := records.find_page(path)) is not None:
            recorded_offsets[_find_sibling_folder(path)] = page.weight_offset
    folders = {_find_sibling_folder(path) for path in drafts} - recorded_offsets.keys()
    offsets = {folder: _find_largest_weight(folder, tree, drafts) for folder in folders} | recorded_offsets
    return {path: offsets[_find_sibling_folder(path)] for path in drafts}


def _plan_removals(
    drafts: Mapping[str, str], job: WorkerJob, guard: WorktreeGuard, records: LaunchRecords
) -> Iterator[PageUpdate]:
    """Plan the end of the pages that an earlier run of this product wrote and this one does not draft."""
    for path, recorded in records.list_pages().items():
        is_in_scope = recorded.section in job.config["required_sections"] and recorded.locale in job.config["locales"]
        if path in drafts or recorded.product != format_product_key(job.config) or not is_in_scope:
            continue
        page = _read_page(guard, path)
        if page is not None:
            yield plan_page_removal(path, page, records)


def _find_sibling_folder(path: str) -> str:
    page_path = PurePosixPath(path)
    is_bundle = page_path.name.startswith(("index.", "_index."))
    return str(page_path.parent.parent if is_bundle else page_path.parent)


def _find_largest_weight(folder: str, tree: CheckoutTree, drafts: Mapping[str, str]) -> int:
    """Return the largest weight among the siblings.

    Pages of the launch are left out, so that a second plan is the same.
    """
    weights = [0]
    for path in tree.paths_below(folder):
        if path.endswith(".md") and path not in drafts and _find_sibling_folder(path) == folder:
            try:
                weight = front_matter.parse_page(tree.read_text(path) or "").front.get("weight")
            except front_matter.FrontMatterError:
                continue
            weights.append(weight if isinstance(weight, int) else 0)
    return max(weights)


def _raise_weight(text: str, largest: int) -> str:
    weight = front_matter.parse_page(text).front.get("weight")
    if not isinstance(weight, int) or largest <= 0:
        return text
    return front_matter.set_front_matter_keys(text, {"weight": weight + largest})


def _read_page(guard: WorktreeGuard, path: str) -> str | None:
    """Return a page that may be changed, or None when it is missing or must not be touched."""
    try:
        data = guard.read(path)
        return None if data is None else data.decode()
    except (ToolError, UnicodeDecodeError):
        return None


_CHANGE_LABELS: Mapping[str, str] = {"create_file": "new", "delete_file": "removed"}


def render_diff_report(bundle: Mapping[str, Any], guard: WorktreeGuard, product_name: str) -> str:
    """Render the changes file by file: the outline of a new page, the diff of a changed one."""
    bundle_patches = bundle["patches"]
    lines = [f"# Changes for {product_name}", ""]
    lines += [f"{len(bundle_patches)} patches on {len({patch['path'] for patch in bundle_patches})} files.", ""]
    lines += ["| File | Change | Lines |", "| --- | --- | --- |"]
    bodies: list[str] = []
    for patch in bundle_patches:
        before = (guard.read(patch["path"]) or b"").decode("utf-8", "replace")
        count, body = _render_patch(patch, before)
        lines.append(f"| {patch['path']} | {_CHANGE_LABELS.get(patch['type'], 'changed')} | {count} |")
        bodies += ["", f"## {patch['path']}", "", *body]
    return "\n".join([*lines, *bodies]) + "\n"


def _render_patch(patch: Mapping[str, Any], before: str) -> tuple[str, list[str]]:
    if patch["type"] == "create_file":
        text = str(patch["new_content"])
        page = front_matter.parse_page(text)
        outline = [f"- {heading.text}" for heading in pages.list_headings(page.body)]
        title = page.front.get("title", "")
        return f"+{text.count(chr(10))}", [f"New page “{title}”.", *([""] if outline else []), *outline]
    try:
        new_text = apply_patch_to_text(patch, before)
    except ConflictError:  # reported when the bundle is applied
        return "?", ["The patch does not fit the file."]
    old_lines, new_lines = before.splitlines(), new_text.splitlines()
    changed = list(difflib.unified_diff(old_lines, new_lines, "before", "after", lineterm="", n=2))
    added = sum(line.startswith("+") for line in changed[2:])
    removed = sum(line.startswith("-") for line in changed[2:])
    return f"+{added} -{removed}", ["````diff", *changed, "````"]


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
    change = plan_change(drafts, plan, fence, job)
    bundle = patches.make_bundle(change.patches)
    check_budgets(bundle, job.config["budgets"])
    if patch_conflicts := patches.find_conflicts(bundle, fence):
        conflict_documents = [conflict.as_json() for conflict in patch_conflicts]
        job.write_on_failure("patch_conflicts.json", {"schema_version": "1.0", "conflicts": conflict_documents})
        raise patches.make_conflict_error(patch_conflicts)
    job.write("patch_bundle.json", bundle)
    if change.updates:
        updates = [update.as_json() for update in change.updates]
        job.write("page_updates.json", {"schema_version": "1.0", "pages": updates})
    for update in change.updates:
        if update.edited and update.new_text is not None:
            job.write(f"merged/{update.path}", update.new_text)
    job.write("reports/diff_report.md", render_diff_report(bundle, fence, job.product_name))
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
            f"{first['budget']} is {first['allowed']}, but the launch needs {first['used']}.",
            hint="Raise the budget, or launch fewer sections.",
            retryable=False,
            details={"error_code": "LINKER_PATCHER_BUDGET_EXCEEDED", "over": exceeded},
        )


async def run_apply(job: WorkerJob) -> Mapping[str, Any]:
    """Apply the patch bundle of the step.

    Raises:
        ToolError: INVALID_INPUT with the conflicts, or ALLOWED_PATHS_VIOLATION; both before the first write.
    """
    bundle = job.read_json(patches.make_bundle_name(job.step))
    check_budgets(bundle, job.config["budgets"])
    fence = WorktreeGuard(job.site, job.config["allowed_paths"])
    return {"patch_ids": patches.apply_bundle(bundle, fence)}

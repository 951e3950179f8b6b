"""The worker of the worktree (W6): it plans patches from drafts, then applies them.

Only `apply` and each `apply:fix:<n>` write to the worktree; a step that was killed is repeated. New pages come after
their siblings: their weights are raised by the largest existing one. The index above them gets a link to the first of
them, if the launch may change it.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import front_matter
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.patches import ConflictError, SitePatch, apply_patch_to_text
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site import pages
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

LINK_HEADINGS = ("links and resources", "related links", "see also")
NEW_HEADING = "See also"


def plan_patches(
    drafts: Mapping[str, str], plan: Sequence[Mapping[str, Any]], guard: WorktreeGuard, tree: CheckoutTree
) -> list[SitePatch]:
    """Plan all changes of the site: the drafts by path, then the links that lead to them."""
    folders = {_find_sibling_folder(path) for path in drafts}
    largest_weights = {folder: _find_largest_weight(folder, tree, drafts) for folder in folders}
    new_pages = [
        patches.make_create_patch(path, _raise_weight(text, largest_weights[_find_sibling_folder(path)]))
        for path, text in sorted(drafts.items())
    ]
    return [*new_pages, *_plan_links(drafts, plan, guard)]


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


def _plan_links(
    drafts: Mapping[str, str], plan: Sequence[Mapping[str, Any]], guard: WorktreeGuard
) -> Iterator[SitePatch]:
    entries_by_index: dict[str, list[Mapping[str, Any]]] = {}
    for entry in plan:
        parent_folder = PurePosixPath(entry["output_path"]).parent.parent
        index = str(parent_folder / "_index.md")
        is_index = PurePosixPath(entry["output_path"]).name.startswith("_index.")
        if is_index and index not in drafts:
            entries_by_index.setdefault(index, []).append(entry)
    for index, entries in sorted(entries_by_index.items()):
        text = _read_page(guard, index)
        if text is not None:
            yield from _link_pages(index, text, entries)


def _link_pages(path: str, text: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[SitePatch]:
    page = front_matter.parse_page(text)
    linked_targets = {link.target.rstrip("/") for link in pages.list_links(page.body)}
    new_entries = [entry for entry in entries if entry["url_path"].rstrip("/") not in linked_targets]
    items = "\n".join(f"- [{entry['title']}]({entry['url_path']})" for entry in new_entries)
    if not items:
        return
    for heading in pages.list_headings(page.body):
        if heading.text.casefold() in LINK_HEADINGS:
            yield patches.make_anchor_patch(path, text, heading.text, items)
            return
    end = text.count("\n") + (not text.endswith("\n"))
    gap = "" if text.endswith("\n\n") else "\n"
    yield patches.make_range_patch(path, text, end + 1, end, f"{gap}## {NEW_HEADING}\n\n{items}\n")


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
    bundle = patches.make_bundle(plan_patches(drafts, plan, fence, CheckoutTree(job.site)))
    check_budgets(bundle, job.config["budgets"])
    if patch_conflicts := patches.find_conflicts(bundle, fence):
        conflict_documents = [conflict.as_json() for conflict in patch_conflicts]
        job.write_on_failure("patch_conflicts.json", {"schema_version": "1.0", "conflicts": conflict_documents})
        raise patches.make_conflict_error(patch_conflicts)
    job.write("patch_bundle.json", bundle)
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

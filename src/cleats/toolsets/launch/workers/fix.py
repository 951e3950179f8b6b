"""The worker that attempts one fix (W8): the worst issue with a rule, and patches for it.

Nothing is changed here: the next step applies the patches, and the one after validates them. A rule
that finds nothing to do still uses up the attempt, and its issue is not tried again.
"""

import difflib
from collections.abc import Collection, Mapping
from itertools import takewhile
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import front_matter
from cleats.toolsets.launch.gates import registry
from cleats.toolsets.launch.gates.model import FileRemoval, FixCase, FixResult, FixRule, apply_fix_rule
from cleats.toolsets.launch.gates.secrets import find_secrets
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.gates.worktree import MANUAL_EDIT, find_edited_files, restore_file
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.patches import ConflictError, SitePatch, apply_patch_to_text, make_bundle
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard
from cleats.toolsets.launch.profiles.model import load_named_profile
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES, Issue
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.workers.validate import get_base_commit, survey_site


async def run_fix(job: WorkerJob) -> Mapping[str, Any]:
    """Plan the fix of one issue; write the patches and a report.

    Raises:
        ToolError: FIX_EXHAUSTED, if no open issue has an untried rule.
    """
    report = job.read_json("validation_report.json")
    fence = WorktreeGuard(job.site, job.config["allowed_paths"])
    fixes = registry.load_fixes(issue["gate"] for issue in report["issues"])
    excluded_ids = list_tried_issues(job.facts) | _find_unreachable_issues(report, fence)
    issue = select_issue(report, excluded_ids, fixes.keys() | {MANUAL_EDIT.code})
    if issue is None:
        raise ToolError(
            ErrorCode.FIX_EXHAUSTED,
            "No fix is left for the open issues: all matching rules have been tried.",
            hint="Fix the rest by hand, if the run has allow_manual_edits, then call launch_validate.",
            details={"reason": "no_fixable_issue"},
        )
    profile = load_named_profile(job.config["profile"], job.settings.get("profiles", ()))
    site = await survey_site(job, profile, job.root / "work" / "scratch")
    before = _read_text(fence, issue.path)
    rule, answer = await _apply_rule(site, report, issue, before, fixes.get(issue.error_code))
    new_patches = build_patches(issue.path, before, answer)
    number = job.step.rsplit(":", 1)[-1]
    job.write(f"patch_bundle.delta.{number}.json", make_bundle(new_patches))
    job.write(f"reports/fix_{number}.md", _render_report(issue, rule, before, answer, new_patches))
    return {
        "issue_id": issue.issue_id,
        "error_code": issue.error_code,
        "rule": rule,
        "path": issue.path,
        "patch_ids": [patch["patch_id"] for patch in new_patches],
    }


def _find_unreachable_issues(report: Mapping[str, Any], fence: WorktreeGuard) -> frozenset[str]:
    """Return the issues in files that no rule may change: outside the allowed paths, or not text.

    They are left to people: a stray file must not end the run.
    """
    unreachable_ids = set()
    for issue in map(Issue.from_json, report["issues"]):
        try:
            _read_text(fence, issue.path)
        except (ToolError, UnicodeDecodeError):
            unreachable_ids.add(issue.issue_id)
    return frozenset(unreachable_ids)


def _read_text(fence: WorktreeGuard, path: str) -> str | None:
    data = fence.read(path)
    return None if data is None else data.decode()


async def _apply_rule(
    site: LaunchSite, report: Mapping[str, Any], issue: Issue, before: str | None, fix: FixRule | None
) -> tuple[str, FixResult]:
    """Apply a rule to an issue; return its name and its answer.

    In a run that allows no manual edits, an edited file is restored first: a fix on top of the edit
    would let the rest of the edit pass.
    """
    job = site.job
    if not job.config.get("allow_manual_edits", False) and issue.path in find_edited_files(site):
        env = job.settings.get("git_env", {})
        return MANUAL_EDIT.code, await restore_file(site, issue.path, get_base_commit(job), env)
    if fix is None:
        return issue.error_code, None
    place = (issue.error_code, issue.path)
    siblings = [sibling for sibling in _list_open_issues(report) if (sibling.error_code, sibling.path) == place]
    return issue.error_code, apply_fix_rule(fix, FixCase(site, issue, siblings, before))


def _render_report(issue: Issue, rule: str, before: str | None, answer: FixResult, new_patches: list[SitePatch]) -> str:
    """Render the report of a fix: the issue, the rule and the difference."""
    location = f"{issue.path}:{issue.line}" if issue.line else issue.path
    lines = [
        f"# Fix of {issue.issue_id}",
        "",
        f"- Gate: {issue.gate}",
        f"- Code: {issue.error_code}",
        f"- Place: {location}",
        f"- Message: {issue.message}",
        f"- Rule: {rule}",
        "",
    ]
    if not new_patches:
        return "\n".join([*lines, "The rule found nothing that it could change.", ""])
    after = "" if isinstance(answer, FileRemoval) or answer is None else answer
    difference = difflib.unified_diff(
        (before or "").splitlines(), after.splitlines(), "before", "after", lineterm="", n=2
    )
    diff_lines = ("(a line with a secret)" if find_secrets(line) else line for line in difference)
    return "\n".join([*lines, "````diff", *diff_lines, "````", ""])


_PATCHABLE_TYPES = (str, bool, int, type(None))
"""Types of values that a patch can hold: a patch is JSON, which has no `.inf`, and a date would
come back as text."""


def build_patches(path: str, before: str | None, answer: FixResult) -> list[SitePatch]:
    """Return the patches for the result of a rule: of front matter keys when only those differ."""
    if answer is None or answer == before:
        return []
    if isinstance(answer, FileRemoval):
        return [] if before is None else [patches.make_delete_patch(path, before)]
    if before is None:
        return [patches.make_create_patch(path, answer)]
    return [_patch_front_matter(path, before, answer) or _patch_lines(path, before, answer)]


def _patch_front_matter(path: str, before: str, fixed_text: str) -> SitePatch | None:
    try:
        old, new = front_matter.parse_page(before).front, front_matter.parse_page(fixed_text).front
        changed = {key: new.get(key) for key in {**old, **new} if old.get(key) != new.get(key)}
        if not old or not changed or not all(isinstance(value, _PATCHABLE_TYPES) for value in changed.values()):
            return None
        patch = patches.make_front_matter_patch(path, before, changed)
        return patch if apply_patch_to_text(patch, before) == fixed_text else None
    except (front_matter.FrontMatterError, ConflictError):  # a patch of keys cannot express how it is written
        return None


def _count_equal_lines(old: list[str], new: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _patch_lines(path: str, before: str, fixed_text: str) -> SitePatch:
    old, new = before.split("\n"), fixed_text.split("\n")
    tail = _count_equal_lines(old[::-1], new[::-1])
    head = min(_count_equal_lines(old, new), min(len(old), len(new)) - tail)
    middle = new[head : len(new) - tail]
    text = "\n".join(middle) + "\n" if middle else ""
    patch = patches.make_range_patch(path, before, head + 1, len(old) - tail, text)
    if apply_patch_to_text(patch, before) != fixed_text:
        raise ValueError(f"the patch of {path} does not lead to the fixed text")
    return patch


def select_issue(report: Mapping[str, Any], tried_ids: Collection[str], codes: Collection[str]) -> Issue | None:
    """Return the next issue to try, or None when no rule is left for the open issues.

    `codes` are the error codes that have a rule. The order is that of every list of issues:
    severity, gate, path, line, id.
    """
    for issue in _list_open_issues(report):
        is_fixable = issue.severity in BLOCKING_SEVERITIES and issue.error_code in codes and issue.path
        if is_fixable and issue.issue_id not in tried_ids:
            return issue
    return None


def list_tried_issues(facts: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the issues that earlier attempts took, from the results of the run's steps.

    An attempt that only undid a manual edit has not yet tried the rule of the issue.
    """
    return frozenset(
        str(outcome["issue_id"])
        for step, outcome in facts.items()
        if step.startswith("fix:") and (outcome["rule"] == outcome["error_code"] or not outcome["patch_ids"])
    )


def _list_open_issues(report: Mapping[str, Any]) -> list[Issue]:
    issues = sorted(map(Issue.from_json, report["issues"]), key=lambda issue: issue.sort_key)
    return [issue for issue in issues if issue.status == "OPEN"]

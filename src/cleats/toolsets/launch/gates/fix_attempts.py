"""One attempt to fix an issue: the choice of the issue, and the patches for the result of its fix."""

from collections.abc import Collection, Mapping
from itertools import takewhile
from typing import Any

from cleats.system import front_matter
from cleats.toolsets.launch.gates.model import FileRemoval, FixResult
from cleats.toolsets.launch.patching import patches
from cleats.toolsets.launch.patching.patches import ConflictError, SitePatch, apply_patch_to_text
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES, Issue

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


FIX_STEP_PREFIX = "fix:"
"""Prefix of the steps that are fix attempts."""


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
        if step.startswith(FIX_STEP_PREFIX) and (outcome["rule"] == outcome["error_code"] or not outcome["patch_ids"])
    )


def list_sibling_issues(report: Mapping[str, Any], issue: Issue) -> list[Issue]:
    """Return all open issues with the same code in the same file."""
    issues = _list_open_issues(report)
    return [it for it in issues if (it.error_code, it.path) == (issue.error_code, issue.path)]


def _list_open_issues(report: Mapping[str, Any]) -> list[Issue]:
    issues = sorted(map(Issue.from_json, report["issues"]), key=lambda issue: issue.sort_key)
    return [issue for issue in issues if issue.status == "OPEN"]

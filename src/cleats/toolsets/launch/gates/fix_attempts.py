"""One attempt to fix an issue: the choice of the issue, and the patches for the result of its fix."""

from collections.abc import Collection, Mapping
from itertools import takewhile
from typing import Any

from cleats.system import front_matter
from cleats.toolsets.launch.gates.model import FileRemoval, FixResult
from cleats.toolsets.launch.patching.patches import (
    ConflictError,
    SitePatch,
    apply_patch_to_text,
    make_create_patch,
    make_delete_patch,
    make_front_matter_patch,
    make_range_patch,
)
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES, Issue

_PATCHABLE_TYPES = (str, bool, int, type(None))
"""Types of values that a patch can hold: a patch is JSON, which has no `.inf`, and a date would
come back as text."""


def build_patches(path: str, before: str | None, answer: FixResult) -> list[SitePatch]:
    """Return the patches for the result of a rule; none when it changes nothing."""
    if answer is None or answer == before:
        return []
    if isinstance(answer, FileRemoval):
        return [] if before is None else [make_delete_patch(path, before)]
    if before is None:
        return [make_create_patch(path, answer)]
    return [build_update_patch(path, before, answer)]


def build_update_patch(path: str, before: str, fixed_text: str) -> SitePatch:
    """Return a patch of the front matter keys when only those differ, otherwise of the lines."""
    return _patch_front_matter(path, before, fixed_text) or _patch_lines(path, before, fixed_text)


def _patch_front_matter(path: str, before: str, fixed_text: str) -> SitePatch | None:
    try:
        old, new = front_matter.parse_page(before).front, front_matter.parse_page(fixed_text).front
        changed = {key: new.get(key) for key in {**old, **new} if old.get(key) != new.get(key)}
        if not old or not changed or not all(isinstance(value, _PATCHABLE_TYPES) for value in changed.values()):
            return None
        patch = make_front_matter_patch(path, before, changed)
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
    patch = make_range_patch(path, before, head + 1, len(old) - tail, text)
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
    issues = sorted(map(Issue.from_json, report["issues"]), key=lambda issue: issue.sort_key)
    for issue in issues:
        is_open = issue.status == "OPEN" and issue.severity in BLOCKING_SEVERITIES
        if is_open and issue.issue_id not in tried_ids and issue.error_code in codes and issue.path:
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
    return [
        sibling
        for sibling in sorted(map(Issue.from_json, report["issues"]), key=lambda sibling: sibling.sort_key)
        if (sibling.error_code, sibling.path, sibling.status) == (issue.error_code, issue.path, "OPEN")
    ]

"""The input and the result of a fix rule.

A rule receives one file with all issues of one code in it, and returns the new text of the file. It
repairs all of them: they usually have one cause, and a run has few attempts. It never touches
another file, never adds a claim, and returns None when it does not know what is right.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias

from cleats.toolsets.launch.gates.model import LaunchSite, PageFile
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
from cleats.toolsets.launch.site import pages


class FileRemoval(Enum):
    """The result of a rule that removes the file."""

    REMOVED = "gone"


FixResult: TypeAlias = str | FileRemoval | None
"""The new text of the file, its removal, or None when the rule cannot help."""


@dataclass(frozen=True)
class FixCase:
    """One file with the open issues of one error code."""

    site: LaunchSite
    issue: Issue
    """The issue that was selected."""
    issues: Sequence[Issue]
    """All issues of the same code in the same file, including the selected one."""
    text: str | None
    """The text of the file in the worktree; None when the file does not exist."""

    @property
    def path(self) -> str:
        return self.issue.path

    @cached_property
    def file(self) -> PageFile:
        """The page; a file that does not exist is an empty page."""
        plan = next((entry for entry in self.site.plan if entry["output_path"] == self.path), {})
        return PageFile(self.path, self.text or "", plan)

    @cached_property
    def draft(self) -> str | None:
        """The text of the page as it was drafted."""
        name = f"drafts/{self.file.section}/{self.path}"
        if not self.file.plan or not self.site.job.has_artifact(name):
            return None
        return self.site.job.read(name).decode()

    @cached_property
    def drafted_file(self) -> PageFile | None:
        return None if self.draft is None else PageFile(self.path, self.draft, self.file.plan)

    @property
    def lines(self) -> frozenset[int]:
        """The lines of the file that the issues name."""
        return frozenset(issue.line for issue in self.issues if issue.line)

    @property
    def message_targets(self) -> list[str]:
        """The ends of the messages, after their first colon: a link or a command."""
        return [issue.message.split(": ", 1)[1] for issue in self.issues if ": " in issue.message]


FixRule: TypeAlias = Callable[[FixCase], FixResult]


def edit_lines(text: str, edit_line: Callable[[int, str], str | None]) -> str:
    """Edit a text line by line, counted from 1; None removes a line."""
    edited_lines = (edit_line(number, line) for number, line in enumerate(text.split("\n"), start=1))
    return "\n".join(line for line in edited_lines if line is not None)


def remove_lines(text: str, lines: Iterable[int]) -> str:
    """Remove some lines of a text, and the double blank lines that this would leave."""
    removed_lines = set(lines)
    remaining_lines: list[str] = []
    after_removal = False
    for number, line in enumerate(text.split("\n"), start=1):
        if number in removed_lines:
            after_removal = True
            continue
        if after_removal and not line.strip() and remaining_lines and not remaining_lines[-1].strip():
            continue
        after_removal = after_removal and not line.strip()
        remaining_lines.append(line)
    return end_with_newline("\n".join(remaining_lines))


def end_with_newline(text: str) -> str:
    """Return the text with exactly one line feed at its end."""
    return text.rstrip("\n") + "\n"


def list_prose_lines(file: PageFile) -> frozenset[int]:
    """Return the line numbers of the body that are neither front matter nor code."""
    return frozenset(number for number, _ in file.prose)


def list_code_lines(file: PageFile) -> frozenset[int]:
    """Return the line numbers of a file that are code, including fences."""
    return frozenset(file.body_line + number - 1 for number in pages.find_code_lines(file.body))


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
        old, new = pages.parse_page(before).front, pages.parse_page(fixed_text).front
        changed = {key: new.get(key) for key in {**old, **new} if old.get(key) != new.get(key)}
        if not old or not changed or not all(isinstance(value, _PATCHABLE_TYPES) for value in changed.values()):
            return None
        patch = make_front_matter_patch(path, before, changed)
        return patch if apply_patch_to_text(patch, before) == fixed_text else None
    except (pages.FrontMatterError, ConflictError):  # a patch of keys cannot express how it is written
        return None


def _patch_lines(path: str, before: str, fixed_text: str) -> SitePatch:
    old, new = before.split("\n"), fixed_text.split("\n")
    shorter = min(len(old), len(new))
    tail = 0
    while tail < shorter and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    head = 0
    while head < shorter - tail and old[head] == new[head]:
        head += 1
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

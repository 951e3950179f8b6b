"""Check that the worktree holds what the patches of the run made; no profile can leave this out."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.gates.model import FileRemoval, FixResult, GateMessage, IssueKind
from cleats.toolsets.launch.gates.site import LaunchSite, WorktreeChange
from cleats.toolsets.launch.git.client import IGNORE_DIRTY_SUBMODULES, HardenedGit
from cleats.toolsets.launch.patching.patches import ConflictError, apply_patch, hash_content, make_bundle_name
from cleats.toolsets.launch.patching.path_guard import list_changed_paths

WORKTREE_MOVED = IssueKind(
    "GATE_WORKTREE_MOVED", "blocker", "Leave the worktree alone while it is validated, and validate again."
)
MANUAL_EDIT = IssueKind(
    "GATE_MANUAL_EDIT", "error", "Set allow_manual_edits in the run's configuration, or undo the edit."
)


def check_worktree(site: LaunchSite, edited_paths: list[str], *, moved: bool) -> Iterator[GateMessage]:
    """Report files that were edited by hand, and whether the site changed during validation."""
    if moved:
        yield WORKTREE_MOVED.draft("the worktree changed while it was validated")
    if site.config.get("allow_manual_edits", False):
        yield from (f"edited by hand, which this run allows: {path}" for path in edited_paths)
        return
    for path in edited_paths:
        yield MANUAL_EDIT.draft("the file is not what the run wrote", path)


def list_applied_patches(site: LaunchSite) -> list[Mapping[str, Any]]:
    """Return the patches of the applied bundles, in order, without those only planned."""
    names = (make_bundle_name(step) for step in site.job.facts if step.partition(":")[0] == "apply")
    return [patch for name in dict.fromkeys(names) for patch in site.job.read_json(name)["patches"]]


def find_edited_files(site: LaunchSite) -> list[str]:
    """Return the files that differ from the result of the patches of the run."""
    expected_hashes = {patch["path"]: patch["content_hash"] for patch in list_applied_patches(site)}
    edited_paths = {change.path for change in site.changes} - expected_hashes.keys()
    for path, expected in expected_hashes.items():
        file = site.job.site / path
        is_plain_file = file.is_file() and not file.is_symlink()
        if hash_content(file.read_bytes() if is_plain_file else None) != expected:
            edited_paths.add(path)
    return sorted(edited_paths)


_HUNK_HEADER_PATTERN = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_DIFF_OPTIONS = ("--no-color", "--no-renames", "--unified=0", IGNORE_DIRTY_SUBMODULES)


async def list_changes(worktree: Path, base: str, env: Mapping[str, str]) -> tuple[WorktreeChange, ...]:
    """Return all paths that were changed, added or removed, including untracked ones, in order.

    Raises:
        ToolError: The worktree is not a checkout of the base commit.
    """
    git = HardenedGit(env, worktree)
    paths = await list_changed_paths(worktree, base, env)
    listing = await git.run("", "ls-tree", "-r", "-z", "--name-only", base, "--", *paths) if paths else b""
    base_paths = {os.fsdecode(path) for path in listing.split(b"\0") if path}
    worktree_changes = []
    for path in paths:
        kind, mode = _classify_path(worktree / path)
        new_lines = await _list_new_lines(git, base, path) if kind == "file" and path in base_paths else None
        worktree_changes.append(WorktreeChange(path, kind, mode, new_lines))
    return tuple(worktree_changes)


async def _list_new_lines(git: HardenedGit, base: str, path: str) -> frozenset[int]:
    diff = await git.run("", "diff", *_DIFF_OPTIONS, base, "--", path)
    return frozenset(
        line
        for start, count in _HUNK_HEADER_PATTERN.findall(diff)
        for line in range(int(start), int(start) + int(count or 1))
    )


def _classify_path(path: Path) -> tuple[str, int]:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "gone", 0
    kinds = {stat.S_IFLNK: "link", stat.S_IFDIR: "folder", stat.S_IFREG: "file"}  # a folder is a nested repository
    return kinds.get(stat.S_IFMT(mode), "device"), mode


async def restore_file(site: LaunchSite, path: str, base: str, env: Mapping[str, str]) -> FixResult:
    """Return the file as the run's patches leave it, or None when that cannot be determined."""
    git = HardenedGit(env, site.job.site)
    data: bytes | None = None
    with suppress(ToolError):
        if await git.run("", "ls-tree", "-z", "--name-only", base, "--", path):
            data = await git.run("", "cat-file", "blob", f"{base}:{path}")
    try:
        for patch in list_applied_patches(site):
            if patch["path"] == path:
                data = apply_patch(patch, data)
        return FileRemoval.REMOVED if data is None else data.decode()
    except (ConflictError, UnicodeDecodeError):
        return None

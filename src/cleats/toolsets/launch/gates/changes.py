"""What differs between the worktree and the commit the site was cloned at."""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from cleats.toolsets.launch.gates.site import Change
from cleats.toolsets.launch.patching.worktree import changed_paths
from cleats.toolsets.launch.source.git import BY_COMMIT, Git

_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_PLAIN = (
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--unified=0",
    BY_COMMIT,
)


async def changes(worktree: Path, base: str, env: Mapping[str, str]) -> tuple[Change, ...]:
    """Every path that was changed, added or removed, untracked ones included, in order.

    Raises:
        ToolError: the worktree is no checkout of the base.
    """
    git = Git(env, worktree)
    paths = await changed_paths(worktree, base, env)
    before = await _before(git, base, paths)
    found = []
    for path in paths:
        kind, mode = _look(worktree / path)
        lines = await _touched(git, base, path) if kind == "file" and path in before else None
        found.append(Change(path, kind, mode, lines))
    return tuple(found)


async def _before(git: Git, base: str, paths: list[str]) -> frozenset[str]:
    """Those of the paths that the base commit has."""
    if not paths:
        return frozenset()
    listed = await git.ask("", "ls-tree", "-r", "-z", "--name-only", base, "--", *paths)
    return frozenset(os.fsdecode(each) for each in listed.split(b"\0") if each)


async def _touched(git: Git, base: str, path: str) -> frozenset[int]:
    """The lines of a file that the base commit does not have."""
    said = await git.ask("", "diff", *_PLAIN, base, "--", path)
    return frozenset(
        line
        for start, count in _HUNK.findall(said)
        for line in range(int(start), int(start) + int(count or 1))
    )


def _look(place: Path) -> tuple[str, int]:
    try:
        mode = place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "gone", 0
    if stat.S_ISLNK(mode):
        return "link", mode
    if stat.S_ISDIR(mode):
        return "folder", mode  # a repository in the repository
    return ("file" if stat.S_ISREG(mode) else "device"), mode

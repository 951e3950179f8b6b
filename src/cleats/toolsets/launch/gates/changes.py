"""What differs between the worktree and the commit the site was cloned at."""

import stat
from collections.abc import Mapping
from pathlib import Path

from cleats.toolsets.launch.gates.site import Change
from cleats.toolsets.launch.patching.worktree import changed_paths


async def changes(worktree: Path, base: str, env: Mapping[str, str]) -> tuple[Change, ...]:
    """Every path that was changed, added or removed, untracked ones included, in order.

    Raises:
        ToolError: the worktree is no checkout of the base.
    """
    return tuple(_look(worktree, path) for path in await changed_paths(worktree, base, env))


def _look(worktree: Path, name: str) -> Change:
    try:
        mode = (worktree / name).lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return Change(name, "gone")
    if stat.S_ISLNK(mode):
        return Change(name, "link", mode)
    if stat.S_ISDIR(mode):
        return Change(name, "folder", mode)  # a repository in the repository
    return Change(name, "file" if stat.S_ISREG(mode) else "device", mode)

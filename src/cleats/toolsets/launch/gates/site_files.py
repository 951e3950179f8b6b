"""Files that no site generator can read safely."""

import os
import stat
from pathlib import Path


def find_special_file(root: Path, *, with_links: bool = False) -> str | None:
    """Return the first pipe, socket or device of a worktree, or None; with `with_links`, also the first link."""
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(folder for folder in folders if folder != ".git")
        for name in sorted([*names, *folders]):
            mode = Path(directory, name).lstat().st_mode
            is_link = stat.S_ISLNK(mode)
            if (is_link and with_links) or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or is_link):
                return Path(directory, name).relative_to(root).as_posix()
    return None

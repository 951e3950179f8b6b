"""What a worktree holds beyond its base commit, as one hash.

A report is about one state of the worktree; a commit must be of the same one. Both compare this.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from cleats.toolsets.launch.patching.fence import PART
from cleats.toolsets.launch.source.git import Git


async def changed_paths(site: Path, base_sha: str, env: Mapping[str, str]) -> list[str]:
    """List what differs from the base commit, untracked files included, ignored ones not."""
    git = Git(env, site)
    named = await git.ask("", "diff", "--name-only", "--no-renames", "-z", base_sha, "--")
    new = await git.ask("", "ls-files", "--others", "--exclude-standard", "-z")
    paths = {os.fsdecode(path) for path in (named + new).split(b"\0") if path}
    return sorted(path for path in paths if not path.endswith(PART))


async def worktree_hash(site: Path, base_sha: str, env: Mapping[str, str]) -> str:
    """Hash the paths and bytes of everything that differs from the base commit."""
    total = hashlib.sha256(base_sha.encode())
    for path in await changed_paths(site, base_sha, env):
        total.update(b"\0" + os.fsencode(path) + b"\0" + _state(site / path))
    return total.hexdigest()


def _state(file: Path) -> bytes:
    if file.is_symlink():
        return b"link " + os.fsencode(file.readlink())
    if not file.is_file():
        return b"gone"
    return b"file " + hashlib.sha256(file.read_bytes()).digest()

"""What a worktree holds beyond its base commit, as one hash.

A report is about one state of the worktree; a commit must be of the same one. Both compare this.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from cleats.toolsets.launch.patching.fence import PART
from cleats.toolsets.launch.source.git import BY_COMMIT, Git

_NAMES = ("--name-only", "--no-renames", "-z", BY_COMMIT)


async def changed_paths(site: Path, base_sha: str, env: Mapping[str, str]) -> list[str]:
    """List what differs from the base commit, untracked files included, ignored ones not."""
    git = Git(env, site)
    named = await git.ask("", "diff", *_NAMES, base_sha, "--")
    new = await git.ask("", "ls-files", "--others", "--exclude-standard", "-z")
    paths = {os.fsdecode(path) for path in (named + new).split(b"\0") if path}
    return sorted(path for path in paths if not path.endswith(PART))


async def worktree_hash(site: Path, base_sha: str, env: Mapping[str, str]) -> str:
    """Hash the paths and bytes of everything that differs from the base commit."""
    paths = await changed_paths(site, base_sha, env)
    return _total(base_sha, ((path, _state(site / path)) for path in paths))


def content_hash(base_sha: str, files: Iterable[tuple[str, bytes | None]]) -> str:
    """Hash files that were read already, in the order of their paths; None is one that is gone.

    The same as that of the worktree which they were read from, if it had no link.
    """
    return _total(base_sha, ((path, _content(data)) for path, data in files))


def _total(base_sha: str, states: Iterable[tuple[str, bytes]]) -> str:
    total = hashlib.sha256(base_sha.encode())
    for path, state in states:
        total.update(b"\0" + os.fsencode(path) + b"\0" + state)
    return total.hexdigest()


def _state(file: Path) -> bytes:
    if file.is_symlink():
        return b"link " + os.fsencode(file.readlink())
    return _content(file.read_bytes() if file.is_file() else None)


def _content(data: bytes | None) -> bytes:
    return b"gone" if data is None else b"file " + hashlib.sha256(data).digest()

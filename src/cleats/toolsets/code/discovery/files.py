"""Which files of a folder are worth reading: the one question that a build begins with."""

import os
from collections import Counter
from pathlib import Path
from typing import Literal

from msgspec import Struct

from cleats.toolsets.code.discovery import git
from cleats.toolsets.code.discovery.reasons import Limits
from cleats.toolsets.code.discovery.tree import Found, Skipped, Tree
from cleats.toolsets.code.discovery.walk import take_walked

__all__ = ["Discovery", "Found", "Limits", "Skipped", "discover"]


class Discovery(Struct, frozen=True):
    """What a folder holds, in an order that depends on names alone."""

    files: list[Found]
    skipped: list[Skipped]
    source: Literal["git", "walk"]
    ignored: int = 0
    """How many paths an ignore file excludes; git does not count those it excludes itself."""

    def counts(self) -> dict[str, int]:
        """How often each reason to skip was given."""
        counted = Counter(skipped.reason for skipped in self.skipped)
        if self.ignored:
            counted["ignored"] = self.ignored
        return dict(sorted(counted.items()))


def discover(root: Path, limits: Limits = Limits()) -> Discovery:  # noqa: B008 - frozen
    """Find every file below a folder that can be indexed, and say why the others cannot.

    In a repository these are the tracked files and the new ones that are not ignored. Blocks
    while git runs, so it must not be called where an event loop runs.
    """
    tree = Tree(os.path.realpath(root), limits)
    listed = git.in_repository(tree.root) and git.take_listed(tree, "")
    if not listed:
        tree = Tree(tree.root, limits)
        take_walked(tree)
    files = [tree.files[path] for path in sorted(tree.files)]
    if limits.max_files and len(files) > limits.max_files:
        left = len(files) - limits.max_files
        tree.skip(files[limits.max_files].path, "too_many_files", f"this and {left - 1} more")
        del files[limits.max_files :]
    return Discovery(files, sorted(tree.skipped), "git" if listed else "walk", tree.ignored)

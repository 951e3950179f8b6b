"""The files below a folder that no repository holds: a walk that honours ignore files itself."""

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final

from cleats.toolsets.code.discovery import git
from cleats.toolsets.code.discovery.ignore import IgnoreTree, Rules
from cleats.toolsets.code.discovery.naming import TOOL_MARKS, TOOL_OUTPUT, VERSION_CONTROL
from cleats.toolsets.code.discovery.tree import IGNORE_FILE, Tree

GIT_IGNORE: Final = ".gitignore"

BARE: Final = frozenset({"HEAD", "objects", "refs"})
"""What git looks for in its store, which need not be called .git: worktrees may lie around it."""


def take_walked(tree: Tree) -> None:
    """Put everything below the root into the tree. A repository on the way is left to git."""
    walk = Walk(tree, IgnoreTree(_base(tree)))
    waiting = [""]  # a stack of our own: a tree may be deeper than calls can go
    while waiting:
        folder = waiting.pop()
        if folder and git.is_repository(f"{tree.root}/{folder}") and git.take_listed(tree, folder):
            continue
        waiting.extend(walk.enter(folder))


def _base(tree: Tree) -> Iterator[Rules]:
    """What holds for the whole tree, the strongest first."""
    yield Rules(tree.read_ignore_file(".git/info/exclude"))
    try:
        yield Rules(os.fsdecode(git.excludes_file().read_bytes()))
    except OSError:
        return


class Walk:
    """One walk: a tree that fills, and the ignore files seen on the way."""

    def __init__(self, tree: Tree, ignores: IgnoreTree) -> None:
        self._tree = tree
        self._ignores = ignores

    def enter(self, folder: str) -> list[str]:
        """Take what lies in a folder; return the folders in it that are to be entered."""
        try:
            with os.scandir(f"{self._tree.root}/{folder}") as listed:
                entries = {entry.name: entry for entry in listed}
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self._tree.skip(folder, "unreadable", error.strerror or "")
            return []
        if folder and (made := _made_by_tool(entries)):
            self._tree.skip(folder, "tool_output", made)
            return []
        if folder and entries.keys() >= BARE:
            self._tree.skip(folder, "version_control")
            return []
        prefix = f"{folder}/" if folder else ""
        for name, ignores in ((GIT_IGNORE, self._ignores), (IGNORE_FILE, self._tree.marks)):
            if name in entries and (text := self._tree.read_ignore_file(prefix + name)):
                ignores.add(folder, text)
        below: list[str] = []
        for name, entry in entries.items():
            self._sort(prefix + name, entry, below)
        return below

    def _sort(self, path: str, entry: os.DirEntry[str], below: list[str]) -> None:
        tree = self._tree
        if entry.name in VERSION_CONTROL:
            tree.skip(path, "version_control")
            return
        try:
            folder = entry.is_dir(follow_symlinks=False)
            if folder and entry.name in TOOL_OUTPUT:
                tree.skip(path, "tool_output", TOOL_OUTPUT[entry.name])
            elif self._ignores.excludes(path, folder=folder) or tree.marks.excludes(
                path, folder=folder
            ):
                tree.ignored += 1
            elif folder:
                below.append(path)
            else:
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode):
                    tree.take(path, status)
        except FileNotFoundError:
            return  # it was there a moment ago
        except OSError as error:
            tree.skip(path, "unreadable", error.strerror or "")


def _made_by_tool(names: Iterable[str]) -> str:
    there = set(names)
    return next((what for mark, what in TOOL_MARKS.items() if mark in there), "")

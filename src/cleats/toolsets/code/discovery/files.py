"""Discovery of the files of a folder that are worth reading: the first step of a build."""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from cleats.toolsets.code.discovery import git_files
from cleats.toolsets.code.discovery.file_names import TOOL_MARKER_FILES, TOOL_OUTPUT_FOLDERS, VERSION_CONTROL_FOLDERS
from cleats.toolsets.code.discovery.ignore_rules import IgnoreRules, IgnoreTree
from cleats.toolsets.code.discovery.tree import (
    IGNORE_FILE_NAME,
    DiscoveredFile,
    DiscoveredTree,
    DiscoveryLimits,
    SkippedPath,
)

GITIGNORE_NAME: Final = ".gitignore"

GIT_STORE_ENTRIES: Final = frozenset({"HEAD", "objects", "refs"})
"""Entries by which git recognises its store, which need not be named .git: worktrees may lie around
it."""


def add_walked_files(tree: DiscoveredTree) -> None:
    """Add everything below the root to the tree. A repository on the way is listed by git."""
    walker = DirectoryWalker(tree, IgnoreTree(_read_base_rules(tree)))
    pending_folders = [""]  # an explicit stack: a tree may be deeper than the recursion limit
    while pending_folders:
        folder = pending_folders.pop()
        if folder and git_files.is_repository(f"{tree.root}/{folder}") and git_files.add_listed_files(tree, folder):
            continue
        pending_folders.extend(walker.enter_folder(folder))


def _read_base_rules(tree: DiscoveredTree) -> Iterator[IgnoreRules]:
    """Yield the rules for the entire tree, the strongest first."""
    yield IgnoreRules(tree.read_ignore_file(".git/info/exclude"))
    try:
        yield IgnoreRules(os.fsdecode(git_files.find_excludes_file(Path(tree.root)).read_bytes()))
    except OSError:
        return


class DirectoryWalker:
    """A directory walk: the tree that it fills, and the ignore files seen on the way."""

    def __init__(self, tree: DiscoveredTree, ignores: IgnoreTree) -> None:
        self._tree = tree
        self._ignores = ignores

    def enter_folder(self, folder: str) -> list[str]:
        """Add the contents of a folder; return the subfolders to enter."""
        try:
            with os.scandir(f"{self._tree.root}/{folder}") as scanned:
                entries = {entry.name: entry for entry in scanned}
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self._tree.skip(folder, "unreadable", error.strerror or "")
            return []
        if folder and (tool_output := _find_tool_marker(entries)):
            self._tree.skip(folder, "tool_output", tool_output)
            return []
        if folder and entries.keys() >= GIT_STORE_ENTRIES:
            self._tree.skip(folder, "version_control")
            return []
        prefix = f"{folder}/" if folder else ""
        for name, ignores in ((GITIGNORE_NAME, self._ignores), (IGNORE_FILE_NAME, self._tree.ignore_files)):
            if name in entries and (text := self._tree.read_ignore_file(prefix + name)):
                ignores.add(folder, text)
        subfolders: list[str] = []
        for name, entry in entries.items():
            self._add_entry(prefix + name, entry, subfolders)
        return subfolders

    def _add_entry(self, path: str, entry: os.DirEntry[str], subfolders: list[str]) -> None:
        tree = self._tree
        if entry.name in VERSION_CONTROL_FOLDERS:
            tree.skip(path, "version_control")
            return
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and entry.name in TOOL_OUTPUT_FOLDERS:
                tree.skip(path, "tool_output", TOOL_OUTPUT_FOLDERS[entry.name])
            elif self._ignores.is_excluded(path, is_folder=is_folder) or tree.ignore_files.is_excluded(
                path, is_folder=is_folder
            ):
                tree.ignored += 1
            elif is_folder:
                subfolders.append(path)
            else:
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode):
                    tree.add_file(path, status)
        except FileNotFoundError:
            return  # deleted since it was listed
        except OSError as error:
            tree.skip(path, "unreadable", error.strerror or "")


def _find_tool_marker(names: Iterable[str]) -> str:
    present_names = set(names)
    return next((description for mark, description in TOOL_MARKER_FILES.items() if mark in present_names), "")


__all__ = ["DiscoveredFile", "Discovery", "DiscoveryLimits", "SkippedPath", "discover_files"]


class Discovery(Struct, frozen=True):
    """The files of a folder, in an order that depends on names alone."""

    files: list[DiscoveredFile]
    skipped: list[SkippedPath]
    source: Literal["git", "walk"]
    ignored: int = 0
    """Number of paths that an ignore file excludes; git does not report those it excludes
    itself."""

    def count_reasons(self) -> dict[str, int]:
        """Return how often each skip reason was given."""
        reason_counts = Counter(skipped.reason for skipped in self.skipped)
        if self.ignored:
            reason_counts["ignored"] = self.ignored
        return dict(sorted(reason_counts.items()))


def discover_files(root: Path, limits: DiscoveryLimits = DiscoveryLimits()) -> Discovery:  # noqa: B008 - frozen
    """Find every file below a folder that can be indexed, and record why the others cannot.

    In a repository these are the tracked files and the new ones that are not ignored. Blocks while
    git runs, so it must not be called in an event loop.
    """
    tree = DiscoveredTree(os.path.realpath(root), limits)
    is_listed = git_files.is_in_repository(tree.root) and git_files.add_listed_files(tree, "")
    if not is_listed:
        tree = DiscoveredTree(tree.root, limits)
        add_walked_files(tree)
    files = [tree.files[path] for path in sorted(tree.files)]
    if limits.max_files and len(files) > limits.max_files:
        excess_count = len(files) - limits.max_files
        tree.skip(files[limits.max_files].path, "too_many_files", f"this and {excess_count - 1} more")
        del files[limits.max_files :]
    return Discovery(files, sorted(tree.skipped), "git" if is_listed else "walk", tree.ignored)

"""Discovery of the files of a folder that are worth reading: the first step of a build.

In a repository git lists them, one command for it and one per submodule; elsewhere the folders are walked.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from cleats.system.git import GitError, ReadOnlyGit, find_git
from cleats.toolsets.code.discovery.content import FILE_NAMES, VERSION_CONTROL_FOLDERS, DiscoveryLimits
from cleats.toolsets.code.discovery.ignore_rules import IgnoreRules, IgnoreTree
from cleats.toolsets.code.discovery.tree import IGNORE_FILE_NAME, DiscoveredFile, DiscoveredTree, SkippedPath

_LIST_FILES_ARGS: Final = ("ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
_GET_EXCLUDES_ARGS: Final = ("config", "--type=path", "--get", "core.excludesFile")

_MAX_OUTPUT_BYTES: Final = 1 << 30
"""Bytes of paths; a truncated listing is useless."""

_UNTRACKED_TAG: Final = "?"


def is_repository(folder: str) -> bool:
    """Return whether a folder is the root of a repository or of a submodule."""
    return os.path.lexists(f"{folder}/.git")


def add_listed_files(tree: DiscoveredTree, folder: str) -> bool:
    """Add everything that git lists below a folder to the tree; return False if git fails.

    Git lists nothing below a folder that an outer repository ignores. A caller that names such a
    folder wants it read, so an empty listing counts as a failure too.
    """
    absolute_path = f"{tree.root}/{folder}" if folder else tree.root
    tags_by_path = _list_paths(absolute_path)
    if tags_by_path is None or not (tags_by_path or is_repository(absolute_path)):
        return False
    prefix = f"{folder}/" if folder else ""
    if IGNORE_FILE_NAME not in tags_by_path:  # the ignore file itself may be ignored
        tags_by_path = {**tags_by_path, IGNORE_FILE_NAME: _UNTRACKED_TAG}
    for path in sorted(tags_by_path):
        if path.rsplit("/", 1)[-1] == IGNORE_FILE_NAME and (text := tree.read_ignore_file(prefix + path)):
            tree.ignore_files.add((prefix + path).rpartition("/")[0], text)
    del tags_by_path[IGNORE_FILE_NAME]
    listing = GitListing(tree, prefix, tags_by_path)
    for path, tag in tags_by_path.items():
        listing.add_path(path, is_untracked=tag == _UNTRACKED_TAG)
    return True


def find_excludes_file(checkout: Path | None = None) -> Path:
    """Return the ignore file that applies to all repositories of the user."""
    with suppress(GitError):
        if path := ReadOnlyGit(Path("/"), find_git(checkout)).run(*_GET_EXCLUDES_ARGS).strip():
            return Path(os.fsdecode(path))
    return Path("~/.config/git/ignore").expanduser()


class GitListing:
    """The paths of one repository that are being added to a tree."""

    def __init__(self, tree: DiscoveredTree, prefix: str, paths: dict[str, str]) -> None:
        self._tree = tree
        self._prefix = prefix
        self._link_states: dict[str, bool] = {"": False}
        self._tool_folders = {
            path.rpartition("/")[0]: FILE_NAMES.tool_marker_files[path.rsplit("/", 1)[-1]]
            for path, tag in paths.items()
            if tag == _UNTRACKED_TAG and path.rsplit("/", 1)[-1] in FILE_NAMES.tool_marker_files
        }
        self._reported_folders: set[str] = set()

    def add_path(self, path: str, *, is_untracked: bool) -> None:
        tree, tree_path = self._tree, self._prefix + path.rstrip("/")
        folder = path.rpartition("/")[0]
        if is_untracked and self._skip_tool_output(path):
            return
        if tree.ignore_files.is_excluded_with_parents(tree_path):
            tree.ignored += 1
            return
        is_behind_link = self._link_states.get(folder)
        if is_behind_link or (is_behind_link is None and self._is_behind_link(folder)):
            return
        try:
            status = os.lstat(f"{tree.root}/{tree_path}")
        except (FileNotFoundError, NotADirectoryError):
            return  # deleted and not yet committed, or just now
        except OSError as error:
            tree.skip(tree_path, "unreadable", error.strerror or "")
            return
        if not stat.S_ISDIR(status.st_mode):
            tree.add_file(tree_path, status)
        elif is_repository(f"{tree.root}/{tree_path}"):
            add_listed_files(tree, tree_path)

    def _is_behind_link(self, folder: str) -> bool:
        """Return whether a parent folder has been replaced by a link, which may lead anywhere."""
        unresolved: list[str] = []
        while (is_behind := self._link_states.get(folder)) is None:
            unresolved.append(folder)
            folder = folder.rpartition("/")[0]
        for subfolder in reversed(unresolved):
            # Without access it is not a link; then the file itself cannot be reached either.
            is_behind = is_behind or os.path.islink(f"{self._tree.root}/{self._prefix}{subfolder}")  # noqa: PTH114
            self._link_states[subfolder] = is_behind
        return is_behind

    def _skip_tool_output(self, path: str) -> bool:
        folder = ""
        for name in path.split("/")[:-1]:
            folder = f"{folder}/{name}" if folder else name
            reason = "version_control" if name in VERSION_CONTROL_FOLDERS else "tool_output"
            detail = FILE_NAMES.tool_output_folders.get(name) or self._tool_folders.get(folder)
            if detail or reason == "version_control":
                if folder not in self._reported_folders:
                    self._reported_folders.add(folder)
                    self._tree.skip(self._prefix + folder, reason, detail or "")
                return True
        return False


def _list_paths(folder: str) -> dict[str, str] | None:
    """Return every path with git's tag for it. Git lists a path in conflict more than once."""
    try:
        git = ReadOnlyGit.from_root(Path(folder))
        output = git.run(*_LIST_FILES_ARGS, timeout=None, output_limit=_MAX_OUTPUT_BYTES)
    except GitError:
        return None
    return {entry[2:]: entry[0] for entry in os.fsdecode(output).split("\0") if entry}


GITIGNORE_NAME: Final = ".gitignore"

GIT_STORE_ENTRIES: Final = frozenset({"HEAD", "objects", "refs"})
"""Entries by which git recognises its store, which need not be named .git: worktrees may lie around it."""


def add_walked_files(tree: DiscoveredTree) -> None:
    """Add everything below the root to the tree. A repository on the way is listed by git."""
    walker = DirectoryWalker(tree)
    pending_folders = [""]  # an explicit stack: a tree may be deeper than the recursion limit
    while pending_folders:
        folder = pending_folders.pop()
        if folder and is_repository(f"{tree.root}/{folder}") and add_listed_files(tree, folder):
            continue
        pending_folders.extend(walker.enter_folder(folder))


def _read_base_rules(tree: DiscoveredTree) -> Iterator[IgnoreRules]:
    """Yield the rules for the entire tree, the strongest first."""
    yield IgnoreRules(tree.read_ignore_file(".git/info/exclude"))
    try:
        yield IgnoreRules(os.fsdecode(find_excludes_file(Path(tree.root)).read_bytes()))
    except OSError:
        return


class DirectoryWalker:
    """A directory walk: the tree that it fills, and the ignore files seen on the way."""

    def __init__(self, tree: DiscoveredTree) -> None:
        self._tree = tree
        self._ignores = IgnoreTree(_read_base_rules(tree))

    def enter_folder(self, folder: str) -> list[str]:
        """Add the contents of a folder; return the subfolders to enter."""
        try:
            with os.scandir(f"{self._tree.root}/{folder}") as scanned:
                entries = {entry.name: entry for entry in scanned}
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self._tree.skip(folder, "unreadable", error.strerror or "")
            return []
        tool_outputs = [description for mark, description in FILE_NAMES.tool_marker_files.items() if mark in entries]
        if folder and tool_outputs:
            self._tree.skip(folder, "tool_output", tool_outputs[0])
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
            if is_folder and entry.name in FILE_NAMES.tool_output_folders:
                tree.skip(path, "tool_output", FILE_NAMES.tool_output_folders[entry.name])
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


__all__ = ["DiscoveredFile", "Discovery", "DiscoveryLimits", "SkippedPath", "discover_files"]


class Discovery(Struct, frozen=True):
    """The files of a folder, in an order that depends on names alone."""

    files: list[DiscoveredFile]
    skipped: list[SkippedPath]
    source: Literal["git", "walk"]
    ignored: int = 0
    """Number of paths that an ignore file excludes; git does not report those it excludes itself."""

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
    folders = (tree.root, *map(str, Path(tree.root).parents))
    is_listed = any(map(is_repository, folders)) and add_listed_files(tree, "")
    if not is_listed:
        tree = DiscoveredTree(tree.root, limits)
        add_walked_files(tree)
    files = [tree.files[path] for path in sorted(tree.files)]
    if limits.max_files and len(files) > limits.max_files:
        excess_count = len(files) - limits.max_files
        tree.skip(files[limits.max_files].path, "too_many_files", f"this and {excess_count - 1} more")
        del files[limits.max_files :]
    return Discovery(files, sorted(tree.skipped), "git" if is_listed else "walk", tree.ignored)

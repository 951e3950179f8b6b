"""The files of a repository, as listed by git: one command for a repository, one per submodule."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from cleats.system.git import GitError, ReadOnlyGit, find_git
from cleats.toolsets.code.discovery.file_names import TOOL_MARKER_FILES, TOOL_OUTPUT_FOLDERS, VERSION_CONTROL_FOLDERS
from cleats.toolsets.code.discovery.tree import IGNORE_FILE_NAME, DiscoveredTree

_LIST_FILES_ARGS: Final = ("ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
_GET_EXCLUDES_ARGS: Final = ("config", "--type=path", "--get", "core.excludesFile")

_MAX_OUTPUT_BYTES: Final = 1 << 30
"""Bytes of paths; a truncated listing is useless."""

_UNTRACKED_TAG: Final = "?"


def is_repository(folder: str) -> bool:
    """Return whether a folder is the root of a repository or of a submodule."""
    return os.path.lexists(f"{folder}/.git")


def is_in_repository(folder: str) -> bool:
    """Return whether a folder or one of its parents is a repository."""
    path = Path(folder)
    return any(is_repository(str(candidate)) for candidate in (path, *path.parents))


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
    GitListing(tree, prefix, tags_by_path).add_files()
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
        self._paths = paths
        self._link_states: dict[str, bool] = {"": False}
        self._tool_folders = {
            path.rpartition("/")[0]: TOOL_MARKER_FILES[path.rsplit("/", 1)[-1]]
            for path, tag in paths.items()
            if tag == _UNTRACKED_TAG and path.rsplit("/", 1)[-1] in TOOL_MARKER_FILES
        }
        self._reported_folders: set[str] = set()

    def add_files(self) -> None:
        for path, tag in self._paths.items():
            self._add_path(path, is_untracked=tag == _UNTRACKED_TAG)

    def _add_path(self, path: str, *, is_untracked: bool) -> None:
        tree, tree_path = self._tree, self._prefix + path.rstrip("/")
        if is_untracked and self._skip_tool_output(path):
            return
        if tree.ignore_files.is_excluded_with_parents(tree_path):
            tree.ignored += 1
            return
        if self._is_behind_link(path.rpartition("/")[0]):
            return
        try:
            status = os.lstat(f"{tree.root}/{tree_path}")
        except FileNotFoundError:
            return  # deleted and not yet committed, or just now
        except NotADirectoryError:
            return
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
            is_behind = is_behind or _is_link(f"{self._tree.root}/{self._prefix}{subfolder}")
            self._link_states[subfolder] = is_behind
        return is_behind

    def _skip_tool_output(self, path: str) -> bool:
        folder = ""
        for name in path.split("/")[:-1]:
            folder = f"{folder}/{name}" if folder else name
            reason = "version_control" if name in VERSION_CONTROL_FOLDERS else "tool_output"
            detail = TOOL_OUTPUT_FOLDERS.get(name) or self._tool_folders.get(folder)
            if detail or reason == "version_control":
                if folder not in self._reported_folders:
                    self._reported_folders.add(folder)
                    self._tree.skip(self._prefix + folder, reason, detail or "")
                return True
        return False


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False  # then the file itself cannot be reached either


def _list_paths(folder: str) -> dict[str, str] | None:
    """Return every path with git's tag for it. Git lists a path in conflict more than once."""
    try:
        git = ReadOnlyGit.from_root(Path(folder))
        output = git.run(*_LIST_FILES_ARGS, timeout=None, output_limit=_MAX_OUTPUT_BYTES)
    except GitError:
        return None
    return {entry[2:]: entry[0] for entry in os.fsdecode(output).split("\0") if entry}

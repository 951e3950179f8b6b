"""The files of a repository, as git lists them: one command for a repository, one per submodule."""

import os
import stat
from pathlib import Path
from typing import Final

from cleats.runtime.blocking import Completed, StartError, run
from cleats.toolsets.code.discovery.naming import TOOL_MARKS, TOOL_OUTPUT, VERSION_CONTROL
from cleats.toolsets.code.discovery.tree import IGNORE_FILE, Tree

_LIST: Final = (
    "git",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",  # else a repository could name a program for git to start
    "ls-files",
    "-z",
    "-t",
    "--cached",
    "--others",
    "--exclude-standard",
)
_EXCLUDES: Final = ("git", "config", "--type=path", "--get", "core.excludesFile")

_OUTPUT: Final = 1 << 30
"""Bytes of paths; a listing must be whole or it is worth nothing."""

_UNTRACKED: Final = "?"


def is_repository(folder: str) -> bool:
    """Whether a folder is the top of a repository or a submodule's."""
    return os.path.lexists(f"{folder}/.git")


def in_repository(folder: str) -> bool:
    """Whether a folder or one above it is a repository."""
    path = Path(folder)
    return any(is_repository(str(place)) for place in (path, *path.parents))


def take_listed(tree: Tree, folder: str) -> bool:
    """Put everything git lists below a folder of the tree into it; false when git cannot.

    Git says nothing at all below a folder that an outer repository ignores. Whoever names such a
    folder wants it read, so that counts as a failure too.
    """
    place = f"{tree.root}/{folder}" if folder else tree.root
    listed = _listed(place)
    if listed is None or not (listed or is_repository(place)):
        return False
    prefix = f"{folder}/" if folder else ""
    if IGNORE_FILE not in listed:  # it may well be ignored itself
        listed = {**listed, IGNORE_FILE: _UNTRACKED}
    for path in sorted(listed):
        if path.rsplit("/", 1)[-1] == IGNORE_FILE and (
            text := tree.read_ignore_file(prefix + path)
        ):
            tree.marks.add((prefix + path).rpartition("/")[0], text)
    del listed[IGNORE_FILE]
    Listing(tree, prefix, listed).take()
    return True


def excludes_file() -> Path:
    """The ignore file that holds for all of a user's repositories."""
    answer = _git(_EXCLUDES, "/")
    if answer is not None and answer.exit_code == 0 and (path := answer.stdout.strip()):
        return Path(os.fsdecode(path))
    return Path("~/.config/git/ignore").expanduser()


class Listing:
    """One repository's paths on their way into a tree."""

    def __init__(self, tree: Tree, prefix: str, paths: dict[str, str]) -> None:
        self._tree = tree
        self._prefix = prefix
        self._paths = paths
        self._links: dict[str, bool] = {"": False}
        self._made = {
            path.rpartition("/")[0]: TOOL_MARKS[path.rsplit("/", 1)[-1]]
            for path, tag in paths.items()
            if tag == _UNTRACKED and path.rsplit("/", 1)[-1] in TOOL_MARKS
        }
        self._reported: set[str] = set()

    def take(self) -> None:
        for path, tag in self._paths.items():
            self._take(path, untracked=tag == _UNTRACKED)

    def _take(self, path: str, *, untracked: bool) -> None:
        tree, whole = self._tree, self._prefix + path.rstrip("/")
        if untracked and self._is_made_by_tool(path):
            return
        if tree.marks.excludes_deeply(whole):
            tree.ignored += 1
            return
        if self._behind_link(path.rpartition("/")[0]):
            return
        try:
            status = os.lstat(f"{tree.root}/{whole}")
        except FileNotFoundError:
            return  # deleted and not yet committed, or just now
        except NotADirectoryError:
            return
        except OSError as error:
            tree.skip(whole, "unreadable", error.strerror or "")
            return
        if not stat.S_ISDIR(status.st_mode):
            tree.take(whole, status)
        elif is_repository(f"{tree.root}/{whole}"):
            take_listed(tree, whole)

    def _behind_link(self, folder: str) -> bool:
        """Whether a folder on the way has been replaced by a link, which may lead anywhere."""
        above: list[str] = []
        while (known := self._links.get(folder)) is None:
            above.append(folder)
            folder = folder.rpartition("/")[0]
        for below in reversed(above):
            known = known or _is_link(f"{self._tree.root}/{self._prefix}{below}")
            self._links[below] = known
        return known

    def _is_made_by_tool(self, path: str) -> bool:
        folder = ""
        for name in path.split("/")[:-1]:
            folder = f"{folder}/{name}" if folder else name
            reason = "version_control" if name in VERSION_CONTROL else "tool_output"
            made = TOOL_OUTPUT.get(name) or self._made.get(folder)
            if made or reason == "version_control":
                if folder not in self._reported:
                    self._reported.add(folder)
                    self._tree.skip(self._prefix + folder, reason, made or "")
                return True
        return False


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False  # then the file itself cannot be reached either


def _listed(place: str) -> dict[str, str] | None:
    """Every path with git's letter for it. A path in conflict is listed more than once."""
    done = _git(_LIST, place)
    if done is None or done.exit_code != 0 or done.truncated:
        return None
    entries = os.fsdecode(done.stdout).split("\0")
    return {entry[2:]: entry[0] for entry in entries if entry}


def _git(argv: tuple[str, ...], place: str) -> Completed | None:
    try:
        return run(argv, cwd=Path(place), output_limit=_OUTPUT)
    except StartError:
        return None

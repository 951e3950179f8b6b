"""Where a repository stands: its branch, its commit, and whether tracked files are changed.

Cheap enough to be asked at every refresh. Nothing here fails: without git, or when git declines,
the answer says so and everything else goes on.
"""

from pathlib import Path

from msgspec import Struct

from cleats.toolsets.code.history.git import Git, GitError


class GitState(Struct, frozen=True):
    """What git says about a folder."""

    branch: str | None = None
    """None when no branch is checked out."""
    commit: str | None = None
    """None before the first commit."""
    dirty: bool = False
    """Whether tracked files differ from the commit."""
    is_repo: bool = True
    """Whether git can be asked about its history."""
    warning: str = ""


def state(root: Path) -> GitState | None:
    """Ask for the state of a folder; None when it is in no repository. Blocks while git runs."""
    try:
        git = Git.at(root).tamed()
    except GitError as error:
        return _explain(root, error)
    try:
        return _read(git.ask("status", *_STATUS))
    except GitError as error:
        return _bare(git) if "in a work tree" in error.said else _explain(root, error)


_STATUS = (
    "--porcelain=v2",
    "--branch",
    "-z",
    "--no-ahead-behind",
    "--no-renames",
    "--untracked-files=no",
    # Else git asks the submodule's own git, with the submodule's own filters.
    "--ignore-submodules=dirty",
    "--",
    ".",
)


def _read(answer: bytes) -> GitState:
    branch = commit = None
    dirty = False
    for line in answer.decode(errors="replace").split("\0"):
        match line.split(" ", 2):
            case ["#", "branch.oid", oid]:
                commit = None if oid == "(initial)" else oid
            case ["#", "branch.head", head]:
                branch = None if head == "(detached)" else head
            case [kind, *_] if kind in {"1", "2", "u"}:
                dirty = True
            case _:
                pass
    return GitState(branch, commit, dirty)


def _bare(git: Git) -> GitState:
    return GitState(
        _maybe(git, "symbolic-ref", "--quiet", "--short", "HEAD"),
        _maybe(git, "rev-parse", "--quiet", "--verify", "HEAD^{commit}"),
    )


def _maybe(git: Git, *words: str) -> str | None:
    try:
        return (git.ask(*words)).decode(errors="replace").strip()
    except GitError:
        return None


def _explain(root: Path, error: GitError) -> GitState | None:
    if "dubious ownership" in error.said or "unsafe repository" in error.said:
        return GitState(
            is_repo=False,
            warning="git does not read this repository, because it belongs to somebody else; "
            f'`git config --global --add safe.directory "{root}"` allows it',
        )
    looks_like_one = (root / ".git").exists()
    if not looks_like_one and (not error.said or "not a git repository" in error.said):
        return None
    return GitState(is_repo=False, warning=str(error))

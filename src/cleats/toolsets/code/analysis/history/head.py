"""The state of a repository: its branch, its commit, and whether tracked files are changed.

Cheap enough for every refresh. Nothing here raises: without git, or when git fails, the returned
state says so and the caller continues.
"""

import re
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from cleats.system.git import GitError, ReadOnlyGit


class GitState(Struct, frozen=True):
    """The state that git reports for a folder."""

    branch: str | None = None
    """None when no branch is checked out."""
    commit: str | None = None
    """None before the first commit."""
    dirty: bool = False
    """True if tracked files differ from the commit."""
    is_repo: bool = True
    """True if git can read the history."""
    warning: str = ""


def read_git_state(root: Path) -> GitState | None:
    """Return the git state of a folder; None outside a repository. Blocks while git runs."""
    try:
        git = ReadOnlyGit.from_root(root).with_filters_disabled()
    except GitError as error:
        return _explain_failure(root, error)
    try:
        return _parse_status(git.run("status", *_STATUS_OPTIONS))
    except GitError as error:
        if "in a work tree" not in error.stderr:
            return _explain_failure(root, error)
        branch = _try_git(git, "symbolic-ref", "--quiet", "--short", "HEAD")
        return GitState(branch, _try_git(git, "rev-parse", "--quiet", "--verify", "HEAD^{commit}"))


_STATUS_OPTIONS = (
    *("--porcelain=v2", "--branch", "-z", "--no-ahead-behind", "--no-renames", "--untracked-files=no"),
    # Otherwise git runs inside the submodule, with the filters of the submodule.
    *("--ignore-submodules=dirty", "--", "."),
)


def _parse_status(output: bytes) -> GitState:
    branch = commit = None
    is_dirty = False
    for line in output.decode(errors="replace").split("\0"):
        match line.split(" ", 2):
            case ["#", "branch.oid", oid]:
                commit = None if oid == "(initial)" else oid
            case ["#", "branch.head", head]:
                branch = None if head == "(detached)" else head
            case [kind, *_] if kind in {"1", "2", "u"}:
                is_dirty = True
            case _:
                pass
    return GitState(branch, commit, is_dirty)


def _try_git(git: ReadOnlyGit, *args: str) -> str | None:
    try:
        return (git.run(*args)).decode(errors="replace").strip()
    except GitError:
        return None


def _explain_failure(root: Path, error: GitError) -> GitState | None:
    if "dubious ownership" in error.stderr or "unsafe repository" in error.stderr:
        return GitState(
            is_repo=False,
            warning="git does not read this repository, because it belongs to somebody else; "
            f'`git config --global --add safe.directory "{root}"` allows it',
        )
    looks_like_repository = (root / ".git").exists()
    if not looks_like_repository and (not error.stderr or "not a git repository" in error.stderr):
        return None
    return GitState(is_repo=False, warning=str(error))


_COMMIT_HASH_PATTERN = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

GitHead: TypeAlias = list[str | None]
"""A commit and a branch: None before the first commit, and where no branch is checked out. In a
shallow clone also a hash of where it was cut off: `git fetch` changes that, and nothing else."""


def read_head(root: Path) -> GitHead | None:
    """Return what is checked out around a folder; None outside a repository."""
    git_path = next((folder / ".git" for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    if git_path is None:
        return None
    try:
        return _read_head_file(git_path)
    except (OSError, ValueError):
        state = read_git_state(root)
        return [state.commit, state.branch] if state is not None and state.is_repo else None


def is_same_head(one: GitHead | None, other: GitHead | None) -> bool:
    """Return whether both are the same commit of the same branch, however deep the clones are."""
    return (one and one[:2]) == (other and other[:2])


def _read_head_file(git_folder: Path) -> GitHead:
    if git_folder.is_file():
        git_folder = git_folder.parent / git_folder.read_text(encoding="utf-8").strip().removeprefix("gitdir: ")
    text = (git_folder / "HEAD").read_text(encoding="utf-8").strip()
    shared_folder = git_folder / _read_if_present(git_folder / "commondir").decode().strip()
    shallow = _read_if_present(shared_folder / "shallow")
    shallow_hash = [sha256(shallow).hexdigest()] if shallow else []
    if _COMMIT_HASH_PATTERN.fullmatch(text):
        return [text, None, *shallow_hash]
    if not text.startswith("ref: refs/heads/") or (shared_folder / "reftable").exists():
        raise ValueError("not a kind of HEAD that is known here")
    reference = text.removeprefix("ref: ")
    commit: str | None = _read_if_present(shared_folder / reference).decode().strip()
    if not _COMMIT_HASH_PATTERN.fullmatch(commit or ""):
        packed_references = _read_if_present(shared_folder / "packed-refs").decode()
        matched = re.search(rf"^([0-9a-f]+) {re.escape(reference)}$", packed_references, re.MULTILINE)
        commit = matched[1] if matched else None
    return [commit, reference.removeprefix("refs/heads/"), *shallow_hash]


def _read_if_present(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return b""

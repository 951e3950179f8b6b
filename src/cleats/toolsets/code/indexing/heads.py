"""Which commit a work tree stands on, read from git's own files.

A refresh asks this all the time, and git takes longer to start than everything else that a refresh
does. Only where the files are of a kind that is not known here is git itself asked.
"""

import re
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

Stand: TypeAlias = list[str | None]
"""A commit and a branch: None before the first commit, and where no branch is checked out. In a
shallow clone also a mark of where it was cut off: `git fetch` moves that, and nothing else."""


def stand(root: Path) -> Stand | None:
    """What is checked out around a folder; None when no repository is."""
    mark = next((each / ".git" for each in (root, *root.parents) if (each / ".git").exists()), None)
    if mark is None:
        return None
    try:
        return _read(_own_folder(mark))
    except (OSError, ValueError):
        return _asked(root)


def _asked(root: Path) -> Stand | None:
    from cleats.toolsets.code.history.state import state  # noqa: PLC0415 - hardly ever

    git = state(root)
    return [git.commit, git.branch] if git is not None and git.is_repo else None


def same_place(one: Stand | None, other: Stand | None) -> bool:
    """Whether they are at the same commit of the same branch, however far back git goes there."""
    return (one and one[:2]) == (other and other[:2])


def _own_folder(mark: Path) -> Path:
    if mark.is_dir():
        return mark
    return mark.parent / mark.read_text(encoding="utf-8").strip().removeprefix("gitdir: ")


def _read(own: Path) -> Stand:
    text = (own / "HEAD").read_text(encoding="utf-8").strip()
    shared = _shared_folder(own)
    cut = _cut(shared / "shallow")
    if _COMMIT.fullmatch(text):
        return [text, None, *cut]
    if not text.startswith("ref: refs/heads/") or (shared / "reftable").exists():
        raise ValueError("not a kind of HEAD that is known here")
    reference = text.removeprefix("ref: ")
    commit = _loose(shared / reference) or _packed(shared / "packed-refs", reference)
    return [commit, reference.removeprefix("refs/heads/"), *cut]


def _shared_folder(own: Path) -> Path:
    try:
        return own / (own / "commondir").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return own


def _cut(path: Path) -> list[str]:
    try:
        return [sha256(path.read_bytes()).hexdigest()]
    except FileNotFoundError:
        return []


def _loose(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    return text if _COMMIT.fullmatch(text) else None


def _packed(path: Path, reference: str) -> str | None:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    found = re.search(rf"^([0-9a-f]+) {re.escape(reference)}$", text, re.MULTILINE)
    return found[1] if found else None

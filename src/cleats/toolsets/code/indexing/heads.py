"""Which commit a work tree stands on, read from git's own files.

A refresh asks this all the time, and git itself takes longer to start than everything else that a
refresh does. Where the files are of a kind that is not known here, the answer is unknown, and git
has to be asked.
"""

import re
from pathlib import Path
from typing import NamedTuple

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Head(NamedTuple):
    """What is checked out; a commit of None is one that is not there yet."""

    branch: str | None
    commit: str | None


def head(root: Path) -> Head | None:
    """What is checked out in a work tree; None when its files do not tell."""
    try:
        own = _own_folder(root)
        text = (own / "HEAD").read_text(encoding="utf-8").strip()
        if _COMMIT.fullmatch(text):
            return Head(None, text)
        if not text.startswith("ref: refs/heads/"):
            return None
        reference = text.removeprefix("ref: ")
        shared = _shared_folder(own)
        if (shared / "reftable").exists():
            return None
        return Head(reference.removeprefix("refs/heads/"), _commit(own, shared, reference))
    except (OSError, UnicodeDecodeError):
        return None


def _own_folder(root: Path) -> Path:
    mark = root / ".git"
    if mark.is_dir():
        return mark
    return root / mark.read_text(encoding="utf-8").strip().removeprefix("gitdir: ")


def _shared_folder(own: Path) -> Path:
    try:
        return own / (own / "commondir").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return own


def _commit(own: Path, shared: Path, reference: str) -> str | None:
    for folder in dict.fromkeys((own, shared)):
        try:
            text = (folder / reference).read_text(encoding="utf-8").strip()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            continue
        if _COMMIT.fullmatch(text):
            return text
    try:
        packed = (shared / "packed-refs").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    found = re.search(rf"^([0-9a-f]+) {re.escape(reference)}$", packed, re.MULTILINE)
    return found[1] if found else None

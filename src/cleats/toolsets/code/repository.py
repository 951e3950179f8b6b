"""Which repository a path means, and the name it has in the cache.

No process is started: a repository is recognised by its `.git`, which is a folder in a clone and a
file in a worktree or a submodule.
"""

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError

CONFIGURATION = ".cleats.toml"
MARKS = (".git", CONFIGURATION)
"""What the root of a repository has; the first counts more."""
SLUG = 24
"""Characters of the folder's name that make an id readable."""


class Repository(Struct, frozen=True):
    """A folder whose files are indexed together."""

    root: Path
    """Without symbolic links: one repository has one id, however it was reached."""

    @property
    def slug(self) -> str:
        """The folder's name, as far as any file system can take it."""
        return re.sub(r"[^a-z0-9]+", "-", self.root.name.lower()).strip("-")[:SLUG] or "root"

    @property
    def id(self) -> str:
        """The slug, and what tells two folders of one name apart."""
        return f"{self.slug}-{hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]}"

    def shared_name(self, given: str) -> str:
        """What machines that have it in different places call it: what is given, or the slug."""
        return given or self.slug

    def refuse_too_much(self) -> None:
        """Refuse to index a whole machine, all that somebody has, or what git keeps for itself.

        A mark says that it is meant all the same.

        Raises:
            ToolError: INVALID_REQUEST, this is the root of the file system, a home folder or a
                bare repository.
        """
        root = self.root
        if any((root / mark).exists() for mark in MARKS):
            return
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path raises where there is none
        if root in {Path(root.anchor), home, home.resolve()}:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{root} is no repository, and too much to index.",
                hint="Name the folder of a project. If all of it is meant, make it a git "
                f"repository, or put an empty {CONFIGURATION} there.",
            )
        if _is_bare(root):
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{root} is a bare git repository, which has no files.",
                hint="Give a clone or a worktree of it.",
            )

    @classmethod
    def at(
        cls,
        path: str | None,
        default: Path,
        indexed: Callable[["Repository"], bool] = lambda _repository: False,
    ) -> "Repository":
        """The repository that a path names; that around `default` without one.

        It is the nearest folder upwards with a `.git`, else with a `.cleats.toml`, else the folder
        itself. A folder below the root that has an index of its own, while the root has none, is
        meant itself; `indexed` tells.

        Raises:
            ToolError: INVALID_REQUEST, there is no such folder, or it may not be entered.
        """
        folder = _folder(path, default)
        whole = cls(_root(folder))
        part = cls(folder)
        if path and whole != part and indexed(part) and not indexed(whole):
            return part
        return whole


def _folder(path: str | None, default: Path) -> Path:
    try:
        folder = (default / Path(path or ".").expanduser()).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise _not_found(path, default) from error
    if not folder.is_dir():
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{path} is a file.",
            hint=f"Give its folder: {folder.parent}.",
        )
    if not os.access(folder, os.X_OK):
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{folder} may not be entered.",
            hint="Allow it, or give another folder.",
        )
    return folder


def _not_found(path: str | None, default: Path) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"Repo path not found: {path or default}",
        hint=f"Give the path of a folder, absolute or from {default}.",
    )


def _is_bare(folder: Path) -> bool:
    """Whether git takes it for a repository without a worktree; it looks for the same three."""
    return (
        (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()
    )


def _root(folder: Path) -> Path:
    for mark in MARKS:
        for each in (folder, *folder.parents):
            if (each / mark).exists():
                return each
    return folder

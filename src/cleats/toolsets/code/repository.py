"""Resolution of a path to its repository, and the repository's name in the cache.

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

CONFIG_FILE_NAME = ".cleats.toml"
ROOT_MARKERS = (".git", CONFIG_FILE_NAME)
"""The entries that mark the root of a repository, in order of precedence."""
MAX_SLUG_CHARS = 24
"""The most characters of the folder's name in an id, which make it readable."""


class Repository(Struct, frozen=True):
    """A folder whose files are indexed together."""

    root: Path
    """The path without symbolic links, so that a repository has one id however it was reached."""

    @property
    def slug(self) -> str:
        """The folder's name, reduced to characters that every file system accepts."""
        return re.sub(r"[^a-z0-9]+", "-", self.root.name.lower()).strip("-")[:MAX_SLUG_CHARS] or "root"

    @property
    def id(self) -> str:
        """The slug with a hash that distinguishes folders of the same name."""
        return f"{self.slug}-{hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]}"

    def shared_name(self, configured_name: str) -> str:
        """Return the name shared by all machines: the configured one, or the slug."""
        return configured_name or self.slug

    @property
    def is_marked(self) -> bool:
        """True if the root has a marker, which shows that it is meant as a repository."""
        return any((self.root / marker).exists() for marker in ROOT_MARKERS)

    def reject_unsuitable_root(self) -> None:
        """Reject the root of the file system, a home folder, and a bare repository.

        A marker in the folder shows that indexing it is intended.

        Raises:
            ToolError: INVALID_REQUEST, the folder must not be indexed.
        """
        root = self.root
        if self.is_marked:
            return
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path raises where there is none
        if root in {Path(root.anchor), home, home.resolve()}:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{root} is not a repository, and it is too large to index.",
                hint=f"To index all of it, make it a git repository or add an empty {CONFIG_FILE_NAME}.",
            )
        # Git looks for the same three entries.
        if (root / "HEAD").is_file() and (root / "objects").is_dir() and (root / "refs").is_dir():
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{root} is a bare git repository, which has no files.",
                hint="Give a clone or a worktree of it.",
            )

    @classmethod
    def from_path(
        cls, path: str | None, default: Path, has_index: Callable[["Repository"], bool] = lambda _repository: False
    ) -> "Repository":
        """Return the repository of a path, or of `default` if there is no path.

        Its root is the nearest folder upwards with a `.git`, otherwise with a `.cleats.toml`,
        otherwise the folder itself. A folder below the root is a repository itself if it has an
        index and the root has none, according to `has_index`.

        Raises:
            ToolError: INVALID_REQUEST, the folder does not exist or cannot be entered.
        """
        folder = _resolve_folder(path, default)
        enclosing = cls(_find_root(folder))
        exact = cls(folder)
        if path and enclosing != exact and has_index(exact) and not has_index(enclosing):
            return exact
        return enclosing


def _resolve_folder(path: str | None, default: Path) -> Path:
    try:
        folder = (default / Path(path or ".").expanduser()).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        hint = f"Give the path of a folder, absolute or from {default}."
        raise ToolError(ErrorCode.INVALID_REQUEST, f"Repo path not found: {path or default}", hint=hint) from error
    if not folder.is_dir():
        raise ToolError(ErrorCode.INVALID_REQUEST, f"{path} is a file.", hint=f"Give its folder: {folder.parent}.")
    if not os.access(folder, os.X_OK):
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{folder} cannot be opened: permission denied.",
            hint="Change its permissions, or give another folder.",
        )
    return folder


def _find_root(folder: Path) -> Path:
    candidates = ((marker, candidate) for marker in ROOT_MARKERS for candidate in (folder, *folder.parents))
    return next((candidate for marker, candidate in candidates if (candidate / marker).exists()), folder)

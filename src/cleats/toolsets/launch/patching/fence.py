"""The fence around a worktree: the only way a run reads or changes the site.

A path is judged twice. As text: relative, POSIX, without tricks, and inside an allowed path
component by component, so that `docs` never admits `docs-old`. As it stands on the disk: every
folder on the way is opened from the one before it, never through a link, starting at a root that
was opened once; what is swapped between a look and a write is therefore not followed, and a
root that is not the folder of the beginning any more is refused.

Each file changes by a rename, so a reader or a killed writer sees the old bytes or the new ones.
"""

import os
import stat
import unicodedata
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from cleats.contract.errors import ErrorCode, ToolError

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)

PART = ".cleats-part"
"""Ends the name of a file that is being written. The name is fixed, so that a write which was
killed leaves at most a file that the same write replaces when it is tried again."""

_RESERVED = frozenset('<>:"|?*\\')
"""Signs that mean something else on some system that will check the site out."""

_VANISHED = "a folder vanished while it was written to"


class Fence:
    """Reads, writes and deletes files of one folder, inside its allowed paths only."""

    def __init__(self, root: Path, allowed: Sequence[str]) -> None:
        """Open the folder.

        An allowed path is a file or a folder; a folder may be written `path/` or `path/**`.

        Raises:
            ToolError: ALLOWED_PATHS_VIOLATION, when the root is no folder or an allowed path is
                not a path inside it; CAPABILITY_MISSING on a system without the means.
        """
        if os.open not in os.supports_dir_fd:
            # Without them every look could be outrun by a swap; a promise we cannot keep.
            raise ToolError(
                ErrorCode.CAPABILITY_MISSING, "This system cannot open files from a folder."
            )
        self._root = root
        self._allowed = tuple(_parts(entry.removesuffix("**")) for entry in allowed)
        try:
            self._fd = os.open(root, _FOLDER)
        except OSError:
            _refuse("the worktree is not a folder", "")
        weakref.finalize(self, os.close, self._fd)
        self._identity = _identity(os.fstat(self._fd))

    def check(self, path: str) -> str:
        """Return the path as it will be used.

        Raises:
            ToolError: ALLOWED_PATHS_VIOLATION, when it is not a plain path or not an allowed one.
        """
        parts = _parts(path)
        if not any(parts[: len(allowed)] == allowed for allowed in self._allowed):
            _refuse("the path is outside the allowed paths", path)
        return "/".join(parts)

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes, or None when there is no such file.

        Raises:
            ToolError: ALLOWED_PATHS_VIOLATION, also for a link or anything else that is no file.
        """
        *folders, name = self.check(path).split("/")
        with self._folder(folders, path) as folder:
            if folder is None or self._standing(folder, name, path) is None:
                return None
            try:
                file = os.open(name, _FILE, dir_fd=folder)
            except FileNotFoundError:
                return None
            except OSError:
                _refuse("the path leads through a link", path)
            with os.fdopen(file, "rb") as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    _refuse("the path is not a plain file", path)
                return stream.read()

    def write(self, path: str, data: bytes) -> None:
        """Put a file in place, whole; missing folders are made.

        Raises:
            ToolError: ALLOWED_PATHS_VIOLATION; nothing is written then.
        """
        *folders, name = self.check(path).split("/")
        with self._folder(folders, path, make=True) as folder:
            if folder is None:
                _refuse(_VANISHED, path)
            try:
                self._put(folder, folders, name, data, path)
            except FileNotFoundError:
                _refuse(_VANISHED, path)

    def _put(self, folder: int, folders: Sequence[str], name: str, data: bytes, path: str) -> None:
        standing = self._standing(folder, name, path)
        mode = 0o644 if standing is None else stat.S_IMODE(standing.st_mode)
        part = f".{name}{PART}"
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
        file = os.open(part, _NEW, mode, dir_fd=folder)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            self._same(folders, folder, path)
            os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise
        os.fsync(folder)

    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is no error.

        Raises:
            ToolError: ALLOWED_PATHS_VIOLATION; nothing is removed then.
        """
        *folders, name = self.check(path).split("/")
        with self._folder(folders, path) as folder:
            if folder is None or self._standing(folder, name, path) is None:
                return
            self._same(folders, folder, path)
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    @contextmanager
    def _folder(
        self, names: Sequence[str], path: str, *, make: bool = False
    ) -> Iterator[int | None]:
        """Open a folder below the root step by step; None when it does not exist."""
        self._rooted(path)
        here = os.dup(self._fd)
        try:
            for name in names:
                below = self._step(here, name, path, make=make)
                if below is None:
                    yield None
                    return
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)

    def _step(self, folder: int, name: str, path: str, *, make: bool) -> int | None:
        if not _listed(folder, name, path):
            if not make:
                return None
            with suppress(FileExistsError, FileNotFoundError):
                os.mkdir(name, 0o755, dir_fd=folder)
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError:
            _refuse("the path leads through a link or a file", path)

    def _standing(self, folder: int, name: str, path: str) -> os.stat_result | None:
        """Look at what stands at a name: nothing, or a plain file."""
        if not _listed(folder, name, path):
            return None
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            _refuse("the path is a link or not a plain file", path)
        return found

    def _same(self, names: Sequence[str], folder: int, path: str) -> None:
        """Make sure that a folder which was opened is still the one its name leads to."""
        with self._folder(names, path) as now:
            if now is None or _identity(os.fstat(now)) != _identity(os.fstat(folder)):
                _refuse("a folder was swapped while it was written to", path)

    def _rooted(self, path: str) -> None:
        try:
            now = _identity(self._root.lstat())
        except OSError:
            now = None
        if now != self._identity:
            _refuse("the worktree is not the folder that it was", path)


def _parts(path: str) -> tuple[str, ...]:
    """Split a relative POSIX path; one trailing slash is a folder's.

    The rules are those of every system at once: what one of them would read as another name is
    refused here on all of them.
    """
    parts = tuple(path.removesuffix("/").split("/"))
    for part in parts:
        if part in ("", ".", ".."):
            _refuse("the path is not a plain relative one", path)
        if not part.isprintable() or not _RESERVED.isdisjoint(part):
            _refuse("the path has a sign that is not portable", path)
        if part[-1] in ". " or part[0] == " ":
            _refuse("a name begins or ends with a space or a dot", path)
        if _folded(part) == ".git" or _folded(part).startswith("git~"):
            _refuse("the path is git's own", path)
        if len(part.encode(errors="surrogatepass")) > 200:  # leaves room for the part's name
            _refuse("a name is too long", path)
    return parts


def _folded(name: str) -> str:
    """Fold a name as the most forgiving file systems do: case, composition, invisible signs."""
    seen = "".join(sign for sign in name if unicodedata.category(sign) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())


def _listed(folder: int, name: str, path: str) -> bool:
    """Whether a folder has an entry of exactly this name; one that differs in case is refused."""
    names = os.listdir(folder)
    if name in names:
        return True
    wanted = _folded(name)
    if any(_folded(other) == wanted for other in names):
        _refuse("another file has this name in another case", path)
    return False


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _refuse(why: str, path: str) -> NoReturn:
    raise ToolError(
        ErrorCode.ALLOWED_PATHS_VIOLATION,
        f"{path!r}: {why}." if path else f"{why[0].upper()}{why[1:]}.",
        details={"path": path, "reason": why},
    )

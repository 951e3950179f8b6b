"""The guard of a worktree: the only way in which a run reads or changes the site.

A path is checked as text, component by component, so that `docs` never admits `docs-old`. Then each
folder on the way is opened from the one before it, never through a link, starting at a root that was
opened once: a folder that is swapped between a check and a write is not followed. Each file is
replaced by a rename, so a reader or a killed writer sees either the old bytes or the new ones.
"""

import hashlib
import os
import stat
import unicodedata
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import safe_paths
from cleats.system.safe_paths import get_identity
from cleats.toolsets.launch.git.client import IGNORE_DIRTY_SUBMODULES, HardenedGit

PARTIAL_FILE_SUFFIX = ".cleats-part"
"""Suffix of a file that is being written. The name is fixed, so that a killed write leaves at most
one file, which the same write replaces when it is retried."""

_UNPORTABLE_CHARACTERS = frozenset('<>:"|?*\\')
"""Characters with a special meaning on some system that may check out the site."""

_VANISHED_FOLDER_REASON = "a folder disappeared while it was written to"


class WorktreeGuard:
    """Reads, writes and deletes files of one folder, only inside its allowed paths."""

    def __init__(self, root: Path, allowed: Sequence[str]) -> None:
        """Open the folder.

        An allowed path is a file or a folder; a folder may be written `path/` or `path/**`.

        Raises:
            ToolError: ALLOWED_PATHS_VIOLATION when the root is not a folder or an allowed path is
                not inside it; CAPABILITY_MISSING on a system that cannot open files relative to a
                folder.
        """
        if not safe_paths.can_open_below():
            raise ToolError(ErrorCode.CAPABILITY_MISSING, "This system cannot open files from a folder.")
        self._root = root
        self._allowed_parts = tuple(_split_path(entry.removesuffix("**")) for entry in allowed)
        try:
            self._fd = os.open(root, safe_paths.FOLDER_FLAGS)
        except OSError:
            _raise_violation("the worktree is not a folder", "")
        weakref.finalize(self, os.close, self._fd)
        self._identity = get_identity(os.fstat(self._fd))

    def check_path(self, path: str) -> str:
        """Return the normalised path.

        Raises:
            ToolError: ALLOWED_PATHS_VIOLATION when the path is not plain or not allowed.
        """
        parts = _split_path(path)
        if not any(parts[: len(allowed)] == allowed for allowed in self._allowed_parts):
            _raise_violation("the path is outside the allowed paths", path)
        return "/".join(parts)

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file, or None when it does not exist.

        Raises:
            ToolError: ALLOWED_PATHS_VIOLATION, also for a link or anything else that is not a file.
        """
        *folders, name = self.check_path(path).split("/")
        with self._open_folder(folders, path) as folder:
            if folder is None or self._stat_file(folder, name, path) is None:
                return None
            try:
                stream = safe_paths.open_regular_file(name, folder=folder)
            except FileNotFoundError:
                return None
            except safe_paths.NotRegularFileError:
                _raise_violation("the path is not a regular file", path)
            except OSError:
                _raise_violation("the path leads through a link", path)
            with stream:
                return stream.read()

    def write(self, path: str, data: bytes) -> None:
        """Write a file atomically, and create missing folders.

        Raises:
            ToolError: ALLOWED_PATHS_VIOLATION; nothing is written then.
        """
        *folders, name = self.check_path(path).split("/")
        with self._open_folder(folders, path, make=True) as folder:
            if folder is None:
                _raise_violation(_VANISHED_FOLDER_REASON, path)
            try:
                self._replace_file(folder, folders, name, data, path)
            except FileNotFoundError:
                _raise_violation(_VANISHED_FOLDER_REASON, path)

    def _replace_file(self, folder: int, folders: Sequence[str], name: str, data: bytes, path: str) -> None:
        existing = self._stat_file(folder, name, path)
        mode = 0o644 if existing is None else stat.S_IMODE(existing.st_mode)
        partial_name = f".{name}{PARTIAL_FILE_SUFFIX}"
        with suppress(FileNotFoundError):
            os.unlink(partial_name, dir_fd=folder)
        file = os.open(partial_name, safe_paths.CREATE_FLAGS, mode, dir_fd=folder)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            self._verify_folder(folders, folder, path)
            os.rename(partial_name, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(partial_name, dir_fd=folder)
            raise
        os.fsync(folder)

    def delete(self, path: str) -> None:
        """Remove a file; a missing file is not an error.

        Raises:
            ToolError: ALLOWED_PATHS_VIOLATION; nothing is removed then.
        """
        *folders, name = self.check_path(path).split("/")
        with self._open_folder(folders, path) as folder:
            if folder is None or self._stat_file(folder, name, path) is None:
                return
            self._verify_folder(folders, folder, path)
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    @contextmanager
    def _open_folder(self, names: Sequence[str], path: str, *, make: bool = False) -> Iterator[int | None]:
        """Open a folder below the root step by step; yield None when it does not exist."""
        self._verify_root(path)
        with safe_paths.open_folder_below(self._fd, names, partial(self._open_child, path=path, make=make)) as folder:
            yield folder

    def _open_child(self, folder: int, name: str, *, path: str, make: bool) -> int | None:
        if not _has_entry(folder, name, path):
            if not make:
                return None
            with suppress(FileExistsError, FileNotFoundError):
                os.mkdir(name, 0o755, dir_fd=folder)
        try:
            return safe_paths.open_child_folder(folder, name)
        except FileNotFoundError:
            return None
        except OSError:
            _raise_violation("the path leads through a link or a file", path)

    def _stat_file(self, folder: int, name: str, path: str) -> os.stat_result | None:
        if not _has_entry(folder, name, path):
            return None
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            _raise_violation("the path is a link or not a plain file", path)
        return status

    def _verify_folder(self, names: Sequence[str], folder: int, path: str) -> None:
        """Verify that an open folder is still the one that its path leads to."""
        with self._open_folder(names, path) as current:
            if current is None or get_identity(os.fstat(current)) != get_identity(os.fstat(folder)):
                _raise_violation("a folder was swapped while it was written to", path)

    def _verify_root(self, path: str) -> None:
        try:
            current = get_identity(self._root.lstat())
        except OSError:
            current = None
        if current != self._identity:
            _raise_violation("the worktree was replaced by another folder", path)


def _split_path(path: str) -> tuple[str, ...]:
    """Split a relative POSIX path; one trailing slash marks a folder.

    The rules of all systems apply at once: a name that one of them would read as another name is
    rejected on all of them.
    """
    parts = tuple(path.removesuffix("/").split("/"))
    for part in parts:
        if part in ("", ".", ".."):
            _raise_violation("the path is not a plain relative path", path)
        if not part.isprintable() or not _UNPORTABLE_CHARACTERS.isdisjoint(part):
            _raise_violation("the path has a character that is not portable", path)
        if part[-1] in ". " or part[0] == " ":
            _raise_violation("a name begins or ends with a space or a dot", path)
        if _fold_name(part) == ".git" or _fold_name(part).startswith("git~"):
            _raise_violation("the path belongs to git", path)
        if len(part.encode(errors="surrogatepass")) > 200:  # leaves room for the suffix of a partial file
            _raise_violation("a name is too long", path)
    return parts


def _fold_name(name: str) -> str:
    """Fold a name as the most lenient file systems do: case, composition, invisible characters."""
    visible = "".join(character for character in name if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())


def _has_entry(folder: int, name: str, path: str) -> bool:
    """Return whether a folder has exactly this name; reject one that differs in case."""
    names = os.listdir(folder)
    if name in names:
        return True
    folded_name = _fold_name(name)
    if any(_fold_name(entry) == folded_name for entry in names):
        _raise_violation("another file has this name in another case", path)
    return False


def _raise_violation(reason: str, path: str) -> NoReturn:
    raise ToolError(
        ErrorCode.ALLOWED_PATHS_VIOLATION,
        f"{path!r}: {reason}." if path else f"{reason[0].upper()}{reason[1:]}.",
        details={"path": path, "reason": reason},
    )


_DIFF_NAME_OPTIONS = ("--name-only", "--no-renames", "-z", IGNORE_DIRTY_SUBMODULES)


async def list_changed_paths(site: Path, base_sha: str, env: Mapping[str, str]) -> list[str]:
    """Return the paths that differ from the base commit, with untracked but no ignored files."""
    git = HardenedGit(env, site)
    diff_output = await git.run("", "diff", *_DIFF_NAME_OPTIONS, base_sha, "--")
    untracked_output = await git.run("", "ls-files", "--others", "--exclude-standard", "-z")
    paths = {os.fsdecode(path) for path in (diff_output + untracked_output).split(b"\0") if path}
    return sorted(path for path in paths if not path.endswith(PARTIAL_FILE_SUFFIX))


async def hash_worktree(site: Path, base_sha: str, env: Mapping[str, str]) -> str:
    """Hash the paths and bytes of everything that differs from the base commit."""
    paths = await list_changed_paths(site, base_sha, env)
    return _hash_states(base_sha, ((path, _encode_state(site / path)) for path in paths))


def hash_contents(base_sha: str, files: Iterable[tuple[str, bytes | None]]) -> str:
    """Hash files that were already read, in the order of their paths; None is a missing file.

    The hash equals that of the worktree from which they were read, if it had no link.
    """
    return _hash_states(base_sha, ((path, _encode_content(data)) for path, data in files))


def _hash_states(base_sha: str, states: Iterable[tuple[str, bytes]]) -> str:
    total = hashlib.sha256(base_sha.encode())
    for path, state in states:
        total.update(b"\0" + os.fsencode(path) + b"\0" + state)
    return total.hexdigest()


def _encode_state(file: Path) -> bytes:
    if file.is_symlink():
        return b"link " + os.fsencode(file.readlink())
    return _encode_content(file.read_bytes() if file.is_file() else None)


def _encode_content(data: bytes | None) -> bytes:
    return b"gone" if data is None else b"file " + hashlib.sha256(data).digest()

"""Download folders: in the cache or in the repository, and nowhere else."""

import errno
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.atomic_files import FileLock, try_exclusive_lock
from cleats.system.safe_paths import resolve_path
from cleats.toolsets.code.index.generations import REPOSITORIES_FOLDER

LOCK_FILENAME: Final = ".lock"
LOCK_POLL_SECONDS: Final = 0.1
"""Seconds between two attempts to lock a folder that another download holds."""

_GIT_FOLDER: Final = ".git"
_CODES_BY_ERRNO: Final = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), ErrorCode.FORBIDDEN),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), ErrorCode.INTERNAL),
}


@dataclass(frozen=True, slots=True)
class DownloadFolders:
    """The two folders below which downloads may be stored."""

    cache: Path
    repository: Path

    def resolve_folder(self, path: str | None, default_name: str) -> Path:
        """Return the folder that a caller names; without a path, `default_name` in the cache.

        Raises:
            ToolError: FORBIDDEN outside of both, in git's own folder, or among the indexes.
        """
        if path is None:
            return self.cache.resolve() / default_name
        folder = self.resolve_path(path)
        cache = self.cache.resolve()
        if folder.is_relative_to(cache):
            if folder.relative_to(cache).parts[:1] != (REPOSITORIES_FOLDER,):
                return folder
            raise _forbidden_folder_error(path, "contains the indexes")
        if not folder.is_relative_to(self.repository):
            raise _forbidden_folder_error(path, "is neither in the cache nor in the repository")
        if _GIT_FOLDER in (part.lower() for part in folder.relative_to(self.repository).parts):
            raise _forbidden_folder_error(path, "is in git's own folder")
        return folder

    def resolve_path(self, path: str) -> Path:
        """Resolve a path, following every link.

        Raises:
            ToolError: INVALID_REQUEST.
        """
        try:
            return resolve_path(self.repository, path, expands_home=True)
        except ValueError:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{path!r} is not a valid path.",
                hint="Give the path of a folder, absolute or from the root of the repository.",
            ) from None


@asynccontextmanager
async def lock_folder(folder: Path) -> AsyncIterator[None]:
    """Create a folder and lock it exclusively, waiting for other downloads into it.

    Raises:
        ToolError: it cannot be written.
    """
    with _wrap_os_errors(folder):
        while (lock := _try_lock(folder)) is None:  # noqa: ASYNC110
            await anyio.sleep(LOCK_POLL_SECONDS)  # another process holds it and cannot set an event
        try:
            yield
        finally:
            with suppress(OSError):  # before the release: a process that misses it creates another
                (folder / LOCK_FILENAME).unlink()
            lock.release()


def _try_lock(folder: Path) -> FileLock | None:
    folder.mkdir(parents=True, exist_ok=True)
    return try_exclusive_lock(folder / LOCK_FILENAME)


@contextmanager
def _wrap_os_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        code = _CODES_BY_ERRNO.get(error.errno or 0, ErrorCode.INVALID_REQUEST)
        raise ToolError(
            code,
            f"{folder} cannot be written: {error.strerror or error}.",
            hint="Name another folder, or set CLEATS_CACHE_DIR to a folder with free space.",
            retryable=code is ErrorCode.INTERNAL,
        ) from error


def _forbidden_folder_error(path: str, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.FORBIDDEN,
        f"{path!r} {reason}.",
        hint="Omit it, or name a folder in the cache or in the repository.",
    )

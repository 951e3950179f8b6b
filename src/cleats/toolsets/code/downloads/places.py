"""Where downloads are put: in the cache, or in the repository, and nowhere else."""

import errno
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.pathnames import usable
from cleats.toolsets.code.store.cache import REPOSITORIES
from cleats.toolsets.code.store.locks import Lock, claim

LOCK: Final = ".lock"
PATIENCE: Final = 0.1
"""Seconds between two looks at a folder that another download holds."""

_PRIVATE: Final = ".git"
_FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class Places:
    """The two folders that downloads may be put below."""

    cache: Path
    repository: Path

    def folder(self, given: str | None, usual: str) -> Path:
        """The folder that a caller names, from the repository; without one, `usual` in the cache.

        Raises:
            ToolError: FORBIDDEN outside of both, in git's own folder, or among the indexes.
        """
        if given is None:
            return self.cache.resolve() / usual
        place = self.resolved(given)
        cache = self.cache.resolve()
        if place.is_relative_to(cache):
            if place.relative_to(cache).parts[:1] != (REPOSITORIES,):
                return place
            raise _refused(given, "is where the indexes are")
        if not place.is_relative_to(self.repository):
            raise _refused(given, "is neither in the cache nor in the repository")
        if _PRIVATE in (part.lower() for part in place.relative_to(self.repository).parts):
            raise _refused(given, "is in git's own folder")
        return place

    def resolved(self, given: str) -> Path:
        """Where a path leads, through every link.

        Raises:
            ToolError: INVALID_REQUEST.
        """
        try:
            return (self.repository / Path(usable(given)).expanduser()).resolve()
        except (OSError, ValueError, RuntimeError):
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{given!r} is no usable path.",
                hint="Give the path of a folder, absolute or from the root of the repository.",
            ) from None


@asynccontextmanager
async def held(folder: Path) -> AsyncIterator[None]:
    """Make a folder and have it alone; another download in it is waited for.

    Raises:
        ToolError: it cannot be written.
    """
    with _explained(folder):
        while (lock := await _claimed(folder)) is None:  # noqa: ASYNC110
            await anyio.sleep(PATIENCE)  # for another process, which sets no event
        try:
            yield
        finally:
            with suppress(OSError):  # first: who finds it gone makes another
                (folder / LOCK).unlink()
            lock.release()


async def _claimed(folder: Path) -> Lock | None:
    attempt = _Attempt(folder)
    try:
        return await to_thread.run_sync(attempt.make)
    except BaseException:
        attempt.leave()
        raise


class _Attempt:
    """A claim that a thread makes, and that nobody holds when its caller has left meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: Lock | None = None
        self._left = False
        self._deciding = threading.Lock()

    def make(self) -> Lock | None:
        self._folder.mkdir(parents=True, exist_ok=True)
        made = claim(self._folder / LOCK)
        with self._deciding:
            self._made = made
            left = self._left
        if left:
            self.leave()
        return made

    def leave(self) -> None:
        with self._deciding:
            self._left = True
            made = self._made
        if made is not None:
            made.release()


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        code = ErrorCode.INVALID_REQUEST
        if error.errno in _FORBIDDEN:
            code = ErrorCode.FORBIDDEN
        elif error.errno in _FULL:
            code = ErrorCode.INTERNAL
        raise ToolError(
            code,
            f"{folder} cannot be written: {error.strerror or error}.",
            hint="Name another folder, or set CLEATS_CACHE_DIR to a place with room.",
            retryable=error.errno in _FULL,
        ) from error


def _refused(given: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.FORBIDDEN,
        f"{given!r} {why}.",
        hint="Leave it out, or name a folder in the cache or in the repository.",
    )

"""All the indexes in a cache folder: what is there, and how it goes away.

Laws:

- Only what this program made is ever removed: a folder below `repos` with the name of an
  index and generations in it, and in that folder only names that are ours.
- An index that a reader or a builder holds stays whole.
- The pointer goes first, so that half of an index is never taken for one.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from cleats.toolsets.code.store.generations import BUILDING, DEAD, LOCK, ROOT
from cleats.toolsets.code.store.locks import Lock, claim

REPOSITORIES: Final = "repos"
GENERATIONS: Final = "generations"
BACKUPS: Final = "backups"
POINTER: Final = "current"
BUILDER: Final = "build.lock"

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*-[0-9a-f]{12}")
_NAME = re.compile(r"\d+-[0-9a-f]{8}")

Reason = Literal["old", "unfinished", "backup"]


class HeldError(Exception):
    """Somebody reads or builds it, or it may not be touched."""


class Piece(NamedTuple):
    """Something in an index that nobody needs any more."""

    path: Path
    reason: Reason


@dataclass(frozen=True, slots=True)
class Stored:
    """The index of one repository, as it lies in the cache."""

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def root(self) -> Path | None:
        """The folder that it is an index of, if that was noted."""
        try:
            return Path(os.fsdecode((self.folder / ROOT).read_bytes()))
        except OSError:
            return None

    @property
    def generation(self) -> str | None:
        """The name of the published generation."""
        try:
            name = (self.folder / POINTER).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return None
        return name if _NAME.fullmatch(name) else None

    @property
    def published(self) -> float:
        """When the last generation was published, in seconds since 1970."""
        for name in (POINTER, GENERATIONS):
            with suppress(OSError):
                return (self.folder / name).stat().st_mtime
        return 0.0

    def pieces(self) -> list[Piece]:
        """What lies beside the published generation, the oldest first."""
        current = self.generation
        found = [
            *map(_judged, _entries(self.folder / GENERATIONS)),
            *(Piece(path, "backup") for path in _entries(self.folder / BACKUPS)),
        ]
        return [piece for piece in found if piece is not None and piece.path.name != current]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep builders away.

        Raises:
            HeldError: there is one.
        """
        lock = _claimed(self.folder / BUILDER, "it is being built")
        try:
            yield
        finally:
            lock.release()

    def busy(self, piece: Piece | None = None) -> str:
        """Why it, or a piece of it, cannot be removed now; empty when it can."""
        inner = [piece.path] if piece else self._published()
        try:
            with self.held(), _unread(inner):
                return ""
        except HeldError as error:
            return str(error)

    def _published(self) -> list[Path]:
        inner = _entries(self.folder / GENERATIONS)
        return [path for path in inner if _NAME.fullmatch(path.name)]

    def remove_piece(self, piece: Piece) -> None:
        """Remove one of the pieces. Only while it is held.

        Raises:
            HeldError: somebody reads it.
            OSError: it cannot be removed.
        """
        if piece.reason != "old":
            shutil.rmtree(piece.path)
            return
        with _unread([piece.path]):
            _bury(piece.path)

    def remove(self) -> None:
        """Remove all of it. Only while it is held.

        Raises:
            HeldError: somebody reads it.
            OSError: it cannot be removed; then there is no index any more, but a rest.
        """
        generations = self._published()
        with _unread(generations):
            (self.folder / POINTER).unlink(missing_ok=True)
            for path in generations:
                _bury(path)
        for piece in self.pieces():
            shutil.rmtree(piece.path)
        for name in (GENERATIONS, BACKUPS):
            with suppress(FileNotFoundError):
                (self.folder / name).rmdir()
        (self.folder / ROOT).unlink(missing_ok=True)
        if [path.name for path in _entries(self.folder)] == [BUILDER]:
            (self.folder / BUILDER).unlink()
            self.folder.rmdir()


def stored(cache_dir: Path) -> list[Stored]:
    """Every index in a cache, the one that was published longest ago first."""
    folders = _entries(cache_dir / REPOSITORIES)
    found = [Stored(folder) for folder in folders if is_ours(folder)]
    return sorted(found, key=lambda each: (each.published, each.id))


def is_ours(folder: Path) -> bool:
    """Whether a folder is an index that this program made."""
    return (
        bool(_ID.fullmatch(folder.name))
        and not folder.is_symlink()
        and (folder / GENERATIONS).is_dir()
        and not (folder / GENERATIONS).is_symlink()
    )


@dataclass
class Space:
    """How much removing things frees: generations share files, which go with the last of them."""

    _left: dict[tuple[int, int], int] = field(default_factory=dict)

    def freed(self, *folders: Path) -> int:
        """What also removing these would free, after all that was asked about before."""
        total = 0
        for status in _statuses(folders):
            key = status.st_dev, status.st_ino
            self._left[key] = self._left.get(key, status.st_nlink) - 1
            total += 0 if self._left[key] else status.st_size
        return total


def used(*folders: Path) -> int:
    """Bytes of the files below folders; a file with several names counts once."""
    return sum({(s.st_dev, s.st_ino): s.st_size for s in _statuses(folders)}.values())


def _statuses(folders: Iterable[Path]) -> Iterator[os.stat_result]:
    for folder in folders:
        for current, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):  # it was removed just now
                    yield Path(current, name).lstat()


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _judged(path: Path) -> Piece | None:
    if path.is_symlink() or not path.is_dir():
        return None
    if path.name.startswith((BUILDING, DEAD)):
        return Piece(path, "unfinished")
    return Piece(path, "old") if _NAME.fullmatch(path.name) else None


@contextmanager
def _unread(generations: Iterable[Path]) -> Iterator[None]:
    """Keep readers away from generations; they wait, and then see that it is gone."""
    with ExitStack() as locks:
        for path in generations:
            if not (path / LOCK).exists():
                continue  # nobody can read it
            locks.callback(_claimed(path / LOCK, "it is being read").release)
        yield


def _claimed(path: Path, why_not: str) -> Lock:
    try:
        lock = claim(path)
    except OSError as error:  # it is gone already, or somebody else's
        raise HeldError(error.strerror or str(error)) from None
    if lock is None:
        raise HeldError(why_not)
    return lock


def _bury(generation: Path) -> None:
    dead = generation.with_name(DEAD + generation.name)
    generation.rename(dead)  # first, so that half a generation never has a good name
    shutil.rmtree(dead)

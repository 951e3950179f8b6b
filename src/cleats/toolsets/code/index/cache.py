"""All the indexes in a cache folder: listing and removing them.

Rules:

- Only folders that this program made are ever removed: a folder below `repos` whose name is that of
  an index and that holds generations, and in that folder only names that belong to an index.
- An index that a reader or a builder holds is not touched.
- The pointer is removed first, so that half of an index is never taken for a complete one.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from cleats.system.atomic_files import FileLock, try_exclusive_lock
from cleats.toolsets.code.index.generations import (
    BUILD_LOCK_FILE_NAME,
    BUILDING_PREFIX,
    DEAD_PREFIX,
    GENERATION_NAME_PATTERN,
    GENERATIONS_FOLDER,
    LOCK_FILE_NAME,
    PARSED_FOLDER,
    POINTER_FILE_NAME,
    REPOSITORIES_FOLDER,
    ROOT_FILE_NAME,
    bury_generation,
    read_current_name,
)

BACKUPS_FOLDER: Final = "backups"

_INDEX_ID_PATTERN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*-[0-9a-f]{12}")

LeftoverReason = Literal["old", "unfinished", "backup"]


class IndexInUseError(Exception):
    """The index is being read or built, or may not be touched."""


class IndexLeftover(NamedTuple):
    """A folder in an index that is no longer needed."""

    path: Path
    reason: LeftoverReason


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """The index of one repository, as stored in the cache."""

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def root(self) -> Path | None:
        """The folder that was indexed, if the index records it."""
        try:
            return Path(os.fsdecode((self.folder / ROOT_FILE_NAME).read_bytes()))
        except OSError:
            return None

    @property
    def generation(self) -> str | None:
        """The name of the published generation."""
        return read_current_name(self.folder)

    @property
    def published_at(self) -> float:
        """The time when the last generation was published, in seconds since 1970."""
        for name in (POINTER_FILE_NAME, GENERATIONS_FOLDER):
            with suppress(OSError):
                return (self.folder / name).stat().st_mtime
        return 0.0

    def list_leftovers(self) -> list[IndexLeftover]:
        """List the folders beside the published generation, oldest first."""
        current = self.generation
        leftovers = [
            *map(_classify_entry, _list_entries(self.folder / GENERATIONS_FOLDER)),
            *(IndexLeftover(path, "backup") for path in _list_entries(self.folder / BACKUPS_FOLDER)),
            *([IndexLeftover(parsed, "unfinished")] if (parsed := self.folder / PARSED_FOLDER).is_dir() else []),
        ]
        return [leftover for leftover in leftovers if leftover is not None and leftover.path.name != current]

    @contextmanager
    def hold_build_lock(self) -> Iterator[None]:
        """Hold the build lock of the index for the length of a block.

        Raises:
            IndexInUseError: the index is being built.
        """
        lock = _lock_or_raise(self.folder / BUILD_LOCK_FILE_NAME, "it is being built")
        try:
            yield
        finally:
            lock.release()

    def explain_busy(self, leftover: IndexLeftover | None = None) -> str:
        """Explain why the index, or a leftover, cannot be removed now; empty when it can."""
        folders = [leftover.path] if leftover else self._list_generations()
        try:
            with self.hold_build_lock(), _lock_out_readers(folders):
                return ""
        except IndexInUseError as error:
            return str(error)

    def _list_generations(self) -> list[Path]:
        entries = _list_entries(self.folder / GENERATIONS_FOLDER)
        return [path for path in entries if GENERATION_NAME_PATTERN.fullmatch(path.name)]

    def remove_leftover(self, leftover: IndexLeftover) -> None:
        """Remove one of the leftovers. The caller must hold the build lock.

        Raises:
            IndexInUseError: the leftover is being read.
            OSError: it cannot be removed.
        """
        if leftover.reason != "old":
            shutil.rmtree(leftover.path)
            return
        with _lock_out_readers([leftover.path]):
            shutil.rmtree(bury_generation(leftover.path))

    def remove(self) -> None:
        """Remove the whole index. The caller must hold the build lock.

        Raises:
            IndexInUseError: a generation is being read.
            OSError: a folder cannot be removed; the index is gone, but files of it remain.
        """
        generations = self._list_generations()
        with _lock_out_readers(generations):
            (self.folder / POINTER_FILE_NAME).unlink(missing_ok=True)
            for path in generations:
                shutil.rmtree(bury_generation(path))
        for leftover in self.list_leftovers():
            shutil.rmtree(leftover.path)
        for name in (GENERATIONS_FOLDER, BACKUPS_FOLDER):
            with suppress(FileNotFoundError):
                (self.folder / name).rmdir()
        (self.folder / ROOT_FILE_NAME).unlink(missing_ok=True)
        if [path.name for path in _list_entries(self.folder)] == [BUILD_LOCK_FILE_NAME]:
            (self.folder / BUILD_LOCK_FILE_NAME).unlink()
            self.folder.rmdir()


def list_indexes(cache_dir: Path) -> list[StoredIndex]:
    """List every index in a cache, the least recently published first."""
    folders = _list_entries(cache_dir / REPOSITORIES_FOLDER)
    indexes = [StoredIndex(folder) for folder in folders if is_index_folder(folder)]
    return sorted(indexes, key=lambda index: (index.published_at, index.id))


def is_index_folder(folder: Path) -> bool:
    """Return whether a folder is an index that this program made."""
    folders = (folder, folder / GENERATIONS_FOLDER)
    return bool(_INDEX_ID_PATTERN.fullmatch(folder.name)) and all(p.is_dir() and not p.is_symlink() for p in folders)


@dataclass
class FreedSpace:
    """The bytes that removals free; files that generations share go with the last of them."""

    _remaining_links: dict[tuple[int, int], int] = field(default_factory=dict)

    def add_folders(self, *folders: Path) -> int:
        """Count the removal of folders; return the bytes it frees on top of earlier removals."""
        total = 0
        for status in _stat_files(folders):
            key = status.st_dev, status.st_ino
            self._remaining_links[key] = self._remaining_links.get(key, status.st_nlink) - 1
            total += 0 if self._remaining_links[key] else status.st_size
        return total


def measure_disk_usage(*folders: Path) -> int:
    """Return the bytes of the files below folders; a file with several names counts once."""
    return sum({(status.st_dev, status.st_ino): status.st_size for status in _stat_files(folders)}.values())


def _stat_files(folders: Iterable[Path]) -> Iterator[os.stat_result]:
    for folder in folders:
        for current, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):  # it was removed just now
                    yield Path(current, name).lstat()


def _list_entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _classify_entry(path: Path) -> IndexLeftover | None:
    if path.is_symlink() or not path.is_dir():
        return None
    if path.name.startswith((BUILDING_PREFIX, DEAD_PREFIX)):
        return IndexLeftover(path, "unfinished")
    return IndexLeftover(path, "old") if GENERATION_NAME_PATTERN.fullmatch(path.name) else None


@contextmanager
def _lock_out_readers(generations: Iterable[Path]) -> Iterator[None]:
    """Lock readers out of generations; they wait, and then find the generation gone."""
    with ExitStack() as locks:
        for path in generations:
            if not (path / LOCK_FILE_NAME).exists():
                continue  # nobody can read it
            locks.callback(_lock_or_raise(path / LOCK_FILE_NAME, "it is being read").release)
        yield


def _lock_or_raise(path: Path, reason: str) -> FileLock:
    try:
        lock = try_exclusive_lock(path)
    except OSError as error:  # it is gone already, or somebody else's
        raise IndexInUseError(error.strerror or str(error)) from None
    if lock is None:
        raise IndexInUseError(reason)
    return lock

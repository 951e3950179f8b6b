"""The files that differ from an index: edited, new or removed since it was built."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleats.toolsets.code.discovery.content import classify_name
from cleats.toolsets.code.explore.ripgrep import list_files
from cleats.toolsets.code.index import catalogue_schema
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.catalogue_schema import UNCERTAIN_MTIME_NS
from cleats.toolsets.code.records.archive import VIRTUAL_FOLDER
from cleats.toolsets.code.repository import Repository

_SELECT_FILES_SQL: Final = "SELECT path, size, mtime_ns FROM files UNION ALL SELECT path, size, mtime_ns FROM skipped"

MAX_CHANGED_FILES: Final = 300
"""Changed files that are read for an answer; more of them need a build first."""


LONGEST_BUILD_NS: Final = 600 * 10**9
"""Nanoseconds before the end of a build in which a file may have come too late for it."""


class _IndexedFiles(Struct):
    """What an index knows of its files, and what was last seen beside them."""

    generation: Path
    built_ns: int
    """When the index was written, in nanoseconds."""
    known: dict[str, tuple[int, int]]
    folders: dict[str, int]
    new_paths: list[str]


class ChangedFiles:
    """Finds changed files by one stat for each file; a changed folder is listed again."""

    def __init__(self) -> None:
        self._indexed: dict[str, _IndexedFiles] = {}
        self._lock = threading.Lock()

    def find(self, repository: Repository, generation: Path) -> list[str]:
        """Return the paths of changed, new and removed files, relative and sorted."""
        with self._lock:
            indexed = self._indexed.get(repository.id)
            if indexed is None or indexed.generation != generation:
                indexed = self._indexed[repository.id] = _read_index(generation)
            root = os.fspath(repository.root)
            changed = [path for path, seen in indexed.known.items() if _has_changed(root, path, seen, indexed.built_ns)]
            if any(_read_mtime(root, folder) != mtime for folder, mtime in indexed.folders.items()):
                indexed.folders = _collect_folders(root, indexed.known)
                listed = [path for path in list_files(repository.root) if path not in indexed.known]
                indexed.new_paths = [path for path in listed if _is_new(root, path, indexed.built_ns)]
            new_paths = [path for path in indexed.new_paths if _read_status(root, path) is not None]
        return sorted([*changed, *new_paths])[:MAX_CHANGED_FILES]


def _read_index(generation: Path) -> _IndexedFiles:
    catalogue_path = generation / catalogue_schema.CATALOGUE_FILE_NAME
    with IndexCatalogue.open(catalogue_path) as catalogue:
        known = {path: (size, mtime_ns) for path, size, mtime_ns in catalogue.connection.execute(_SELECT_FILES_SQL)}
    known = {path: seen for path, seen in known.items() if not path.startswith(f"{VIRTUAL_FOLDER}/")}
    return _IndexedFiles(generation, catalogue_path.stat().st_mtime_ns, known, {"": -1}, [])


def _is_new(root: str, path: str, built_ns: int) -> bool:
    """Return whether a file came after the index; one that was there before is left out of it, such as an image."""
    try:
        status = os.lstat(f"{root}/{path}")
    except (OSError, ValueError):
        return False
    return status.st_ctime_ns > built_ns - LONGEST_BUILD_NS and not classify_name(path).reason


def _has_changed(root: str, path: str, seen: tuple[int, int], built_ns: int) -> bool:
    status = _read_status(root, path)
    if status is None or seen[1] != UNCERTAIN_MTIME_NS:
        return status != seen
    # The file was written while it was read. Whatever came after the index is a change.
    return status[0] != seen[0] or status[1] > built_ns


def _read_status(root: str, path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(f"{root}/{path}")
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def _read_mtime(root: str, folder: str) -> int:
    try:
        return os.stat(f"{root}/{folder}").st_mtime_ns  # noqa: PTH116 - a Path for every folder is dear
    except OSError:
        return 0


def _collect_folders(root: str, known: Mapping[str, object]) -> dict[str, int]:
    folders = {""}
    for path in known:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return {folder: _read_mtime(root, folder) for folder in folders}

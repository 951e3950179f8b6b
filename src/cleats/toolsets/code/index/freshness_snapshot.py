"""What a full check of an index saw, and whether anything of it has changed since.

Where the system reports changes of folders by itself, files are looked at only after a report.
"""

import os
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from cleats.system.folder_watch import FolderWatch
from cleats.toolsets.code.analysis.history.head import GitHead, read_head
from cleats.toolsets.code.discovery.files import DiscoveredFile
from cleats.toolsets.code.index.catalogue_schema import UNCERTAIN_MTIME_NS
from cleats.toolsets.code.index.changes import FileSurvey

FULL_CHECK_SECONDS: Final = 60.0
"""Seconds after which a check is a full one again."""


class FreshnessSnapshot(Struct, frozen=True):
    """The state of a folder that a full check saw."""

    files: list[DiscoveredFile]
    head: GitHead | None
    """None where git does not count."""
    folders: dict[str, int]
    """The modification time of each folder; `UNCERTAIN_MTIME_NS` if it changed during the check."""
    taken_at: float = field(default_factory=time.monotonic)

    @classmethod
    def from_survey(cls, root: Path, survey: FileSurvey, started_ns: int) -> "FreshnessSnapshot":
        """Take a snapshot of a survey that started at a time, in nanoseconds."""
        paths = _collect_folders(root, survey.discovery.files).union(survey.watched_folders)
        folders = {folder: _read_mtime(folder) for folder in paths}
        mtimes = {
            folder: mtime_ns if mtime_ns < started_ns else UNCERTAIN_MTIME_NS for folder, mtime_ns in folders.items()
        }
        return cls(survey.discovery.files, survey.head, mtimes)

    @property
    def is_recent(self) -> bool:
        """True if the next check need not be a full one."""
        return time.monotonic() - self.taken_at < FULL_CHECK_SECONDS

    def has_moved_head(self, root: Path) -> bool:
        """Return whether another commit or branch is checked out."""
        return self.head is not None and read_head(root) != self.head

    def list_linked_files(self) -> list[DiscoveredFile] | None:
        """Look at every folder and file; return the files with several hard links, or None if anything has changed."""
        if _have_folders_changed(self.folders):
            return None
        linked_files = []
        for file in self.files:
            status = _read_unchanged_status(file)
            if status is None:
                return None
            if status.st_nlink > 1:
                linked_files.append(file)
        return linked_files


class SnapshotWatch:
    """Tells whether anything in a snapshot has changed. Safe for several threads.

    The system is asked to report changes of the folders; then all files are looked at once, and again after a report.
    """

    def __init__(self, snapshot: FreshnessSnapshot) -> None:
        self.snapshot = snapshot
        self._lock = threading.Lock()
        self._watch: FolderWatch | None = None
        self._is_new = True
        self._quiet_state: tuple[int, list[DiscoveredFile]] | None = None
        """The inode of the root and the files that are looked at in any case, if nothing had changed."""

    def has_changed(self, root: Path) -> bool:
        """Return whether anything in the snapshot has changed."""
        if self.snapshot.has_moved_head(root):
            return True
        with self._lock:
            if self._is_new:
                self._is_new = False
                self._watch = FolderWatch.open(self.snapshot.folders)
            was_reported = self._watch is None or self._watch.read_events()
            if was_reported or not self._is_quiet(root):
                inode = _read_inode(root)
                linked_files = self.snapshot.list_linked_files()
                self._quiet_state = None if linked_files is None else (inode, linked_files)
            return self._quiet_state is None

    def _is_quiet(self, root: Path) -> bool:
        if self._quiet_state is None or self._watch is None:
            return False
        inode, linked_files = self._quiet_state
        missing_folders = {folder: self.snapshot.folders[folder] for folder in self._watch.missing_folders}
        return (
            inode == _read_inode(root)  # a folder above the root may have been moved
            and not _have_folders_changed(missing_folders)
            and None not in map(_read_unchanged_status, linked_files)
        )


def _collect_folders(root: Path, files: Iterable[DiscoveredFile]) -> set[str]:
    """Return the folders with files in them, and their parents up to the root."""
    top = os.fspath(root)
    folders = {top}
    for file in files:
        folder = os.path.dirname(file.fs_path)  # noqa: PTH120 - a Path for every file is dear
        while folder not in folders and len(folder) > len(top):
            folders.add(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120
    return folders


def _have_folders_changed(mtimes: Mapping[str, int]) -> bool:
    return any(_read_mtime(folder) != mtime_ns for folder, mtime_ns in mtimes.items())


def _read_inode(root: Path) -> int:
    try:
        return root.stat().st_ino
    except OSError:
        return 0


def _read_mtime(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - a Path for every file is dear
    except OSError:
        return 0


def _read_unchanged_status(file: DiscoveredFile) -> os.stat_result | None:
    """Return the status of a file as the system has it now; None if the file has changed or is gone."""
    try:
        status = os.lstat(file.fs_path)
    except OSError:
        return None
    is_unchanged = (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns)
    return status if is_unchanged else None

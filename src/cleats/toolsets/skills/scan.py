"""Incremental scanning of a source: walked once, then checked for changes.

Each folder remembers its content and its modification time. A later scan asks the kernel for one time per folder and
one per skill, and reads again only what changed. A time so recent that a second change could have the same one is not
trusted.

A skill may contain others: those are folders directly in its own, except for the usual names of bundled material, which
may well hold the template of a skill.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from cleats.toolsets.skills.skill import (
    DISABLED_FILE_NAME,
    FRESH_NANOSECONDS,
    SKILL_FILE_NAME,
    BrokenSkill,
    Skill,
    SkillLocation,
    SkillProblem,
    SkillSource,
    is_recently_written,
    read_skill,
)

MAX_FOLDER_DEPTH = 6
"""The maximum depth of folders below a source. Skills are one to three levels deep."""

MAX_SCANNED_FOLDERS = 20_000
"""The maximum number of folders without a skill that are scanned below a source; more is probably a whole disk."""

BUNDLED_FOLDERS = frozenset({"assets", "examples", "references", "resources", "scripts", "templates", "tests"})
"""Folders in a skill that hold its material."""

SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules"})

ScanResult: TypeAlias = Skill | BrokenSkill
FolderIdentity: TypeAlias = tuple[int, int]

_ABSENT_ERRORS = (FileNotFoundError, NotADirectoryError)
_SKILL_FILE_NAMES = (SKILL_FILE_NAME, SKILL_FILE_NAME.lower(), DISABLED_FILE_NAME)
"""The file names that a skill may have, the correct one first."""


@dataclass(slots=True)
class _ScannedFolder:
    """A folder with its content at the last scan."""

    identity: FolderIdentity
    modified_ns: int
    """The modification time of the listing; -1 if it has to be listed again."""
    file: str | None
    folders: list[str]
    result: ScanResult | None = None
    """The skill that the folder is."""


class SkillTree:
    """The skills of one source. `scan` updates it and returns whether anything changed."""

    def __init__(self, source: SkillSource) -> None:
        self.source = source
        self.problems: list[SkillProblem] = []
        self._folders: dict[str, _ScannedFolder] = {}
        self._known_folders: dict[str, _ScannedFolder] = {}
        self._folder_count = 0
        self._has_changed = False

    @property
    def exists(self) -> bool:
        return bool(self._folders)

    def iter_results(self) -> Iterator[ScanResult]:
        """Yield every skill and broken skill, in no particular order."""
        return (folder.result for folder in self._folders.values() if folder.result is not None)

    def scan(self) -> bool:
        """Scan for changes since the last time."""
        known_problems, self.problems = self.problems, []
        self._known_folders, self._folders = self._folders, {}
        self._folder_count, self._has_changed = 0, False
        try:
            status = os.stat(self.source.path)
        except OSError as error:
            if self.source.expected or not isinstance(error, _ABSENT_ERRORS):
                self._report_unreadable(self.source.path, error)
        else:
            self._scan_folder(self.source.path, (), status, ())
        has_same_folders = self._known_folders.keys() == self._folders.keys()
        return self._has_changed or not has_same_folders or known_problems != self.problems

    def _scan_folder(
        self, path: str, parts: tuple[str, ...], status: os.stat_result, ancestors: tuple[FolderIdentity, ...]
    ) -> None:
        identity = (status.st_dev, status.st_ino)
        if identity in ancestors:  # a link to a parent folder would be followed for ever
            return
        known = self._known_folders.get(path)
        if known is not None and known.identity == identity and known.modified_ns == status.st_mtime_ns:
            folder = known
        else:
            folder = self._list_folder(path, identity, status)
        before = known.result if known is not None else None
        is_same_file = known is not None and (known.identity, known.file) == (identity, folder.file)
        folder.result = self._check_skill(path, parts, folder, before if is_same_file else None)
        if folder.result is None and not self._has_folder_budget():
            return
        self._has_changed |= folder.result != before
        self._folders[path] = folder
        if len(ancestors) > MAX_FOLDER_DEPTH:
            return
        skipped = BUNDLED_FOLDERS if folder.result is not None and parts else ()
        for name in folder.folders:
            if name not in skipped:
                child_path = f"{path}/{name}"
                try:
                    child_status = os.stat(child_path)
                except OSError:
                    continue
                self._scan_folder(child_path, (*parts, name), child_status, (*ancestors, identity))

    def _list_folder(self, path: str, identity: FolderIdentity, status: os.stat_result) -> _ScannedFolder:
        listed_at = time.time_ns()
        try:
            with os.scandir(path) as entries:
                is_folder_by_name = {entry.name: _is_folder(entry) for entry in entries}
        except OSError as error:
            self._report_unreadable(path, error)
            return _ScannedFolder(identity, -1, None, [])  # listed again, or the problem would be forgotten
        return _ScannedFolder(
            identity,
            status.st_mtime_ns if status.st_mtime_ns < listed_at - FRESH_NANOSECONDS else -1,
            next((name for name in _SKILL_FILE_NAMES if name in is_folder_by_name), None),
            sorted(name for name, is_folder in is_folder_by_name.items() if is_folder and name not in SKIPPED_FOLDERS),
        )

    def _check_skill(
        self, path: str, parts: tuple[str, ...], folder: _ScannedFolder, before: ScanResult | None
    ) -> ScanResult | None:
        """Return the skill that a folder is; it is read only if its file has another stamp."""
        if folder.file is None:
            return None
        if before is not None and before.stamp is not None:
            try:
                status = os.stat(f"{path}/{folder.file}")
            except OSError:
                return None
            if (status.st_ino, status.st_size, status.st_mtime_ns) == before.stamp:
                return before
        location = SkillLocation(path, folder.file, self.source, parts, folder.identity)
        result = read_skill(location)
        if isinstance(result, BrokenSkill):
            result = read_skill(location)  # it may have been rewritten meanwhile
        if isinstance(result, BrokenSkill):
            if result.absent:
                return None
            if isinstance(before, Skill) and is_recently_written(before.path):
                # It is being written and keeps its previous state for now.
                return before._replace(stamp=before.stamp._replace(modified=-1))
        return result

    def _has_folder_budget(self) -> bool:
        self._folder_count += 1
        if self._folder_count == MAX_SCANNED_FOLDERS + 1:
            message = f"it has more than {MAX_SCANNED_FOLDERS} folders; the rest was not searched"
            fix = "Name a folder that is closer to the skills."
            self.problems.append(SkillProblem("warning", "too-many-folders", message, fix, self.source.path))
        return self._folder_count <= MAX_SCANNED_FOLDERS

    def _report_unreadable(self, path: str, error: OSError) -> None:
        message = f"the folder cannot be read: {error.strerror}"
        fix = "Create it, make it readable, or remove it from the settings."
        self.problems.append(SkillProblem("warning", "no-folder", message, fix, path))


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False

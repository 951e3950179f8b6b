"""Incremental scanning of a source: walked once, then checked for changes.

Each folder remembers its content and its modification time. A later scan asks the kernel for one
time per skill and one per folder on the way to them, and reads again only what changed. A time so
recent that a second change could have the same one is not trusted.

A skill may contain others: those are folders directly in its own, except for the usual names of
bundled material, which may well hold the template of a skill.
"""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from cleats.toolsets.skills.skill import DISABLED_FILE_NAME, SKILL_FILE_NAME, Skill, SkillProblem, SkillSource
from cleats.toolsets.skills.skill_reader import (
    FRESH_NANOSECONDS,
    BrokenSkill,
    SkillLocation,
    is_recently_written,
    read_skill,
)

MAX_FOLDER_DEPTH = 6
"""The maximum depth of folders below a source. Skills are one or two levels deep, in collections of
collections three."""

MAX_SCANNED_FOLDERS = 20_000
"""The maximum number of folders without a skill that are scanned below a source; more is probably a
whole disk."""

BUNDLED_FOLDERS = frozenset({"assets", "examples", "references", "resources", "scripts", "templates", "tests"})
"""Folders in a skill that hold its material."""

NESTED_CHECK_SCANS = 10
"""The number of scans in which every skill without subfolders is checked once for new ones."""

SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules"})

ScanResult: TypeAlias = Skill | BrokenSkill
FolderIdentity: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class _ScannedFolder:
    """A folder with its content at the last scan."""

    path: str
    parts: tuple[str, ...]
    identity: FolderIdentity
    modified_ns: int = -1
    own_skill: ScanResult | None = None
    """The skill that the folder itself is."""

    skills: dict[str, ScanResult] = field(default_factory=dict)
    folders: dict[str, "_ScannedFolder"] = field(default_factory=dict)

    def iter_results(self) -> Iterator[ScanResult]:
        if self.own_skill is not None:
            yield self.own_skill
        yield from self.skills.values()
        for child in self.folders.values():
            yield from child.iter_results()


class SkillTree:
    """The skills of one source. `scan` updates it and returns whether anything changed."""

    def __init__(self, source: SkillSource) -> None:
        self.source = source
        self.problems: list[SkillProblem] = []
        self._root: _ScannedFolder | None = None
        self._folder_count = 0
        self._scan_number = 0
        self._nested_check_step = NESTED_CHECK_SCANS

    @property
    def exists(self) -> bool:
        return self._root is not None

    def iter_results(self) -> Iterator[ScanResult]:
        """Yield every skill and broken skill, in no particular order."""
        return iter(()) if self._root is None else self._root.iter_results()

    def scan(self, *, thorough: bool = False) -> bool:
        """Scan for changes since the last time.

        A thorough scan also finds the first skill that was put into another; otherwise that may
        take a few scans.
        """
        before, self.problems = self.problems, []
        self._folder_count = 0
        self._scan_number = (self._scan_number + 1) % NESTED_CHECK_SCANS
        self._nested_check_step = 1 if thorough else NESTED_CHECK_SCANS
        try:
            status = os.stat(self.source.path)
        except OSError as error:
            previous_root, self._root = self._root, None
            if self.source.expected or not isinstance(error, _ABSENT_ERRORS):
                self._report_unreadable(self.source.path, error)
            return previous_root is not None or before != self.problems
        identity = (status.st_dev, status.st_ino)
        if self._root is None or self._root.identity != identity:
            self._root = _ScannedFolder(self.source.path, (), identity)
        return self._scan_folder(self._root, status, ()) or before != self.problems

    def _scan_folder(
        self, folder: _ScannedFolder, status: os.stat_result, ancestors: tuple[FolderIdentity, ...]
    ) -> bool:
        self._folder_count += 1
        known_skills = folder.skills.copy()
        own_skill = folder.own_skill
        changed = status.st_mtime_ns != folder.modified_ns and self._list_folder(folder, status)
        if own_skill is not None and own_skill is folder.own_skill:
            changed |= self._check_own_skill(folder)
        if known_skills:
            changed |= self._check_skills(folder, known_skills)
        for name, child in list(folder.folders.items()):
            changed |= self._scan_child(folder, name, child, (*ancestors, folder.identity))
        return changed

    def _scan_child(
        self, folder: _ScannedFolder, name: str, child: _ScannedFolder, ancestors: tuple[FolderIdentity, ...]
    ) -> bool:
        try:
            status = os.stat(child.path)
        except OSError:
            del folder.folders[name]
            return True
        identity = (status.st_dev, status.st_ino)
        if identity != child.identity:
            child = folder.folders[name] = _ScannedFolder(child.path, child.parts, identity)
        # A link to a parent folder would be followed for ever.
        return (
            len(ancestors) <= MAX_FOLDER_DEPTH
            and identity not in ancestors
            and self._has_folder_budget()
            and self._scan_folder(child, status, ancestors)
        )

    def _list_folder(self, folder: _ScannedFolder, status: os.stat_result) -> bool:
        """List a folder; entries with known names are kept."""
        listed_at = time.time_ns()
        try:
            with os.scandir(folder.path) as entries:
                names = {entry.name: entry for entry in entries}
        except OSError as error:
            self._report_unreadable(folder.path, error)
            names = {}
            listed_at = 0  # list it again next time, or the problem would be forgotten
        folder.modified_ns = status.st_mtime_ns if status.st_mtime_ns < listed_at - FRESH_NANOSECONDS else -1
        previous_skill = folder.own_skill
        file = next((file for file in _SKILL_FILE_NAMES if file in names), None)
        if file is None:
            folder.own_skill = None
        elif folder.own_skill is None or _result_file_name(folder.own_skill) != file:
            location = SkillLocation(folder.path, file, self.source, folder.parts, folder.identity)
            folder.own_skill = read_skill(location)
        skipped = SKIPPED_FOLDERS if folder.own_skill is None or not folder.parts else SKIPPED_FOLDERS | BUNDLED_FOLDERS
        child_entries = {name: entry for name, entry in names.items() if name not in skipped and _is_folder(entry)}
        known_names = folder.skills.keys() | folder.folders.keys()
        for removed_name in known_names - child_entries.keys():
            folder.skills.pop(removed_name, None)
            folder.folders.pop(removed_name, None)
        for new_name in sorted(child_entries.keys() - known_names):
            entry = child_entries[new_name]
            self._classify_child(folder, new_name, None if entry.is_symlink() else (status.st_dev, entry.inode()))
        return folder.own_skill is not previous_skill or known_names != child_entries.keys()

    def _check_own_skill(self, folder: _ScannedFolder) -> bool:
        own_skill = folder.own_skill
        assert own_skill is not None  # noqa: S101 - for the type checker
        file = _result_file_name(own_skill)
        try:
            status = os.stat(f"{folder.path}/{file}")
        except OSError:
            status = None
        if status is not None and _is_current(own_skill, status):
            return False
        location = SkillLocation(folder.path, file, self.source, folder.parts, folder.identity)
        folder.own_skill = _reread_skill(own_skill, location)
        return True

    def _check_skills(self, folder: _ScannedFolder, known_skills: Mapping[str, ScanResult]) -> bool:
        """Reread the skills whose files have a different stamp."""
        stale: list[str] = []
        descriptor = _open_directory(folder.path)
        base = "" if descriptor is not None else f"{folder.path}/"
        get_status = os.stat
        try:
            for name, result in known_skills.items():
                try:
                    status = get_status(f"{base}{name}/{SKILL_FILE_NAME}", dir_fd=descriptor)
                except OSError:
                    stale.append(name)
                    continue
                stamp = result.stamp
                if (
                    stamp is None
                    or status.st_mtime_ns != stamp.modified
                    or status.st_size != stamp.size
                    or status.st_ino != stamp.inode
                ):
                    stale.append(name)
        finally:
            if descriptor is not None:
                os.close(descriptor)
        for name in stale:
            if name in folder.skills:
                self._classify_child(folder, name, None)
        for name in islice(known_skills, self._scan_number % self._nested_check_step, None, self._nested_check_step):
            if name in folder.skills and _may_have_folders(f"{folder.path}/{name}"):
                self._classify_child(folder, name, None)
        return bool(stale)

    def _classify_child(self, folder: _ScannedFolder, name: str, identity: FolderIdentity | None) -> None:
        """Determine what a subfolder is: a skill, or a folder to scan."""
        path = f"{folder.path}/{name}"
        parts = (*folder.parts, name)
        before = folder.skills.pop(name, None)
        if identity is None:
            try:
                status = os.stat(path)
            except OSError:
                return  # the folder's modification time has changed, so the next scan sees the rest
            identity = (status.st_dev, status.st_ino)
        result = _reread_skill(before, SkillLocation(path, SKILL_FILE_NAME, self.source, parts, identity))
        if isinstance(result, BrokenSkill) and result.absent:
            folder.folders[name] = _ScannedFolder(path, parts, identity)
        elif _may_have_folders(path):
            folder.folders[name] = _ScannedFolder(path, parts, identity, own_skill=result)
        else:
            folder.skills[name] = result

    def _has_folder_budget(self) -> bool:
        if self._folder_count < MAX_SCANNED_FOLDERS:
            return True
        if self._folder_count == MAX_SCANNED_FOLDERS:
            self._folder_count += 1
            message = f"it has more than {MAX_SCANNED_FOLDERS} folders; the rest was not searched"
            fix = "Name a folder nearer to the skills."
            problem = SkillProblem("warning", "too-many-folders", message, fix, self.source.path)
            self.problems.append(problem)
        return False

    def _report_unreadable(self, path: str, error: OSError) -> None:
        message = f"the folder cannot be read: {error.strerror}"
        fix = "Create it or make it readable, or do not name it."
        self.problems.append(SkillProblem("warning", "no-folder", message, fix, path))


_ABSENT_ERRORS = (FileNotFoundError, NotADirectoryError)
_SKILL_FILE_NAMES = (SKILL_FILE_NAME, SKILL_FILE_NAME.lower(), DISABLED_FILE_NAME)
"""The file names that a skill may have, the correct one first."""


def _result_file_name(result: ScanResult) -> str:
    return result.file if isinstance(result, Skill) else os.path.basename(result.problem.path)


def _reread_skill(before: ScanResult | None, location: SkillLocation) -> ScanResult:
    """Read a skill again; one that is being written keeps its previous state for now."""
    result = read_skill(location)
    if isinstance(result, BrokenSkill) and isinstance(before, Skill) and is_recently_written(before.path):
        return before._replace(stamp=before.stamp._replace(modified=-1))
    return result


def _is_current(result: ScanResult, status: os.stat_result) -> bool:
    stamp = result.stamp
    return (
        stamp is not None
        and status.st_mtime_ns == stamp.modified
        and status.st_size == stamp.size
        and status.st_ino == stamp.inode
    )


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _may_have_folders(path: str) -> bool:
    """Return whether a folder may have subfolders, without listing it."""
    try:
        # Two links are the folder's own; each subfolder adds one. File systems that do not count
        # links this way report one.
        return os.stat(path).st_nlink != 2
    except OSError:
        return False


def _open_directory(path: str) -> int | None:
    """Open a folder, which makes many stat calls in it cheap; None where that is impossible."""
    if os.stat not in os.supports_dir_fd:
        return None
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None

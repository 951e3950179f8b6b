"""The disk as a tree that is walked once and then only looked over.

Each folder remembers what was in it and when it last changed. A later look asks the kernel for one
time per skill and one per folder on the way to them, and reads again only what has another. A time
so young that a second change could hide behind it is not trusted.

A skill may hold others: those are folders right in its own, except for the usual names of bundled
material, which may well hold the template of a skill.
"""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from cleats.toolsets.skills.reading import FRESH, Broken, Place, is_young, read_skill
from cleats.toolsets.skills.skill import DISABLED_FILE, FILE, Problem, Skill, Source

DEPTH = 6
"""Folders below a source. Skills lie one or two deep, in collections of collections three."""

MOST_FOLDERS = 20_000
"""Folders without a skill that are looked into below a source; more is somebody's whole disk."""

BUNDLED = frozenset(
    {"assets", "examples", "references", "resources", "scripts", "templates", "tests"}
)
"""Folders in a skill that hold material of it."""

TURNS = 10
"""Looks until every skill without folders in it has been asked whether it has some by now."""

SKIPPED = frozenset({".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules"})

Found: TypeAlias = Skill | Broken
Identity: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class _Folder:
    """A folder as it was when it was last read."""

    path: str
    below: tuple[str, ...]
    identity: Identity
    changed: int = -1
    own: Found | None = None
    """The skill that the folder itself is."""

    skills: dict[str, Found] = field(default_factory=dict)
    folders: dict[str, "_Folder"] = field(default_factory=dict)

    def all(self) -> Iterator[Found]:
        if self.own is not None:
            yield self.own
        yield from self.skills.values()
        for below in self.folders.values():
            yield from below.all()


class Tree:
    """One source. `look` brings it up to date and says whether anything is different."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self._root: _Folder | None = None
        self._looked = 0
        self._turn = 0
        self._every = TURNS

    @property
    def there(self) -> bool:
        return self._root is not None

    def found(self) -> Iterator[Found]:
        """Everything that calls itself a skill, in no special order."""
        return iter(()) if self._root is None else self._root.all()

    def look(self, *, thorough: bool = False) -> bool:
        """See what changed since the last time.

        A thorough look also finds the first skill that was put into another; else that may take
        a few looks.
        """
        before, self.problems = self.problems, []
        self._looked = 0
        self._turn = (self._turn + 1) % TURNS
        self._every = 1 if thorough else TURNS
        try:
            now = os.stat(self.source.path)
        except OSError as error:
            was, self._root = self._root, None
            if self.source.expected or not isinstance(error, _ABSENT):
                self._complain(self.source.path, error)
            return was is not None or before != self.problems
        identity = (now.st_dev, now.st_ino)
        if self._root is None or self._root.identity != identity:
            self._root = _Folder(self.source.path, (), identity)
        return self._look(self._root, now, ()) or before != self.problems

    def _look(self, folder: _Folder, now: os.stat_result, above: tuple[Identity, ...]) -> bool:
        self._looked += 1
        known = folder.skills.copy()
        own = folder.own
        different = now.st_mtime_ns != folder.changed and self._list(folder, now)
        if own is not None and own is folder.own:
            different |= self._check_own(folder)
        if known:
            different |= self._check(folder, known)
        for name, below in list(folder.folders.items()):
            different |= self._descend(folder, name, below, (*above, folder.identity))
        return different

    def _descend(
        self, folder: _Folder, name: str, below: _Folder, above: tuple[Identity, ...]
    ) -> bool:
        try:
            now = os.stat(below.path)
        except OSError:
            del folder.folders[name]
            return True
        identity = (now.st_dev, now.st_ino)
        if identity != below.identity:
            below = folder.folders[name] = _Folder(below.path, below.below, identity)
        # A link to a folder above would go round for ever.
        return (
            len(above) <= DEPTH
            and identity not in above
            and self._affordable()
            and self._look(below, now, above)
        )

    def _list(self, folder: _Folder, now: os.stat_result) -> bool:
        """Read the names in a folder; what has the name it had is kept."""
        asked = time.time_ns()
        try:
            with os.scandir(folder.path) as entries:
                names = {entry.name: entry for entry in entries}
        except OSError as error:
            self._complain(folder.path, error)
            names = {}
            asked = 0  # ask again next time, or the complaint would be forgotten
        folder.changed = now.st_mtime_ns if now.st_mtime_ns < asked - FRESH else -1
        own = folder.own
        file = next((file for file in _FILES if file in names), None)
        if file is None:
            folder.own = None
        elif folder.own is None or _file_of(folder.own) != file:
            place = Place(folder.path, file, self.source, folder.below, folder.identity)
            folder.own = read_skill(place)
        skipped = SKIPPED if folder.own is None or not folder.below else SKIPPED | BUNDLED
        there = {
            name: entry
            for name, entry in names.items()
            if name not in skipped and _is_folder(entry)
        }
        known = folder.skills.keys() | folder.folders.keys()
        for gone in known - there.keys():
            folder.skills.pop(gone, None)
            folder.folders.pop(gone, None)
        for new in sorted(there.keys() - known):
            entry = there[new]
            self._enter(folder, new, None if entry.is_symlink() else (now.st_dev, entry.inode()))
        return folder.own is not own or known != there.keys()

    def _check_own(self, folder: _Folder) -> bool:
        own = folder.own
        assert own is not None  # noqa: S101 - for the type checker
        file = _file_of(own)
        try:
            now = os.stat(f"{folder.path}/{file}")
        except OSError:
            now = None
        if now is not None and _is_current(own, now):
            return False
        place = Place(folder.path, file, self.source, folder.below, folder.identity)
        folder.own = _read_again(own, place)
        return True

    def _check(self, folder: _Folder, known: Mapping[str, Found]) -> bool:
        """Read again the skills whose files have another stamp."""
        stale: list[str] = []
        descriptor = _directory(folder.path)
        base = "" if descriptor is not None else f"{folder.path}/"
        ask = os.stat
        try:
            for name, found in known.items():
                try:
                    now = ask(f"{base}{name}/{FILE}", dir_fd=descriptor)
                except OSError:
                    stale.append(name)
                    continue
                stamp = found.stamp
                if (
                    stamp is None
                    or now.st_mtime_ns != stamp.modified
                    or now.st_size != stamp.size
                    or now.st_ino != stamp.inode
                ):
                    stale.append(name)
        finally:
            if descriptor is not None:
                os.close(descriptor)
        for name in stale:
            if name in folder.skills:
                self._enter(folder, name, None)
        for name in islice(known, self._turn % self._every, None, self._every):
            if name in folder.skills and _has_folders(f"{folder.path}/{name}"):
                self._enter(folder, name, None)
        return bool(stale)

    def _enter(self, folder: _Folder, name: str, identity: Identity | None) -> None:
        """Find out what a folder in a folder is: a skill, or a folder to look into."""
        path = f"{folder.path}/{name}"
        below = (*folder.below, name)
        before = folder.skills.pop(name, None)
        if identity is None:
            try:
                now = os.stat(path)
            except OSError:
                return  # the folder's own time has changed, so the next look sees the rest
            identity = (now.st_dev, now.st_ino)
        found = _read_again(before, Place(path, FILE, self.source, below, identity))
        if isinstance(found, Broken) and found.absent:
            folder.folders[name] = _Folder(path, below, identity)
        elif _has_folders(path):
            folder.folders[name] = _Folder(path, below, identity, own=found)
        else:
            folder.skills[name] = found

    def _affordable(self) -> bool:
        if self._looked < MOST_FOLDERS:
            return True
        if self._looked == MOST_FOLDERS:
            self._looked += 1
            message = f"it has more than {MOST_FOLDERS} folders; the rest was not searched"
            fix = "Name a folder nearer to the skills."
            problem = Problem("warning", "too-many-folders", message, fix, self.source.path)
            self.problems.append(problem)
        return False

    def _complain(self, path: str, error: OSError) -> None:
        message = f"the folder cannot be read: {error.strerror}"
        fix = "Create it or make it readable, or do not name it."
        self.problems.append(Problem("warning", "no-folder", message, fix, path))


_ABSENT = (FileNotFoundError, NotADirectoryError)
_FILES = (FILE, FILE.lower(), DISABLED_FILE)
"""The names a skill may have, the right one first."""


def _file_of(found: Found) -> str:
    return found.file if isinstance(found, Skill) else os.path.basename(found.problem.path)


def _read_again(before: Found | None, place: Place) -> Found:
    """What a file has become; one that is being written is for now what it was."""
    found = read_skill(place)
    if isinstance(found, Broken) and isinstance(before, Skill) and is_young(before.path):
        return before._replace(stamp=before.stamp._replace(modified=-1))
    return found


def _is_current(found: Found, now: os.stat_result) -> bool:
    stamp = found.stamp
    return (
        stamp is not None
        and now.st_mtime_ns == stamp.modified
        and now.st_size == stamp.size
        and now.st_ino == stamp.inode
    )


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _has_folders(path: str) -> bool:
    """Whether there may be folders in a folder, without listing it."""
    try:
        # Two links are its own names; each folder in it adds one. Systems that do not count so
        # have a one here.
        return os.stat(path).st_nlink != 2
    except OSError:
        return False


def _directory(path: str) -> int | None:
    """A descriptor, which makes many questions about one folder cheap; None where there is none."""
    if os.stat not in os.supports_dir_fd:
        return None
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None

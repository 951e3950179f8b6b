"""Whether an index still says what the files say, found out for as little as possible.

A full look lists the files as a build does and compares them with the catalogue. In a process that
lives on, the next look only asks the system whether anything that the last one saw has changed:
the files, and the folders that hold them, in which a new file leaves its mark. What neither shows,
such as a rule to ignore files that lies elsewhere, is found at the next full look.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field

from cleats.toolsets.code.discovery.files import Found
from cleats.toolsets.code.indexing.basis import Form
from cleats.toolsets.code.indexing.heads import Stand, same_place, stand
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.indexing.report import BuildReport
from cleats.toolsets.code.indexing.survey import Survey, lint_of
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.generations import Lease, Shelf
from cleats.toolsets.code.store.rows import UNSURE

FULL: Final = 60.0
"""Seconds after which a look is a full one again."""


class Freshness(NamedTuple):
    """How an index compares with its files."""

    generation: str
    added: int = 0
    changed: int = 0
    removed: int = 0
    head_moved: bool = False
    """Another commit or branch is checked out."""
    outgrown: bool = False
    """This version, or these settings, would read the files in another way."""
    git: str = ""
    """What is different about git, in words."""

    @property
    def stale(self) -> bool:
        """Whether an update would find anything to do."""
        return self != Freshness(self.generation)

    def __str__(self) -> str:
        counts = ((self.added, "new"), (self.changed, "changed"), (self.removed, "removed"))
        said = [f"{count:,} {word}" for count, word in counts if count]
        words = [f"{', '.join(said)} file(s)"] if said else []
        words += [self.git] if self.git else []
        words += [
            "it was built by another version of Cleats or with other settings"
        ] * self.outgrown
        return "; ".join(words) or "up to date"


def look(root: Path, lease: Lease, options: Options) -> tuple[Freshness, "Sight"]:
    """Compare a generation with its files, in full."""
    began = time.time_ns()
    with Catalogue.open(lease.catalogue) as catalogue:
        meta, known = catalogue.meta(), catalogue.known()
    survey = Survey.of(root, known, options)
    # What an index was asked to hold is its own affair; only how it holds it can be outgrown.
    own = msgspec.structs.replace(options, modes=(), vectors=None)
    alike = meta["git"] == options.git and meta["lint"] == lint_of(options)
    fresh = Freshness(
        generation=lease.name,
        added=len(survey.plan.added),
        changed=len(survey.changed),
        removed=len(survey.plan.removed),
        head_moved=options.git and not same_place(meta["head"], survey.head),
        git=_difference(meta["head"], survey.head) if options.git else "",
        outgrown=not (alike and Form.wanted(own, meta).fits(meta)),
    )
    return fresh, Sight.of(root, survey, began)


def _difference(then: Stand | None, now: Stand | None) -> str:
    if then == now:
        return ""
    if then is None or now is None:
        return "it is under git now" if now else "it is no longer under git"
    if then[0] != now[0]:
        return "another commit is checked out"
    if then[1] != now[1]:
        return "another branch is checked out"
    # A shallow clone that reaches further back than it did, or less far.
    return "git has another part of the history"


class Sight(Struct, frozen=True):
    """What a full look saw of a folder."""

    found: list[Found]
    head: Stand | None
    """None where git does not count."""
    folders: dict[str, int]
    """When each folder changed last; `UNSURE` if that was while we looked."""
    at: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, root: Path, survey: Survey, began: int) -> "Sight":
        """What a survey saw that began at a time, in nanoseconds."""
        seen = _folders(root, survey.found.files).union(survey.watched)
        folders = {folder: _time(folder) for folder in seen}
        certain = {folder: at if at < began else UNSURE for folder, at in folders.items()}
        return cls(survey.found.files, survey.head, certain)

    def holds(self, root: Path) -> bool:
        """Whether all of it is as it was, and was seen not long ago."""
        return time.monotonic() - self.at < FULL and not self.has_changed(root)

    def has_changed(self, root: Path) -> bool:
        """Whether anything of it is not as it was."""
        return (
            (self.head is not None and stand(root) != self.head)
            or any(_time(folder) != at for folder, at in self.folders.items())
            or not all(_same(each) for each in self.found)
        )


class Lookout:
    """Keeps an eye on one repository."""

    def __init__(self, root: Path, shelf: Shelf, options: Options) -> None:
        self._root, self._shelf, self._options = root, shelf, options
        self._last: tuple[Freshness, Sight] | None = None

    def look(self) -> Freshness | None:
        """How the index compares now; None when there is none. Blocks while it looks."""
        lease = self._shelf.current()
        if lease is None:
            return None
        with lease:
            last = self._last
            if last is None or last[0].generation != lease.name or not last[1].holds(self._root):
                last = self._last = look(self._root, lease, self._options.at(self._root))
            return last[0]

    def _is_stale(self) -> bool:
        """Whether the last look is enough to tell; a builder looks in full anyway."""
        if self._last is None or self._last[0].generation != self._shelf.name():
            return False
        fresh, sight = self._last
        return UNSURE not in sight.folders.values() and (
            fresh.stale or sight.has_changed(self._root)
        )

    def settled(self, options: Options) -> BuildReport | None:
        """What a build with these options would report, if it would find nothing to do."""
        if self._is_stale():
            return None
        fresh = self.look()
        lease = self._shelf.current()
        if fresh is None or fresh.stale or lease is None:
            return None
        with lease, Catalogue.open(lease.catalogue) as catalogue:
            meta = catalogue.meta()
        sqlite = options.sqlite if options.sqlite is not None else meta["sqlite"]
        if sqlite != meta["sqlite"] or not Form.wanted(options.at(self._root), meta).fits(meta):
            return None
        return BuildReport.unchanged(meta, lease.name)


def _folders(root: Path, found: Iterable[Found]) -> set[str]:
    """The folders with files in them, and those that lead there."""
    top = os.fspath(root)
    folders = {top}
    for each in found:
        folder = os.path.dirname(each.fs_path)  # noqa: PTH120 - a Path for every file is dear
        while folder not in folders and len(folder) > len(top):
            folders.add(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120
    return folders


def _time(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - a Path for every file is dear
    except OSError:
        return 0


def _same(found: Found) -> bool:
    try:
        status = os.lstat(found.fs_path)
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (found.size, found.mtime_ns)

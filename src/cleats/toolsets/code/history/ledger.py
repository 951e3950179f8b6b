"""Every line of a repository with the commit that wrote it, and how busy each file is.

Patches are applied in the order of their commits; git's texts are never needed. A line is the
number of a commit, where 0 means that it is older than all we know.
"""

import sys
import zlib
from array import array
from collections.abc import Iterable
from itertools import groupby

import msgspec
from msgspec import Struct, field

from cleats.toolsets.code.history.patches import Commit, Hunk, Patch

WINDOW = 10
"""Commits of a file over which its changed lines are counted."""

VERSION = 1


class Entry(Struct):
    """What is known of one file."""

    lines: "array[int]"
    """The commit of each line, as far as known; lines after that are older than all we know."""
    whole: bool
    """Whether every line is in it."""
    last: int = 0
    """The commit that touched it last."""
    changes: list[int] = []
    """Added and removed lines of the last commits that touched it."""


class Ledger(Struct):
    """The lines of all files as of one commit."""

    lined: bool = True
    """Whether it was made from patches; else only the commits of files are known."""
    base: int = 0
    """Commits that are older than the first one here."""
    boundary: str = ""
    """The commit where a shallow clone begins: all it has came with it, whoever wrote that."""
    shas: list[str] = field(default_factory=lambda: [""])
    times: "array[int]" = field(default_factory=lambda: array("Q", [0]))
    credits: "array[int]" = field(default_factory=lambda: array("I", [0]))
    """The author of each commit."""
    authors: list[str] = field(default_factory=lambda: [""])
    files: dict[bytes, Entry] = {}
    _numbers: dict[str, int] = {}
    _gone: set[bytes] = set()

    @property
    def commits(self) -> int:
        return len(self.shas) - 1

    @property
    def tip(self) -> str:
        """The commit whose lines these are."""
        return self.shas[-1]

    def open(self, commit: Commit, author: str) -> int:
        """Begin a commit, and credit it to somebody; return its number."""
        self.close()
        self.shas.append(commit.sha)
        self.times.append(commit.time)
        self.credits.append(self._number_of(author))
        return self.commits

    def close(self) -> None:
        """End a commit: only now are the files gone from which others may have been taken."""
        for path in self._gone:
            del self.files[path]
        self._gone.clear()

    def _number_of(self, author: str) -> int:
        if not self._numbers:
            self._numbers = {known: number for number, known in enumerate(self.authors)}
        number = self._numbers.setdefault(author, len(self.authors))
        if number == len(self.authors):
            self.authors.append(author)
        return number

    def apply(self, patch: Patch, commit: int) -> None:
        """Do to the lines what a patch does to the text; commit 0 signs nothing."""
        if patch.new is None:
            self._leave(patch.old)
            return
        before = Entry(array("I"), whole=True) if patch.old is None else self._known(patch.old)
        if patch.old != patch.new and patch.moved:
            self._leave(patch.old)
        lines = before.lines
        if patch.opaque:
            lines = array("I")
        elif patch.hunks:
            lines = edited(lines, patch.hunks, commit)
        changed = sum(hunk.removed + hunk.added for hunk in patch.hunks)
        changes = [*before.changes, changed][-WINDOW:] if commit else before.changes
        whole = before.whole and not patch.opaque
        self.files[patch.new] = Entry(lines, whole, commit, changes)
        self._gone.discard(patch.new)

    def _known(self, path: bytes) -> Entry:
        # A file that is older than all we know has lines of which we know nothing.
        return self.files.get(path) or Entry(array("I"), whole=False)

    def _leave(self, path: bytes | None) -> None:
        if path is not None and path in self.files:
            self._gone.add(path)

    def save(self) -> bytes:
        """Everything in a few bytes, for `load` on a machine of the same kind."""
        files = {
            path: _Kept(_runs(entry.lines), entry.whole, entry.last, entry.changes)
            for path, entry in self.files.items()
        }
        kept = _Book(
            VERSION,
            sys.byteorder,
            self.lined,
            self.base,
            self.boundary,
            bytes.fromhex("".join(self.shas)),
            self.times.tobytes(),
            self.credits.tobytes(),
            self.authors,
            files,
        )
        return zlib.compress(msgspec.msgpack.encode(kept), 1)

    @classmethod
    def load(cls, saved: bytes) -> "Ledger | None":
        """Read what `save` wrote; None when it is of another version, or damaged."""
        try:
            kept = msgspec.msgpack.decode(zlib.decompress(saved), type=_Book)
            if (kept.version, kept.byteorder) != (VERSION, sys.byteorder):
                return None
            return cls._unpacked(kept)
        except (zlib.error, msgspec.MsgspecError, ValueError):
            return None

    @classmethod
    def _unpacked(cls, kept: "_Book") -> "Ledger":
        times, credited = array("Q", kept.times), array("I", kept.credits)
        each = 2 * len(kept.shas) // max(1, len(times) - 1)
        shas = kept.shas.hex()
        return cls(
            kept.lined,
            kept.base,
            kept.boundary,
            ["", *(shas[at : at + each] for at in range(0, len(shas), each or 1))],
            times,
            credited,
            kept.authors,
            {
                path: Entry(_lines(file.runs), file.whole, file.last, file.changes)
                for path, file in kept.files.items()
            },
        )


def edited(lines: "array[int]", hunks: Iterable[Hunk], commit: int) -> "array[int]":
    """The lines after an edit, its own signed with a commit."""
    made: array[int] = array("I")
    at = 0
    for start, removed, added in hunks:
        kept = start - len(made)
        made += lines[at : at + kept]
        at += kept
        if len(made) < start:
            made += array("I", [0]) * (start - len(made))
        made += array("I", [commit]) * added
        at += removed
    made += lines[at:]
    return made


class _Kept(msgspec.Struct, array_like=True):
    runs: bytes
    whole: bool
    last: int
    changes: list[int]


class _Book(msgspec.Struct, array_like=True):
    version: int
    byteorder: str
    lined: bool
    base: int
    boundary: str
    shas: bytes
    times: bytes
    credits: bytes
    authors: list[str]
    files: dict[bytes, _Kept]


def _runs(lines: "array[int]") -> bytes:
    made: array[int] = array("I")
    for commit, run in groupby(lines):
        made.append(commit)
        made.append(sum(1 for _ in run))
    return made.tobytes()


def _lines(runs: bytes) -> "array[int]":
    pairs = iter(array("I", runs))
    made: array[int] = array("I")
    for commit, length in zip(pairs, pairs, strict=True):
        made += array("I", [commit]) * length
    return made

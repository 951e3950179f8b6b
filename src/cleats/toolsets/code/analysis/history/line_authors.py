"""Every line of a repository with the commit that wrote it, and the churn of each file.

Patches are applied in the order of their commits; the contents of files are never needed. A line is
the number of a commit; 0 means that it is older than the known history.
"""

import sys
import zlib
from array import array
from collections.abc import Iterable
from itertools import groupby

import msgspec
from msgspec import Struct, field

from cleats.toolsets.code.analysis.history.git_log import Commit, FilePatch, Hunk

CHURN_WINDOW_COMMITS = 10
"""Number of commits of a file over which its changed lines are counted."""

FORMAT_VERSION = 1


class FileBlame(Struct):
    """The blame of one file."""

    lines: "array[int]"
    """The commit of each line, as far as known; lines after the last are older than the known
    history."""
    whole: bool
    """True if `lines` covers every line of the file."""
    last: int = 0
    """The last commit that changed the file."""
    changes: list[int] = []
    """Added and removed lines of the last commits that changed the file."""


class BlameLedger(Struct):
    """The blame of all files as of one commit."""

    lined: bool = True
    """True if it was built from patches; otherwise only the commits of files are known."""
    base: int = 0
    """Number of commits before the first one here."""
    boundary: str = ""
    """The commit where a shallow clone begins. All of its lines appear in it, whoever wrote
    them."""
    shas: list[str] = field(default_factory=lambda: [""])
    times: "array[int]" = field(default_factory=lambda: array("Q", [0]))
    credits: "array[int]" = field(default_factory=lambda: array("I", [0]))
    """The author of each commit, as a position in `authors`."""
    authors: list[str] = field(default_factory=lambda: [""])
    files: dict[bytes, FileBlame] = {}
    _author_numbers: dict[str, int] = {}
    _removed_paths: set[bytes] = set()

    @property
    def commit_count(self) -> int:
        return len(self.shas) - 1

    @property
    def tip(self) -> str:
        """The commit that the lines belong to."""
        return self.shas[-1]

    def open_commit(self, commit: Commit, author: str) -> int:
        """Begin a commit and credit it to an author; return its number."""
        self.close_commit()
        self.shas.append(commit.sha)
        self.times.append(commit.time)
        self.credits.append(self._number_author(author))
        return self.commit_count

    def close_commit(self) -> None:
        """End a commit and only now remove its deleted files, which others may be copies of."""
        for path in self._removed_paths:
            del self.files[path]
        self._removed_paths.clear()

    def _number_author(self, author: str) -> int:
        if not self._author_numbers:
            self._author_numbers = {known_author: number for number, known_author in enumerate(self.authors)}
        number = self._author_numbers.setdefault(author, len(self.authors))
        if number == len(self.authors):
            self.authors.append(author)
        return number

    def apply_patch(self, patch: FilePatch, commit: int) -> None:
        """Apply a patch to the lines; with commit 0, nobody is credited and no churn is counted."""
        if patch.new is None:
            self._mark_removed(patch.old)
            return
        old_blame = FileBlame(array("I"), whole=True) if patch.old is None else self._find_blame(patch.old)
        if patch.old != patch.new and patch.moved:
            self._mark_removed(patch.old)
        lines = old_blame.lines
        if patch.opaque:
            lines = array("I")
        elif patch.hunks:
            lines = apply_hunks(lines, patch.hunks, commit)
        changed_count = sum(hunk.removed + hunk.added for hunk in patch.hunks)
        changes = [*old_blame.changes, changed_count][-CHURN_WINDOW_COMMITS:] if commit else old_blame.changes
        is_complete = old_blame.whole and not patch.opaque
        self.files[patch.new] = FileBlame(lines, is_complete, commit, changes)
        self._removed_paths.discard(patch.new)

    def _find_blame(self, path: bytes) -> FileBlame:
        # Nothing is known about the lines of a file that is older than the known history.
        return self.files.get(path) or FileBlame(array("I"), whole=False)

    def _mark_removed(self, path: bytes | None) -> None:
        if path is not None and path in self.files:
            self._removed_paths.add(path)

    def save(self) -> bytes:
        """Return a compact encoding, for `load` on a machine of the same byte order."""
        files = {
            path: _SavedBlame(_encode_runs(entry.lines), entry.whole, entry.last, entry.changes)
            for path, entry in self.files.items()
        }
        saved_ledger = _SavedLedger(
            FORMAT_VERSION,
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
        return zlib.compress(msgspec.msgpack.encode(saved_ledger), 1)

    @classmethod
    def load(cls, saved: bytes) -> "BlameLedger | None":
        """Decode the output of `save`; return None if it has another version, or is damaged."""
        try:
            saved_ledger = msgspec.msgpack.decode(zlib.decompress(saved), type=_SavedLedger)
            if (saved_ledger.version, saved_ledger.byteorder) != (FORMAT_VERSION, sys.byteorder):
                return None
            return cls._from_saved(saved_ledger)
        except (zlib.error, msgspec.MsgspecError, ValueError):
            return None

    @classmethod
    def _from_saved(cls, saved_ledger: "_SavedLedger") -> "BlameLedger":
        times, author_numbers = array("Q", saved_ledger.times), array("I", saved_ledger.credits)
        sha_length = 2 * len(saved_ledger.shas) // max(1, len(times) - 1)
        shas = saved_ledger.shas.hex()
        return cls(
            saved_ledger.lined,
            saved_ledger.base,
            saved_ledger.boundary,
            ["", *(shas[offset : offset + sha_length] for offset in range(0, len(shas), sha_length or 1))],
            times,
            author_numbers,
            saved_ledger.authors,
            {
                path: FileBlame(_decode_runs(file.runs), file.whole, file.last, file.changes)
                for path, file in saved_ledger.files.items()
            },
        )


def apply_hunks(lines: "array[int]", hunks: Iterable[Hunk], commit: int) -> "array[int]":
    """Return the lines after an edit, with the added ones assigned to a commit."""
    new_lines: array[int] = array("I")
    old_position = 0
    for start, removed, added in hunks:
        unchanged_count = start - len(new_lines)
        new_lines += lines[old_position : old_position + unchanged_count]
        old_position += unchanged_count
        if len(new_lines) < start:
            new_lines += array("I", [0]) * (start - len(new_lines))
        new_lines += array("I", [commit]) * added
        old_position += removed
    new_lines += lines[old_position:]
    return new_lines


class _SavedBlame(msgspec.Struct, array_like=True):
    runs: bytes
    whole: bool
    last: int
    changes: list[int]


class _SavedLedger(msgspec.Struct, array_like=True):
    version: int
    byteorder: str
    lined: bool
    base: int
    boundary: str
    shas: bytes
    times: bytes
    credits: bytes
    authors: list[str]
    files: dict[bytes, _SavedBlame]


def _encode_runs(lines: "array[int]") -> bytes:
    encoded: array[int] = array("I")
    for commit, run in groupby(lines):
        encoded.append(commit)
        encoded.append(sum(1 for _ in run))
    return encoded.tobytes()


def _decode_runs(runs: bytes) -> "array[int]":
    pairs = iter(array("I", runs))
    decoded: array[int] = array("I")
    for commit, length in zip(pairs, pairs, strict=True):
        decoded += array("I", [commit]) * length
    return decoded

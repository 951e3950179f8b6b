"""Every line of a repository with the commit that wrote it, and the churn of each file.

Patches are applied in the order of their commits; the contents of files are never needed. A line is
the number of a commit; 0 means that it is older than the known history.

The output of `git log` is parsed as bytes, and a piece may end anywhere. Only line numbers are read from a patch: the
header of a hunk gives the number of lines that follow, and those are skipped unread. So nothing that is written in a
file can be mistaken for a header.
"""

import re
import sys
from array import array
from collections.abc import Iterable, Iterator, MutableMapping
from itertools import chain, groupby
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, field

LOG_FORMAT_OPTION = "--format=%x01%H%x00%P%x00%ct%x00%an <%ae>"
"""One line per commit, marked by a byte that never begins a line of a patch header."""


class Commit(NamedTuple):
    """The id, parents, time and author of a commit."""

    sha: str
    parents: tuple[str, ...]
    time: int
    author: str


class Hunk(NamedTuple):
    """A hunk that replaces `removed` lines by `added` ones, after `start` lines of the new text."""

    start: int
    removed: int
    added: int


class FilePatch(Struct):
    """The change of one file by a commit. Paths are bytes, as in git."""

    old: bytes | None
    """None for a new file."""
    new: bytes | None
    """None for a deleted file."""
    hunks: list[Hunk] = []
    moved: bool = True
    """True if the old path no longer exists, where the two paths differ."""
    opaque: bool = False
    """True if its lines are unknown: git treats it as binary, or was not asked for them."""


HistoryEvent: TypeAlias = Commit | FilePatch

MAX_COMMIT_SECONDS = 2**53
"""Largest time of a commit. A commit may claim any time, and later readers may not support larger numbers."""


class GitLogParser:
    """Parser for the output of `git log` and `git diff` with `-p -U0` or `--raw`."""

    def __init__(self) -> None:
        self._pending_pieces: list[bytes] = []
        self._current_patch: FilePatch | None = None
        self._pending_removed = 0
        self._pending_added = 0

    def feed(self, piece: bytes) -> Iterator[HistoryEvent]:
        """Parse the next bytes and yield the events that are complete."""
        self._pending_pieces.append(piece)
        if b"\n" not in piece:
            return
        lines = b"".join(self._pending_pieces).split(b"\n")
        self._pending_pieces = [lines.pop()]
        position, end = 0, len(lines)
        while position < end:
            if self._pending_removed or self._pending_added:
                position = self._skip_lines(lines, position)
                continue
            line = lines[position]
            position += 1
            match line[:1]:
                case b"@":
                    self._read_hunk(line)
                case b"\x01":
                    yield from self.finish()
                    yield _parse_commit(line)
                case b":":
                    yield _parse_raw_change(line)
                case b"d" if line.startswith(b"diff --git "):
                    yield from self.finish()
                    path = _parse_common_path(line[11:])
                    self._current_patch = FilePatch(path, path)
                case _ if self._current_patch is not None:
                    _read_patch_header(self._current_patch, line)

    def finish(self) -> Iterator[HistoryEvent]:
        """Yield the event that was still incomplete."""
        if self._current_patch is not None:
            yield self._current_patch
        self._current_patch = None

    def _read_hunk(self, line: bytes) -> None:
        match = _HUNK_HEADER_PATTERN.match(line)
        if match is None or self._current_patch is None:
            return
        removed, start, added = (1 if count is None else int(count) for count in match.groups())
        # Git gives the line before the hunk if it adds no lines.
        self._current_patch.hunks.append(Hunk(start - 1 if added else start, removed, added))
        self._pending_removed, self._pending_added = removed, added

    def _skip_lines(self, lines: list[bytes], position: int) -> int:
        if lines[position][:1] == b"\\":  # "No newline at end of file", which is not a line of the file
            return position + 1
        step = min(self._pending_removed or self._pending_added, len(lines) - position)
        if self._pending_removed:
            self._pending_removed -= step
        else:
            self._pending_added -= step
        return position + step


_HUNK_HEADER_PATTERN = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def _parse_commit(line: bytes) -> Commit:
    sha, parents, time, author = line[1:].decode(errors="replace").split("\0", 3)
    # A commit may have been created by hand, with an arbitrary time.
    seconds = int(time) if time.isascii() and time.isdigit() else 0
    return Commit(sha, tuple(parents.split()), min(seconds, MAX_COMMIT_SECONDS), author)


def _read_patch_header(patch: FilePatch, line: bytes) -> None:
    """Read one line between the first line of a patch and its first hunk."""
    word, _, rest = line.partition(b" ")
    match word:
        case b"new" if rest.startswith(b"file mode"):
            patch.old = None
        case b"deleted":
            patch.new = None
        case b"rename" | b"copy":
            patch.moved = word == b"rename"
            side, _, path = rest.partition(b" ")
            if side == b"from":
                patch.old = unquote_path(path)
            else:
                patch.new = unquote_path(path)
        case b"Binary":
            patch.opaque = True
        case _:
            pass


def _parse_raw_change(line: bytes) -> FilePatch:
    attributes, *paths = line.split(b"\t")
    status = attributes.rpartition(b" ")[2][:1]
    old = None if status == b"A" else unquote_path(paths[0])
    new = None if status == b"D" else unquote_path(paths[-1])
    return FilePatch(old, new, moved=status != b"C", opaque=True)


def _parse_common_path(path_pair: bytes) -> bytes:
    """Return the path in `a/path b/path`; where the two differ, later lines give both."""
    if path_pair.startswith(b'"'):
        match = _QUOTED_PATH_PATTERN.match(path_pair)
        return unquote_path(match.group())[2:] if match else path_pair
    return path_pair[2 : (len(path_pair) - 1) // 2]


_QUOTED_PATH_PATTERN = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ESCAPE_PATTERN = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPE_LETTERS = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))


def unquote_path(path: bytes) -> bytes:
    """Remove git's quotes and escapes from a path with special bytes."""
    if not path.startswith(b'"'):
        return path
    return _ESCAPE_PATTERN.sub(_unescape_match, path[1:-1])


def _unescape_match(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    if len(code) == 3:
        return bytes([int(code, 8)])
    return bytes([_ESCAPE_LETTERS.get(code[0], code[0])])


CHURN_WINDOW_COMMITS = 10
"""Number of commits of a file over which its changed lines are counted."""

FORMAT_VERSION = 2


class FileBlame(Struct):
    """The blame of one file."""

    lines: "array[int]"
    """The commit of each line, as far as known; lines after the last are older than the known history."""
    whole: bool
    """True if `lines` covers every line of the file."""
    last: int = 0
    """The last commit that changed the file."""
    changes: list[int] = []
    """Added and removed lines of the last commits that changed the file."""


class BlameTable(MutableMapping[bytes, FileBlame]):
    """The blame of each file by its path, decoded when it is asked for: an update needs that of very few files."""

    def __init__(self, saved: "dict[bytes, msgspec.Raw] | None" = None) -> None:
        self._entries: dict[bytes, FileBlame | msgspec.Raw] = dict(saved or {})

    def __getitem__(self, path: bytes) -> FileBlame:
        entry = self._entries[path]
        if isinstance(entry, msgspec.Raw):
            runs, *facts = _decode_blame(entry)
            entry = self._entries[path] = FileBlame(_decode_runs(runs), *facts)
        return entry

    def __setitem__(self, path: bytes, blame: FileBlame) -> None:
        self._entries[path] = blame

    def __delitem__(self, path: bytes) -> None:
        del self._entries[path]

    def __contains__(self, path: object) -> bool:
        return path in self._entries

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def save(self) -> "dict[bytes, msgspec.Raw]":
        """Return the entries as `BlameLedger` saves them."""
        return {path: _encode_blame(entry) for path, entry in self._entries.items()}


class BlameLedger(Struct):
    """The blame of all files as of one commit."""

    lined: bool = True
    """True if it was built from patches; otherwise only the commits of files are known."""
    base: int = 0
    """Number of commits before the first one here."""
    boundary: str = ""
    """The commit where a shallow clone begins. All of its lines appear in it, whoever wrote them."""
    shas: list[bytes] = field(default_factory=lambda: [b""])
    times: "array[int]" = field(default_factory=lambda: array("Q", [0]))
    credits: "array[int]" = field(default_factory=lambda: array("I", [0]))
    """The author of each commit, as a position in `authors`."""
    authors: list[str] = field(default_factory=lambda: [""])
    files: BlameTable = field(default_factory=BlameTable)
    _author_numbers: dict[str, int] = {}
    _removed_paths: set[bytes] = set()

    @property
    def commit_count(self) -> int:
        return len(self.shas) - 1

    @property
    def tip(self) -> str:
        """The commit that the lines belong to."""
        return self.shas[-1].hex()

    def open_commit(self, commit: Commit, author: str) -> int:
        """Begin a commit and credit it to an author; return its number."""
        self.close_commit()
        self.shas.append(bytes.fromhex(commit.sha))
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
        # Nothing is known about the lines of a file that is older than the known history.
        known_blame = self.files.get(patch.old) if patch.old is not None else None
        old_blame = known_blame or FileBlame(array("I"), whole=patch.old is None)
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

    def _mark_removed(self, path: bytes | None) -> None:
        if path is not None and path in self.files:
            self._removed_paths.add(path)

    def save(self) -> bytes:
        """Return a compact encoding, for `load` on a machine of the same byte order."""
        saved_ledger: _SavedLedger = (
            *(FORMAT_VERSION, sys.byteorder, self.lined, self.base, self.boundary),
            *(self.shas, self.times.tobytes(), self.credits.tobytes(), self.authors, self.files.save()),
        )
        return msgspec.msgpack.encode(saved_ledger)

    @classmethod
    def load(cls, saved: bytes) -> "BlameLedger | None":
        """Decode the output of `save`; return None if it has another version, or is damaged."""
        try:
            decoded = msgspec.msgpack.decode(saved, type=_SavedLedger)
            version, byteorder, lined, base, boundary, shas, times, credit_bytes, authors, files = decoded
            if (version, byteorder) != (FORMAT_VERSION, sys.byteorder):
                return None
            credit_numbers = array("I", credit_bytes)
            return cls(lined, base, boundary, shas, array("Q", times), credit_numbers, authors, BlameTable(files))
        except (msgspec.MsgspecError, ValueError):
            return None


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


_SavedBlame: TypeAlias = tuple[bytes, bool, int, list[int]]
"""The runs of lines of a file, then the other fields of its blame in their order."""

_SavedLedger: TypeAlias = tuple[
    int, str, bool, int, str, list[bytes], bytes, bytes, list[str], dict[bytes, msgspec.Raw]
]
"""Version and byte order, then the fields of a ledger in their order, with a `_SavedBlame` of each file."""

_decode_blame = msgspec.msgpack.Decoder(_SavedBlame).decode
_encode = msgspec.msgpack.Encoder().encode


def _encode_blame(entry: FileBlame | msgspec.Raw) -> msgspec.Raw:
    if isinstance(entry, msgspec.Raw):
        return entry
    return msgspec.Raw(_encode((_encode_runs(entry.lines), entry.whole, entry.last, entry.changes)))


def _encode_runs(lines: "array[int]") -> bytes:
    runs = ((commit, sum(1 for _ in run)) for commit, run in groupby(lines))
    return array("I", chain.from_iterable(runs)).tobytes()


def _decode_runs(runs: bytes) -> "array[int]":
    pairs = iter(array("I", runs))
    decoded: array[int] = array("I")
    for commit, length in zip(pairs, pairs, strict=True):
        decoded += array("I", [commit]) * length
    return decoded

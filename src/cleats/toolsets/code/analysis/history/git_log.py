"""Parser for the output of `git log`: commits, and the changes that they make to files.

Bytes in, values out; a piece may end anywhere. Only line numbers are read from a patch: the header
of a hunk gives the number of lines that follow, and those are skipped unread. So nothing that is
written in a file can be mistaken for a header.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from msgspec import Struct

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
"""Largest time of a commit. A commit may claim any time, and later readers may not support larger
numbers."""


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
                    yield from self._flush_patch()
                    yield _parse_commit(line)
                case b":":
                    yield _parse_raw_change(line)
                case b"d" if line.startswith(b"diff --git "):
                    yield from self._flush_patch()
                    path = _parse_common_path(line[11:])
                    self._current_patch = FilePatch(path, path)
                case _ if self._current_patch is not None:
                    _read_patch_header(self._current_patch, line)

    def finish(self) -> Iterator[HistoryEvent]:
        """Yield the event that was still incomplete."""
        yield from self._flush_patch()

    def _flush_patch(self) -> Iterator[HistoryEvent]:
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
        line_count = len(lines) - position
        if self._pending_removed:
            step = min(self._pending_removed, line_count)
            self._pending_removed -= step
        else:
            step = min(self._pending_added, line_count)
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
    old, new = unquote_path(paths[0]), unquote_path(paths[-1])
    return FilePatch(
        None if status == b"A" else old,
        None if status == b"D" else new,
        moved=status != b"C",
        opaque=True,
    )


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

"""The text of `git log` as commits and the changes they make to files.

Bytes in, values out; a piece may end anywhere. Only the numbers of lines are read from a patch:
a hunk's header says how many lines follow, and so many are passed over unseen. Nothing that is
written in a file can therefore be taken for a header.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from msgspec import Struct

FORMAT = "--format=%x01%H%x00%P%x00%ct%x00%an <%ae>"
"""One line per commit, marked by a byte with which no line of a patch's header begins."""


class Commit(NamedTuple):
    """Who did it, and when."""

    sha: str
    parents: tuple[str, ...]
    time: int
    author: str


class Hunk(NamedTuple):
    """`removed` lines give way to `added` ones; `start` lines of the new text come before."""

    start: int
    removed: int
    added: int


class Patch(Struct):
    """What a commit does to one file. Paths are bytes, because git's are."""

    old: bytes | None
    """None for a file that is new."""
    new: bytes | None
    """None for one that is gone."""
    hunks: list[Hunk] = []
    moved: bool = True
    """Whether the old path is gone, where the paths differ."""
    opaque: bool = False
    """Its lines are not told: git takes it for binary, or was not asked."""


Event: TypeAlias = Commit | Patch

LATEST = 2**53
"""Seconds; a commit may claim any time, and what reads it later may know no larger number."""


class Parser:
    """Reads what `git log` and `git diff` write, with `-p -U0` or `--raw`."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._patch: Patch | None = None
        self._old = 0
        self._new = 0

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Take the next bytes; give what is complete."""
        self._parts.append(piece)
        if b"\n" not in piece:
            return
        lines = b"".join(self._parts).split(b"\n")
        self._parts = [lines.pop()]
        at, end = 0, len(lines)
        while at < end:
            if self._old or self._new:
                at = self._pass_over(lines, at)
                continue
            line = lines[at]
            at += 1
            match line[:1]:
                case b"@":
                    self._hunk(line)
                case b"\x01":
                    yield from self._flush()
                    yield _commit(line)
                case b":":
                    yield _raw(line)
                case b"d" if line.startswith(b"diff --git "):
                    yield from self._flush()
                    path = _same_path(line[11:])
                    self._patch = Patch(path, path)
                case _ if self._patch is not None:
                    _note(self._patch, line)

    def end(self) -> Iterator[Event]:
        """Give what was still waiting for its end."""
        yield from self._flush()

    def _flush(self) -> Iterator[Event]:
        if self._patch is not None:
            yield self._patch
        self._patch = None

    def _hunk(self, line: bytes) -> None:
        found = _HUNK.match(line)
        if found is None or self._patch is None:
            return
        removed, start, added = (1 if each is None else int(each) for each in found.groups())
        # Git counts the line before when no line is left.
        self._patch.hunks.append(Hunk(start - 1 if added else start, removed, added))
        self._old, self._new = removed, added

    def _pass_over(self, lines: list[bytes], at: int) -> int:
        if lines[at][:1] == b"\\":  # "No newline at end of file", which is no line of it
            return at + 1
        left = len(lines) - at
        if self._old:
            step = min(self._old, left)
            self._old -= step
        else:
            step = min(self._new, left)
            self._new -= step
        return at + step


_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def _commit(line: bytes) -> Commit:
    sha, parents, time, author = line[1:].decode(errors="replace").split("\0", 3)
    # A commit may have been made by hand, and have anything for a time.
    seconds = int(time) if time.isascii() and time.isdigit() else 0
    return Commit(sha, tuple(parents.split()), min(seconds, LATEST), author)


def _note(patch: Patch, line: bytes) -> None:
    """Read one line between a patch's first line and its first hunk."""
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
                patch.old = unquote(path)
            else:
                patch.new = unquote(path)
        case b"Binary":
            patch.opaque = True
        case _:
            pass


def _raw(line: bytes) -> Patch:
    about, *paths = line.split(b"\t")
    status = about.rpartition(b" ")[2][:1]
    old, new = unquote(paths[0]), unquote(paths[-1])
    return Patch(
        None if status == b"A" else old,
        None if status == b"D" else new,
        moved=status != b"C",
        opaque=True,
    )


def _same_path(both: bytes) -> bytes:
    """The path in `a/path b/path`. Where the two differ, later lines tell them apart."""
    if both.startswith(b'"'):
        found = _QUOTED.match(both)
        return unquote(found.group())[2:] if found else both
    return both[2 : (len(both) - 1) // 2]


_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_LETTERS = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))


def unquote(path: bytes) -> bytes:
    """Undo git's quotes around a path with special bytes in it."""
    if not path.startswith(b'"'):
        return path
    return _ESCAPE.sub(_unescape, path[1:-1])


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found.group(1)
    if len(code) == 3:
        return bytes([int(code, 8)])
    return bytes([_LETTERS.get(code[0], code[0])])
